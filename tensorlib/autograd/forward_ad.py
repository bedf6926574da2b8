"""Dual tensors under PyTorch's names: forward mode between `make_dual` and `unpack_dual`.

Within a `dual_level` operations are recorded with what forward mode needs, and a tangent is pushed
through the graph where it is asked for. So tangents do not pass `no_grad`, values that the level
computes are kept until it ends, and `backward` within it needs `retain_graph=True`. `func.jvp` and
`func.linearize` do the same for functions, and are what new code should use.
"""

import threading
from typing import NamedTuple

from tensorlib._core.base.dtypes import has_gradients, promote_types
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.explained import explain
from tensorlib._core.base.settings import AttributeSwap, Setting
from tensorlib._core.graph.node import recorded_so_far
from tensorlib._core.graph.op import Op
from tensorlib._core.interpreters.capture import NOTHING, capture
from tensorlib._core.sweep.python_nodes import linked_alias
from tensorlib._core.sweep import graph_reader
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.forward import LinearizedGraph

# Links a dual tensor to its primal.
DUAL = Op("dual", "A primal with its tangent.", ("primal",), linearity="linear")
DUAL.add_rule("primal", lambda g: g, constant=1)


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`; the tangent may be None."""

    primal: Tensor
    tangent: Tensor | None


class DualLevel:
    """The dual tensors made since `enter_dual_level`."""

    def __init__(self):
        self.since = recorded_so_far()
        self.nodes, self.tangents = [], []
        self.linked = False          # whether a primal requires grad

    def add(self, primal, tangent):
        """A dual tensor of the primal."""
        self.linked = self.linked or primal.requires_grad
        start = primal if primal.requires_grad else primal.detach().requires_grad_()
        dual = linked_alias(DUAL, start)
        self.nodes.append(dual.grad_fn)
        self.tangents.append(tangent)
        return dual

    def unpack(self, tensor):
        """The primal and the tangent of a tensor."""
        (capture() or NOTHING).walked(self.nodes, self.since)
        if not tensor.requires_grad or not self.nodes:
            return UnpackedDualTensor(tensor, None)
        linked = self.linked or graph_reader.leads_outside(
            [graph_reader.gradient_place(tensor)[0]], self.nodes, self.since)
        path = LinearizedGraph([(node, 0) for node in self.nodes], [tensor], self.since)
        (tangent,) = path.push(self.tangents, linked or any(t.requires_grad for t in self.tangents))
        return UnpackedDualTensor(tensor if linked else tensor.detach(), tangent)


class _Current(threading.local):
    level = None        # the `DualLevel`
    entered = None      # the context that `exit_dual_level` leaves


_current = _Current()


def enter_dual_level():
    """Begins a level in which tensors have tangents; returns its number, which is 0.

    Raises: RuntimeError within a level.
    """
    _current.entered = dual_level()
    return _current.entered.__enter__()


def exit_dual_level(*, level=None):
    """Ends the level: its tensors have no tangents any more.

    Raises: RuntimeError outside of a level.
    """
    checked_level("exit_dual_level", level)
    _current.entered.__exit__()


class dual_level(Setting):
    """`with dual_level():` tensors have tangents, from `make_dual` to `unpack_dual`.

    >>> from tensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(tensorlib.tensor([1.0, 2.0]), tensorlib.tensor([1.0, 0.0]))
    ...     y, dy = forward_ad.unpack_dual(x * x)
    >>> y, dy
    (tensor([1., 4.]), tensor([2., 0.]))
    """

    swaps = (AttributeSwap(_current, "level"), graph_reader.set_transform)

    def __init__(self):
        self.given = 0

    @property
    def values(self):
        if _current.level is not None:
            raise RuntimeError("enter_dual_level: Nested forward mode AD is not supported at the "
                               "moment; func.jvp can be nested")
        return DualLevel(), graph_reader.wanted_by_transform(True, guarded=False)


def make_dual(tensor, tangent, *, level=None):
    """A tensor that shares the memory of `tensor` and has `tangent`, of its shape, in its dtype.

    Raises: TypeError for what is not a Tensor, ValueError for one that is not floating,
    RuntimeError for another shape, for a dtype that that of the tensor does not hold, for a tensor
    that has a tangent, and outside of a level.

    Source: Baydin, Pearlmutter, Radul and Siskind, "Automatic differentiation in machine learning:
    a survey", Journal of Machine Learning Research 18(153), 2018.
    """
    for name, x in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual: {name} must be a Tensor, got {type_name(x)}")
        if not has_gradients(x.dtype):
            raise ValueError(f"make_dual: Expected {name} to be floating point, but got: {x.dtype}")
    current = checked_level("make_dual", level)
    if (tensor.shape != tangent.shape
            or promote_types(tensor.dtype, tangent.dtype) is not tensor.dtype):
        raise RuntimeError(
            f"make_dual: the tensor is of shape {tuple(tensor.shape)} and {tensor.dtype}, but its "
            f"tangent of shape {tuple(tangent.shape)} and {tangent.dtype}")
    if current.unpack(tensor).tangent is not None:
        raise RuntimeError("make_dual: Making a dual Tensor based on a Tensor that already has a "
                           "forward gradient at the same level is not supported")
    return current.add(tensor, tangent.to(tensor.dtype))


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor: the tangent is None where it depends on no dual tensor.

    Shapes: the tangent has that of the tensor.
    Raises: TypeError for what is not a Tensor.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: tensor must be a Tensor, got {type_name(tensor)}")
    if _current.level is None:
        return UnpackedDualTensor(tensor, None)
    return checked_level("unpack_dual", level).unpack(tensor)


def checked_level(name, level):
    """The level that is current. Raises: RuntimeError where there is none, or not that one."""
    if _current.level is None:
        raise RuntimeError(f"{name}: no level exists, make sure to enter_dual_level() first")
    if level not in (None, 0):
        raise RuntimeError(f"{name}: level must be 0 or None, got {level!r}")
    return _current.level


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]

explain(vars(), __all__)
