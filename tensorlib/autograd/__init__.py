"""Differentiation: gradients of recorded operations, and whether they are recorded."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from tensorlib._core.apply.fill_upcalls import fill_upcalls
from tensorlib._core.tensor.tensor import attach
from tensorlib.autograd import anomaly as anomaly_mode
from tensorlib.autograd import function, graph, hooks
from tensorlib.autograd import modes as grad_mode
from tensorlib.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tensorlib.autograd.gradients import backward as _backward
from tensorlib.autograd.gradients import backward_all as backward
from tensorlib.autograd.gradients import grad
from tensorlib.autograd.function import Function
from tensorlib.autograd.jvp import rule_of
from tensorlib.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from tensorlib.autograd.recompute import checkpoint
from tensorlib.ops.calls import gradient_of, needs_of

if TYPE_CHECKING:
    from tensorlib.autograd import forward_ad, functional
    from tensorlib.autograd.checking import gradcheck, gradgradcheck

fill_upcalls(needs_of=needs_of, gradient_of=gradient_of, tangent_of=rule_of)
attach("backward", _backward)

__all__ = ["Function", "anomaly_mode", "backward", "checkpoint", "detect_anomaly", "enable_grad",
           "forward_ad", "function", "functional", "grad", "grad_mode", "gradcheck",
           "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
           "is_inference_mode_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
           "set_multithreading_enabled"]

# What many programs do without is imported when it is first asked for.
_MODULES = ("forward_ad", "functional")
_CHECKS = ("gradcheck", "gradgradcheck")


def __getattr__(name):
    if name in _MODULES:
        return _import_module(f"tensorlib.autograd.{name}")
    if name in _CHECKS:
        return getattr(_import_module("tensorlib.autograd.checking"), name)
    raise AttributeError(f"module 'tensorlib.autograd' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
