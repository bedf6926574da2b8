"""Comparisons, logical and bitwise operations, and choices made by them."""

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arithmetic import EDGES, maximum, minimum
from tensorlib.ops.declare import alias, elementwise, publish
from tensorlib.ops.samples import booleans, integers, pairs, triples

inf = float("inf")


# ---- comparisons ---------------------------------------------------------------------------------

@elementwise(reference=np.equal, samples=pairs(), edges=EDGES, differentiable=False)
def eq(input, other):
    """Whether the elements of both are equal, as bool."""


@elementwise(reference=np.not_equal, samples=pairs(), edges=EDGES, differentiable=False)
def ne(input, other):
    """Whether the elements of both differ, as bool."""


@elementwise(reference=np.less, samples=pairs(), edges=EDGES, differentiable=False)
def lt(input, other):
    """Whether elements of `input` are smaller than those of `other`, as bool."""


@elementwise(reference=np.less_equal, samples=pairs(), edges=EDGES, differentiable=False)
def le(input, other):
    """Whether elements of `input` are at most those of `other`, as bool."""


@elementwise(reference=np.greater, samples=pairs(), edges=EDGES, differentiable=False)
def gt(input, other):
    """Whether elements of `input` are larger than those of `other`, as bool."""


@elementwise(reference=np.greater_equal, samples=pairs(), edges=EDGES, differentiable=False)
def ge(input, other):
    """Whether elements of `input` are at least those of `other`, as bool."""


# ---- logic ---------------------------------------------------------------------------------------

@elementwise(reference=np.logical_and, samples=booleans(2), edges=EDGES,
             differentiable=False)
def logical_and(input, other):
    """Whether the elements of both are true (not zero), as bool."""


@elementwise(reference=np.logical_or, samples=booleans(2), edges=EDGES,
             differentiable=False)
def logical_or(input, other):
    """Whether an element of either is true (not zero), as bool."""


@elementwise(reference=np.logical_xor, samples=booleans(2), edges=EDGES,
             differentiable=False)
def logical_xor(input, other):
    """Whether exactly one of the elements is true (not zero), as bool."""


@elementwise(reference=np.logical_not, samples=booleans(1), edges=EDGES,
             differentiable=False)
def logical_not(input):
    """Whether each element is false (zero), as bool."""


@elementwise(reference=np.bitwise_and, samples=integers(2), takes="bool integer",
             differentiable=False)
def bitwise_and(input, other):
    """Bitwise "and" of integers or bools."""


@elementwise(reference=np.bitwise_or, samples=integers(2), takes="bool integer",
             differentiable=False)
def bitwise_or(input, other):
    """Bitwise "or" of integers or bools."""


@elementwise(reference=np.bitwise_xor, samples=integers(2), takes="bool integer",
             differentiable=False)
def bitwise_xor(input, other):
    """Bitwise "exclusive or" of integers or bools."""


@elementwise(reference=np.invert, samples=integers(1), takes="bool integer",
             differentiable=False)
def bitwise_not(input):
    """Every bit of integers turned over; "not" of bools."""


@elementwise(reference=np.left_shift, samples=integers(2, 0, 5), takes="integer",
             differentiable=False)
def bitwise_left_shift(input, other):
    """The bits of `input` moved left by `other` places."""


@elementwise(reference=np.right_shift, samples=integers(2, 0, 5), takes="integer",
             differentiable=False)
def bitwise_right_shift(input, other):
    """The bits of `input` moved right by `other` places, the sign kept."""


# ---- choices -------------------------------------------------------------------------------------

@elementwise(reference=np.where, samples=triples(boolean=True), edges=EDGES,
             boolean=("condition",), public=False, method=False)
def where(condition, input, other):
    """`input` where the condition holds, else `other`, with broadcasting.

    With the condition alone: the indices where it holds, as `nonzero(as_tuple=True)`.

    Raises: RuntimeError if the condition is not bool.
    """


@where.deriv("input")
def where_deriv_input(g, condition):
    return g.where(condition, 0)


@where.deriv("other")
def where_deriv_other(g, condition):
    return g.where(condition.logical_not(), 0)


@elementwise(reference=lambda x, low, high: np.minimum(np.maximum(x, low), high),
             samples=triples(), edges=EDGES, signed_zeros=False, takes="integer floating",
             public=False, method=False)
def clamp(input, min, max):
    """Each element brought into [min, max]; either bound may be absent. NaN stays NaN.

    Gradient: 1 inside, the bounds included, 0 outside; the bounds get what lies beyond them.

    Raises: RuntimeError if both bounds are absent.
    """


@clamp.deriv("input")
def clamp_deriv_input(g, input, min, max):
    return g.where((input >= min).logical_and(input <= max), 0)


@clamp.deriv("min")
def clamp_deriv_min(g, input, min, max):
    return g.where((input < min).logical_and(min < max), 0)


@clamp.deriv("max")
def clamp_deriv_max(g, input, min, max):
    return g.where((input > max).logical_or(max < min), 0)


_where, _clamp = where, clamp


def where(condition, input=None, other=None, *, out=None):
    """See the operation."""
    if input is None and other is None:
        if not isinstance(condition, Tensor):
            raise TypeError(
                f"where: condition must be a Tensor, not {type(condition).__name__}")
        return condition.nonzero(as_tuple=True)
    if out is None:
        return _where(condition, input, other)
    return _where(condition, input, other, out=out)


def where_method(self, condition, other):
    """See the operation."""
    return _where(condition, self, other)


where_method.checks = True
publish("where", where, _where.__doc__, method=False)
publish("where", where_method, _where.__doc__, public=False)
where.op, where.checks = _where.op, True


def clamp(input, min=None, max=None, *, out=None):
    """See the operation."""
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of min and max must not be None")
    if not input.is_floating_point():            # has no infinity to stand for an absent bound
        check_bounds(input, min, max)
        if max is None:
            return maximum(input, min, out=out)
        if min is None:
            return minimum(input, max, out=out)
    return _clamp(input, -inf if min is None else min, inf if max is None else max, out=out)


def check_bounds(input, *bounds):
    """Raises RuntimeError for integers as bounds that integers of this dtype cannot reach."""
    if input.dtype == BY_NAME["bool"]:
        return
    limits = np.iinfo(input.dtype.name)
    for bound in bounds:
        if isinstance(bound, int) and not limits.min <= bound <= limits.max:
            raise RuntimeError(f"clamp: the bound {bound} does not fit in {input.dtype}")


def clamp_(self, min=None, max=None):
    """In-place form of `clamp`."""
    if min is None and max is None:
        raise RuntimeError("clamp_: at least one of min and max must not be None")
    if not self.is_floating_point():
        check_bounds(self, min, max)
        if max is None:
            return maximum.inplace(self, min)
        if min is None:
            return minimum.inplace(self, max)
    return _clamp.inplace(self, -inf if min is None else min, inf if max is None else max)


publish("clamp", clamp, _clamp.__doc__)
publish("clamp_", clamp_, clamp_.__doc__, public=False)
clamp.op = _clamp.op


def clamp_min(input, min, *, out=None):
    """Each element, or `min` where that is larger."""
    return clamp(input, min=min, out=out)


def clamp_max(input, max, *, out=None):
    """Each element, or `max` where that is smaller."""
    return clamp(input, max=max, out=out)


def clamp_min_(self, min):
    """In-place form of `clamp_min`."""
    return clamp_(self, min=min)


def clamp_max_(self, max):
    """In-place form of `clamp_max`."""
    return clamp_(self, max=max)


for _function in (clamp_min, clamp_max):
    publish(_function.__name__, _function, _function.__doc__)
for _function in (clamp_min_, clamp_max_):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- predicates of whole tensors -----------------------------------------------------------------

def isclose(input, other: Tensor, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where |input - other| <= atol + rtol * |other|, with broadcasting; NaN is close to NaN only
    with `equal_nan`.

    Raises: RuntimeError for different dtypes or tolerances below zero.
    """
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RuntimeError(f"isclose: {name} must be greater than or equal to zero, but got "
                               f"{bound}")
    input, other = input.detach(), other.detach()
    close = input == other
    if input.is_floating_point() or input.dtype != BY_NAME["bool"] and (rtol or atol):
        near = (input - other).abs() <= rtol * other.abs() + atol
        close = close.logical_or(near.logical_and(other.isfinite()))
    if equal_nan and input.is_floating_point():
        close = close.logical_or(input.isnan().logical_and(other.isnan()))
    return close


def allclose(input, other: Tensor, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether `isclose` holds for all elements, as a bool. Raises: RuntimeError."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input, other: Tensor):
    """Whether both have one shape and the same elements, as a bool."""
    return input.shape == other.shape and bool((input == other).all())


def is_tensor(obj):
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def detach(input):
    """A view of the same elements, outside the graph."""
    return input.detach()


def is_complex(input):
    """False: no dtype is complex."""
    return input.is_complex()


def is_floating_point(input):
    """Whether the dtype is a floating one."""
    return input.is_floating_point()


def numel(input):
    """The number of elements."""
    return input.numel()


for _function in (isclose, allclose, equal):
    publish(_function.__name__, _function, _function.__doc__)
for _function in (is_tensor, detach, is_complex, is_floating_point, numel):
    publish(_function.__name__, _function, _function.__doc__, method=False)

for _name, _function in {
    "not_equal": ne, "less": lt, "less_equal": le, "greater": gt,
    "greater_equal": ge, "clip": clamp,
}.items():
    alias(_name, _function)
