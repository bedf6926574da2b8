"""Differentiation: gradients of recorded operations, grad modes, hooks and custom functions."""

from typing import TYPE_CHECKING

from tensorlib._core.apply.fill_upcalls import fill_upcalls
from tensorlib._core.base.explained import explain
from tensorlib._core.tensor.tensor import attach
from tensorlib._core.base.importing import deferred, named_as_function, on_first_use
from tensorlib.autograd import anomaly as anomaly_mode
from tensorlib.autograd import graph, hooks
from tensorlib.autograd import modes as grad_mode
from tensorlib.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tensorlib.autograd.gradients import backward as _backward
from tensorlib.autograd.gradients import backward_all as backward
from tensorlib.autograd.gradients import grad
from tensorlib.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from tensorlib.ops.calls import gradient_of, needs_of
from tensorlib.ops.lazy import declare_all

if TYPE_CHECKING:
    from tensorlib.autograd import forward_ad, function, functional
    from tensorlib.autograd.checking import gradcheck, gradgradcheck
    from tensorlib.autograd.function import Function
    from tensorlib.autograd.recompute import checkpoint
    from tensorlib.autograd.variable import Variable

fill_upcalls(needs_of=needs_of, gradient_of=gradient_of,
             tangent_of=deferred("tensorlib.autograd.jvp", "rule_of"), declare_all=declare_all)
attach("backward", _backward)

__all__ = ["Function", "Variable", "anomaly_mode", "backward", "checkpoint", "detect_anomaly",
           "enable_grad", "forward_ad", "function", "functional", "grad", "grad_mode", "gradcheck",
           "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
           "is_inference_mode_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
           "set_multithreading_enabled"]

__getattr__, __dir__ = on_first_use(__name__, {
    "Function": "function", "Variable": "variable", "checkpoint": "recompute",
    "forward_ad": "forward_ad",
    "function": "function", "functional": "functional", "gradcheck": "checking",
    "gradgradcheck": "checking"})
named_as_function(f"{__name__}.gradcheck", "tensorlib.autograd.checking")

explain(vars(), __all__)
