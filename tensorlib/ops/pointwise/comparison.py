"""Comparisons, logical and bitwise operations, and choices made by them."""

from numbers import Number

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.reduce.masks import all_equal
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.declare import alias, composite, elementwise, publish
from tensorlib.ops.pointwise.arithmetic import EDGES
from tensorlib.ops.samples import booleans, integers, pairs, reals, triples

inf = float("inf")


# ---- comparisons ---------------------------------------------------------------------------------

@elementwise(reference=np.equal, samples=pairs(), edges=EDGES, differentiable=False, complex=True)
def eq(input, other):
    """Whether the elements of both are equal, as bool."""


def contains(self, element):
    """Whether any element equals a number or, with broadcasting, one of a tensor.

    Raises: RuntimeError for anything else.
    """
    if not isinstance(element, (Tensor, Number)):
        raise RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in a"
                           f" {type(element)}.")
    return bool(eq(self, element).any())


attach("_contains", contains)


@elementwise(reference=np.not_equal, samples=pairs(), edges=EDGES, differentiable=False,
             complex=True)
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
             differentiable=False, complex=True)
def logical_and(input, other):
    """Whether the elements of both are true (not zero), as bool."""


@elementwise(reference=np.logical_or, samples=booleans(2), edges=EDGES,
             differentiable=False, complex=True)
def logical_or(input, other):
    """Whether an element of either is true (not zero), as bool."""


@elementwise(reference=np.logical_xor, samples=booleans(2), edges=EDGES,
             differentiable=False, complex=True)
def logical_xor(input, other):
    """Whether exactly one of the elements is true (not zero), as bool."""


@elementwise(reference=np.logical_not, samples=booleans(1), edges=EDGES,
             differentiable=False, complex=True)
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

def both_or_places(condition, input=None, other=None):
    """The `convert` of `where`: with the condition alone it is `nonzero`."""
    if input is not None or other is not None:
        return condition, input, other
    if not isinstance(condition, Tensor):
        raise TypeError(f"where: condition must be a Tensor, not {type_name(condition)}")
    return [places_of_true, condition]


def places_of_true(condition):
    """What `where` gives for the condition alone."""
    return condition.nonzero(as_tuple=True)


@elementwise(reference=np.where, samples=triples(boolean=True), edges=EDGES,
             boolean=("condition",), convert=both_or_places, method=False, complex=True)
def where(condition, input, other):
    """`input` where the condition holds, else `other`, with broadcasting.

    With the condition alone: the indices where it holds, as `nonzero(as_tuple=True)`.

    A condition of uint8, the masks of older programs, holds where it is not 0, and warns.

    Raises: RuntimeError for a condition of another dtype than bool, TypeError where one value
    alone is given.

    >>> tensorlib.where(tensorlib.tensor([True, False]), tensorlib.tensor([1., 2.]), 0.)
    tensor([1., 0.])
    """


@where.deriv("input")
def where_deriv_input(g, condition):
    """g where the condition holds, 0 elsewhere."""
    return g.where(condition, 0)


@where.deriv("other")
def where_deriv_other(g, condition):
    """g where the condition does not hold, 0 elsewhere."""
    return g.where(condition.logical_not(), 0)


def where_method(self, condition, other):
    """`condition` comes first in the function, but `self` in the method."""
    return where.canonical(condition, self, other)


where_method.checks = True
publish("where", where_method, where.__doc__, public=False)


def with_no_slope(value, *of):
    """`value`, a function of tensors that is constant between its steps: linked to them, with a
    gradient of zero."""
    for x in of:
        value = where(x.new_zeros((), dtype=BY_NAME["bool"]), x, value)
    return value


LIMITS = {dtype: (np.iinfo(name).min, np.iinfo(name).max) for name, dtype in BY_NAME.items()
          if name != "bool" and not (dtype.is_floating_point or dtype.is_complex)}


def check_bounds(name, input, *bounds):
    """Raises RuntimeError for integers as bounds that integers of this dtype cannot reach."""
    if input.dtype not in LIMITS:
        return
    smallest, largest = LIMITS[input.dtype]
    for bound in bounds:
        if isinstance(bound, int) and not smallest <= bound <= largest:
            raise RuntimeError(f"{name}: the bound {bound} does not fit in {input.dtype}")


def least(input: Tensor, min):
    """The `convert` of `clamp_min`."""
    check_bounds("clamp_min", input, min)
    return input, min


def greatest(input: Tensor, max):
    """The `convert` of `clamp_max`."""
    check_bounds("clamp_max", input, max)
    return input, max


def bounded(input: Tensor, min=None, max=None):
    """The `convert` of `clamp`: an absent bound of numbers is infinite, which no integer is."""
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of min and max must not be None")
    whole = not input.is_floating_point()
    if whole:
        check_bounds("clamp", input, min, max)
    if max is None and (whole or isinstance(min, Tensor)):
        return [clamp_min, input, min]
    if min is None and (whole or isinstance(max, Tensor)):
        return [clamp_max, input, max]
    return input, -inf if min is None else min, inf if max is None else max


@elementwise(reference=lambda x, low, high: np.minimum(np.maximum(x, low), high),
             samples=triples(), edges=EDGES, signed_zeros=False, takes="integer floating",
             convert=bounded)
def clamp(input, min, max):
    """Each element brought into [min, max]; either bound may be absent. NaN stays NaN.

    Gradient: 1 inside, the bounds included, 0 outside; the bounds get what lies beyond them.

    Raises: RuntimeError if both bounds are absent, or one is a number that integers of the dtype
    cannot reach.

    >>> tensorlib.clamp(tensorlib.tensor([-2., 0.5, 7.]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """


@clamp.deriv("input")
def clamp_deriv_input(g, input, min, max):
    """1 from min to max."""
    return g.where((input >= min).logical_and(input <= max), 0)


@clamp.deriv("min")
def clamp_deriv_min(g, input, min, max):
    """Nothing where the bounds cross: the result is `max` there."""
    return g.where((input < min).logical_and(min < max), 0)


@clamp.deriv("max")
def clamp_deriv_max(g, input, min, max):
    """All that is above `max`, and everything where the bounds cross."""
    return g.where((input > max).logical_or(max < min), 0)


@elementwise(kernel="maximum", reference=np.maximum, samples=pairs(apart=0.1), edges=EDGES,
             signed_zeros=False, convert=least)
def clamp_min(input, min):
    """Each element, or `min` where that is larger. NaN stays NaN.

    Gradient: to the element where it is at least `min`, else to `min`.

    Raises: RuntimeError for a number that integers of the dtype cannot reach.
    """


@elementwise(kernel="minimum", reference=np.minimum, samples=pairs(apart=0.1), edges=EDGES,
             signed_zeros=False, convert=greatest)
def clamp_max(input, max):
    """Each element, or `max` where that is smaller. NaN stays NaN.

    Gradient: to the element where it is at most `max`, else to `max`.

    Raises: RuntimeError for a number that integers of the dtype cannot reach.
    """


@clamp_min.deriv("input")
def clamp_min_deriv_input(g, input, min):
    """g where x is not below the bound, 0 elsewhere; at the bound all of it."""
    return g.where(input >= min, 0)


@clamp_min.deriv("min")
def clamp_min_deriv_min(g, input, min):
    """g where x is below the bound, 0 elsewhere."""
    return g.where(input < min, 0)


@clamp_max.deriv("input")
def clamp_max_deriv_input(g, input, max):
    """g where x is not above the bound, 0 elsewhere; at the bound all of it."""
    return g.where(input <= max, 0)


@clamp_max.deriv("max")
def clamp_max_deriv_max(g, input, max):
    """g where x is above the bound, 0 elsewhere."""
    return g.where(input > max, 0)


# ---- questions about whole tensors ---------------------------------------------------------------

def near_pairs(*options):
    """Samples of two tensors, equal or not in some elements, without and with keywords."""
    def generate(rng):
        for shape, other_shape in (((), ()), ((5,), (5,)), ((3, 4), (3, 4)), ((0, 2), (0, 2))):
            x = rng.uniform(-3, 3, shape)
            for y in (x.copy(), x + (rng.random(other_shape) < 0.5)):
                for keywords in ({}, *options):
                    yield (x, y), keywords
    return generate


@composite(reference=np.isclose, differentiable=False,
           samples=near_pairs({"rtol": 2.0}, {"atol": 3.0, "equal_nan": True}), complex=True)
def isclose(input, other: Tensor, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where |input - other| <= atol + rtol * |other|, with broadcasting, as bool.

    Infinities are close to themselves alone, NaN to NaN only with `equal_nan`.

    Raises: RuntimeError for different dtypes or tolerances below zero.

    >>> tensorlib.isclose(tensorlib.tensor([1., 2.]), tensorlib.tensor([1. + 1e-9, 2.1]))
    tensor([ True, False])
    """
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RuntimeError(f"isclose: {name} must be greater than or equal to zero, but got "
                               f"{bound}")
    input, other = input.detach(), other.detach()
    close = input == other
    inexact = input.is_floating_point() or input.is_complex()
    if inexact or rtol or atol:
        if not inexact:                          # whose differences may be out of their range
            input, other = input.double(), other.double()
        near = (input - other).abs() <= rtol * other.abs() + atol
        close = close.logical_or(near.logical_and(other.isfinite()))
    if equal_nan:
        close = close.logical_or(input.isnan().logical_and(other.isnan()))
    return close


@composite(reference=np.allclose, differentiable=False,
           samples=near_pairs({"rtol": 2.0}, {"atol": 3.0, "equal_nan": True}), reads_values=True,
           complex=True)
def allclose(input, other: Tensor, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    """Whether `isclose` holds for all elements, as a bool.

    Raises: RuntimeError for different dtypes or tolerances below zero.
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def unequal_shapes(rng):
    """Samples of `equal`: as of `isclose`, and of shapes that differ."""
    yield from near_pairs()(rng)
    yield (np.ones((2, 3)), np.ones(3)), {}


@composite(reference=np.array_equal, differentiable=False, samples=unequal_shapes,
           reads_values=True, complex=True)
def equal(input, other: Tensor) -> bool:
    """Whether both have one shape and the same elements, as a bool; NaN equals nothing."""
    found = all_equal(input, other)
    if found is not None:
        return found
    return input.shape == other.shape and bool((input == other).all())


@composite(reference=np.copy, differentiable=False, method=False, samples=reals(-3, 3),
           view="maybe", complex=True)
def detach(input):
    """A view of the same elements, outside the graph."""
    return input.detach()


@composite(reference=np.iscomplexobj, differentiable=False, method=False, samples=reals(-3, 3),
           complex=True)
def is_complex(input) -> bool:
    """Whether the dtype is a complex one."""
    return input.is_complex()


@composite(reference=lambda x: x.dtype.kind == "f", differentiable=False, method=False,
           samples=reals(-3, 3), complex=True)
def is_floating_point(input) -> bool:
    """Whether the dtype is a floating one."""
    return input.is_floating_point()


@composite(reference=np.size, differentiable=False, method=False, samples=reals(-3, 3),
           complex=True)
def numel(input) -> int:
    """The number of elements, as an int."""
    return input.numel()


for _name, _function in {
    "not_equal": ne, "less": lt, "less_equal": le, "greater": gt,
    "greater_equal": ge, "clip": clamp,
}.items():
    alias(_name, _function)
