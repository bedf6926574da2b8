"""Functions of two and three tensors, element by element, with broadcasting."""

from numbers import Number

import numpy as np

from tensorlib._core.arrays.operands import require_factor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, alias, elementwise
from tensorlib.ops.samples import pairs, three_reals

inf, nan = float("inf"), float("nan")
EXACT = 1 << 24                  # whole numbers below it are exact in float32
EDGES = (0.0, -0.0, 1.0, -2.5, inf, -inf, nan)


# ---- the four operations -------------------------------------------------------------------------

def scaled(input, other, *, alpha=1):
    """The `convert` of `add`: `other` times `alpha`."""
    return sum_with("add", input, other, alpha, alpha)


def scaled_down(input, other, *, alpha=1):
    """The `convert` of `sub`: `other` times `alpha`."""
    return sum_with("sub", input, other, alpha, -alpha if type(alpha) in (int, float) else alpha)


def sum_with(name, input, other, alpha, factor):
    """The operands for alpha 1, else input + factor * other in one pass."""
    if type(other) is int and type(alpha) is int and -EXACT < other * alpha < EXACT and (
            isinstance(input, Tensor) and input.dtype.name in ("float32", "float64", "int64")):
        return input, other * alpha
    bools = is_bool(input) and is_bool(other)
    if type(alpha) is int and alpha == 1 or name == "sub" and (
            is_bool(input) or is_bool(other)):              # which it refuses
        return input, other
    if isinstance(alpha, bool) and not bools:
        raise RuntimeError(f"{name}: Boolean alpha only supported for Boolean results")
    check_factors(name, (input, other), alpha=alpha)
    if bools:
        return input, mul(other, bool(alpha))
    if alpha == 1:
        return input, other
    if type(alpha) in (int, float) and hasattr(input, "dtype"):
        dtype = sum_dtype((input, other))
        if dtype is not None:
            require_factor(name, "alpha", alpha, dtype)
        return [add_product, input, other, factor]
    if not (isinstance(alpha, Number) or hasattr(alpha, "dtype")):
        raise TypeError(f"{name}: alpha must be a number, not {type_name(alpha)}")
    return input, mul(other, alpha)


def sum_dtype(terms):
    """The dtype of the sum of tensors of one, or of two tensors and numbers; None for others."""
    dtypes = {getattr(x, "dtype", None) for x in terms}
    if len(dtypes) == 1:
        return dtypes.pop()
    if len(terms) == 2 and all(isinstance(x, (Tensor, int, float, complex)) for x in terms):
        return FUNCTIONS["result_type"](*terms)
    return None


def is_bool(x):
    """Whether `x` is a bool, or a tensor or array of bools."""
    return isinstance(x, (bool, np.bool_)) or getattr(x, "dtype", None) is BY_NAME["bool"]


def check_factors(name, terms, **factors):
    """Raises RuntimeError for a factor that what is added has no place for: a float among integers,
    an int that overflows their dtype, a complex number among real ones."""
    for argument, factor in factors.items():
        if not isinstance(factor, (int, float, complex)) or factor == 1:
            continue
        kinds = [kind_of(x) for x in terms]
        if isinstance(factor, complex) and "c" not in kinds:
            raise RuntimeError(f"{name}: for non-complex input tensors, argument {argument} must "
                               f"not be a complex number, got {factor}")
        if "c" in kinds or "f" in kinds:
            continue
        if isinstance(factor, float):
            raise RuntimeError(f"{name}: for integral input tensors, argument {argument} must not "
                               f"be a floating point number, got {factor}")
        dtype = sum_dtype(terms)
        if dtype is not None:
            require_factor(name, argument, factor, dtype)


def kind_of(x):
    """"c" for complex numbers, "f" for floating-point ones, else "i"."""
    if isinstance(x, complex) or getattr(x, "is_complex", bool)():
        return "c"
    return "f" if isinstance(x, float) or getattr(x, "is_floating_point", bool)() else "i"


@elementwise(reference=np.add, samples=pairs(), edges=EDGES, convert=scaled, complex=True,
             slopes={"input": 1, "other": 1})
def add(input, other):
    """Sum of the elements of both, with broadcasting.

    `other` is first multiplied by `alpha`.
    """


@elementwise(reference=np.subtract, samples=pairs(), edges=EDGES, takes="integer floating",
             convert=scaled_down, complex=True, slopes={"input": 1, "other": -1}, no_bools=(
                 "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
                 "trying to invert a mask, use the `~` or `logical_not()` operator instead.",
                 "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
                 "`^` or `logical_xor()` operator instead."))
def sub(input, other):
    """Difference of the elements of both, with broadcasting.

    `other` is first multiplied by `alpha`.
    """


@elementwise(reference=np.multiply, samples=pairs(), edges=EDGES, complex=True,
             factors=("input", "other"))
def mul(input, other):
    """Product of the elements of both, with broadcasting."""


@mul.deriv("input")
def mul_deriv_input(other):
    """The other factor."""
    return other


@mul.deriv("other")
def mul_deriv_other(input):
    """The other factor."""
    return input


def rounded(input, other, *, rounding_mode=None):
    """The `convert` of `div`: a rounded quotient is another operation."""
    if rounding_mode is None:
        return input, other
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div: rounding_mode must be None, 'trunc' or 'floor', got {rounding_mode!r}")
    return [floor_divide if rounding_mode == "floor" else div_trunc, input, other]


@elementwise(reference=np.divide, samples=pairs(other_low=0.5), edges=EDGES, to_float=True,
             convert=rounded, complex=True, factors=("input", "other"))
def div(input, other):
    """Quotient of the elements of both, with broadcasting.

    rounding_mode: None for the true quotient, "floor" or "trunc" to round it down or towards zero.

    Raises: RuntimeError for another mode, ZeroDivisionError for a rounded integer division by zero.

    >>> tensorlib.div(tensorlib.tensor([-7., 7.]), 2, rounding_mode="floor")
    tensor([-4.,  3.])
    """


@div.deriv("input")
def div_deriv_input(other):
    """1 / y"""
    return 1 / other


@div.deriv("other")
def div_deriv_other(input, other):
    """-input / other**2, in two quotients: the square might overflow."""
    return -(input / other) / other


@elementwise(reference=np.floor_divide, samples=pairs(other_low=0.5), edges=EDGES, refuses="zero",
             takes="integer floating", slopes={"input": 0, "other": 0}, factors=("other",))
def floor_divide(input, other):
    """Quotient of the elements of both, rounded down.

    Gradient: zero.

    Raises: ZeroDivisionError for an integer division by zero.

    >>> tensorlib.floor_divide(tensorlib.tensor([-7, 7]), 2)
    tensor([-4,  3])
    """


@elementwise(reference=lambda a, b: np.trunc(a / b).astype(a.dtype), samples=pairs(other_low=0.5),
             edges=EDGES, refuses="zero", takes="integer floating", public=False, method=False,
             slopes={"input": 0, "other": 0},
             factors=("other",),
             ufuncs=(np.floor_divide,))      # for unsigned integers, where it is the same
def div_trunc(input, other):
    """Quotient of the elements of both, rounded towards zero: see `div`."""


@elementwise(reference=np.remainder, samples=pairs(other_low=0.5), edges=EDGES,
             signed_zeros=False, refuses="zero", takes="integer floating", slopes={"input": 1})
def remainder(input, other):
    """input - other * floor(input / other): the remainder with the sign of `other`.

    >>> tensorlib.remainder(tensorlib.tensor([-3, 3]), 2)
    tensor([1, 1])
    >>> tensorlib.remainder(tensorlib.tensor([-3, 3]), -2)
    tensor([-1, -1])
    """


@remainder.deriv("other")
def remainder_deriv_other(input, other):
    """The quotient is constant almost everywhere."""
    return -(input / other).floor()


@elementwise(reference=np.fmod, samples=pairs(other_low=0.5), edges=EDGES, refuses="zero",
             takes="integer floating", slopes={"input": 1})
def fmod(input, other):
    """input - other * trunc(input / other): the remainder with the sign of `input`.

    >>> tensorlib.fmod(tensorlib.tensor([-3, 3]), 2)
    tensor([-1,  1])
    """


@fmod.deriv("other")
def fmod_deriv_other(input, other):
    """The quotient is constant almost everywhere."""
    return -(input / other).trunc()


@elementwise(reference=np.power, samples=pairs(low=0.3, other_low=-2.0), edges=EDGES,
             refuses="negative", takes="integer floating", complex=True)
def pow(input, exponent):
    """`input` to the power of `exponent`, with broadcasting.

    Gradient: with respect to `input` 0 where the exponent is 0; with respect to `exponent` 0 where
    the base is 0 and the exponent is not negative.

    Raises: RuntimeError for integers to negative integer powers.

    Source: fdlibm (Sun Microsystems, 1993), e_pow.c, for float64.
    """


@pow.deriv("input")
def pow_deriv_input(input, exponent):
    """exponent * input**(exponent - 1), and 0 where the exponent is 0, even at 0 and inf."""
    return (exponent * input ** (exponent - 1)).where(exponent != 0, exponent)


@pow.deriv("exponent")
def pow_deriv_exponent(input, out):
    """out * log(input), and 0 where 0 is raised to a power that is not negative."""
    return (out * input.log()).where((input != 0).logical_or(out.isinf()), out * 0)


@elementwise(reference=np.arctan2, samples=pairs(low=0.3), edges=EDGES, to_float=True)
def atan2(input, other):
    """The angle of the point (x = other, y = input), in (-pi, pi].

    Units: radians. Gradient: 0 at the origin.

    >>> tensorlib.atan2(tensorlib.tensor([1., 1.]), tensorlib.tensor([1., -1.]))
    tensor([0.7854, 2.3562])
    """


@atan2.deriv("input")
def atan2_deriv_input(input, other):
    """other / (input**2 + other**2), and 0 at the origin."""
    square = input * input + other * other
    return other / square.where(square != 0, 1.0)


@atan2.deriv("other")
def atan2_deriv_other(input, other):
    """-input / (input**2 + other**2), and 0 at the origin."""
    square = input * input + other * other
    return -input / square.where(square != 0, 1.0)


# ---- the larger and the smaller ------------------------------------------------------------------

@elementwise(reference=np.hypot, samples=pairs(low=0.3), edges=EDGES, to_float=True)
def hypot(input, other):
    """sqrt(input**2 + other**2) without overflow between, with broadcasting.

    Gradient: 0 at the origin.
    """


@hypot.deriv("input")
def hypot_deriv_input(input, out):
    """x / r; 0 at the origin."""
    return input / out.where(out != 0, 1.0)


@hypot.deriv("other")
def hypot_deriv_other(other, out):
    """d/dy sqrt(x**2 + y**2) = y / out; 0 at the origin"""
    return other / out.where(out != 0, 1.0)


def log_of_two(x, y):
    """The reference of `logaddexp`."""
    if not np.iscomplexobj(x):
        return np.logaddexp(x, y)
    low, high = (np.where(x.real > y.real, *pair) for pair in ((y, x), (x, y)))
    return high + np.log1p(np.exp(low - high))


@elementwise(reference=log_of_two, ufuncs=[np.logaddexp], samples=pairs(), edges=EDGES,
             to_float=True, complex=True)
def logaddexp(input, other):
    """log(exp(input) + exp(other)) without overflow between, with broadcasting.

    Of complex numbers the imaginary part is near that of the one with the larger real part.
    Gradient: half to each of two equal infinities.
    """


@logaddexp.deriv("input")
def logaddexp_deriv_input(input, other):
    """exp(x - out), as a sigmoid; half where both are the same infinity."""
    ahead = input - other
    return ahead.sigmoid().where((input != other).logical_or(ahead == 0), 0.5)


@logaddexp.deriv("other")
def logaddexp_deriv_other(input, other):
    """exp(y - out), as a sigmoid; half where both are the same infinity."""
    ahead = other - input
    return ahead.sigmoid().where((input != other).logical_or(ahead == 0), 0.5)


@elementwise(reference=np.maximum, samples=pairs(apart=0.1), edges=EDGES,
             signed_zeros=False)
def maximum(input, other):
    """The larger of both elements; NaN if either is.

    Gradient: half to each where they are equal.
    """


@elementwise(reference=np.minimum, samples=pairs(apart=0.1), edges=EDGES,
             signed_zeros=False)
def minimum(input, other):
    """The smaller of both elements; NaN if either is.

    Gradient: half to each where they are equal.
    """


@maximum.deriv("input")
def maximum_deriv_input(input, other):
    """1 where `input` is larger, one half where both are equal, else 0."""
    return 0.5 + 0.5 * (input - other).sign()


@maximum.deriv("other")
def maximum_deriv_other(input, other):
    """1 where it is greater, half where both are equal."""
    return 0.5 - 0.5 * (input - other).sign()


@minimum.deriv("input")
def minimum_deriv_input(input, other):
    """1 where `input` is smaller, one half where both are equal, else 0."""
    return 0.5 - 0.5 * (input - other).sign()


@minimum.deriv("other")
def minimum_deriv_other(input, other):
    """1 where it is less, half where both are equal."""
    return 0.5 + 0.5 * (input - other).sign()


@elementwise(reference=np.fmax, samples=pairs(apart=0.1), edges=EDGES)
def fmax(input, other):
    """The larger element of both, with broadcasting; beside a NaN the other one.

    Gradient: to `input` where they are equal.
    """


@fmax.deriv("input")
def fmax_deriv_input(g, input, other):
    """1 where it is the result, also where both are equal or `other` is NaN."""
    return g.where((input >= other).logical_or(other != other), 0)


@fmax.deriv("other")
def fmax_deriv_other(g, input, other):
    """1 where it alone is the result."""
    return g.where((input < other).logical_or((input != input).logical_and(other == other)), 0)


@elementwise(reference=np.fmin, samples=pairs(apart=0.1), edges=EDGES)
def fmin(input, other):
    """The smaller element of both, with broadcasting; beside a NaN the other one.

    Gradient: to `input` where they are equal.
    """


@fmin.deriv("input")
def fmin_deriv_input(g, input, other):
    """1 where it is the result, also where both are equal or `other` is NaN."""
    return g.where((input <= other).logical_or(other != other), 0)


@fmin.deriv("other")
def fmin_deriv_other(g, input, other):
    """1 where it alone is the result."""
    return g.where((input > other).logical_or((input != input).logical_and(other == other)), 0)


@elementwise(reference=lambda x, other: np.where(x == 0, x, x * other), samples=pairs(low=0.3),
             edges=EDGES, signed_zeros=False, takes="floating", public=False, method=False,
             complex=True, factors=("input", "other"))
def zmul(input, other):
    """input * other, but 0 where `input` is 0: a gradient times an infinite or NaN derivative."""


@zmul.deriv("input")
def zmul_deriv_input(other):
    """The other factor."""
    return other


@zmul.deriv("other")
def zmul_deriv_other(input):
    """The other factor."""
    return input


# ---- sums with a product or a quotient -----------------------------------------------------------

@elementwise(kernel="addcmul", reference=lambda x, a, b: x + a * b, samples=three_reals(),
             edges=EDGES, takes="integer floating", tolerance="product", public=False, method=False,
             complex=True, slopes={"input": 1}, factors=("factor", "other"))
def add_product(input, factor, other):
    """input + factor * other in one pass, with broadcasting: see `add` and `addcmul`."""


scaled.by_factor, scaled_down.by_factor = (add_product.op, False), (add_product.op, True)


@add_product.deriv("factor")
def add_product_deriv_factor(other):
    """The other factor."""
    return other


@add_product.deriv("other")
def add_product_deriv_other(factor):
    """The other factor."""
    return factor


@elementwise(kernel="addcdiv", reference=lambda x, a, b: x + a / b, samples=three_reals(low=0.5),
             edges=EDGES, takes="floating", tolerance="product", public=False, method=False,
             complex=True, slopes={"input": 1}, factors=("dividend", "other"))
def add_quotient(input, dividend, other):
    """input + dividend / other in one pass, with broadcasting: see `addcdiv`."""


@add_quotient.deriv("dividend")
def add_quotient_deriv_dividend(other):
    """1 / y"""
    return 1 / other


@add_quotient.deriv("other")
def add_quotient_deriv_other(dividend, other):
    """d/dz (x + y / z) = -y / z**2"""
    return -(dividend / other) / other


for _name, _function in {
    "subtract": sub, "multiply": mul, "divide": div, "true_divide": div, "arctan2": atan2,
}.items():
    alias(_name, _function)
