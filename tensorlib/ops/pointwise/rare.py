"""Elementary functions that fewer programs use, element by element."""

import math

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.results import result_type
from tensorlib._core.create.overwrite import write_result
from tensorlib._core.interpreters.capture import may_be_differentiated
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import refuse_complex
from tensorlib.ops.declare import alias, composite, elementwise, publish
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.arithmetic import EDGES, mul, pow
from tensorlib.ops.pointwise.comparison import clamp, lt, where
from tensorlib.ops.samples import given, integers, pairs, reals, three_reals
from tensorlib.ops.shape.parts import view_as_complex, view_as_real

inf, nan = float("inf"), float("nan")
FLOAT64, COMPLEX128, INT32, BOOL = (
    BY_NAME[name] for name in ("float64", "complex128", "int32", "bool"))
# The largest number of each floating dtype.
LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127,
           "float32": (2 - 2**-23) * 2.0**127, "float64": (2 - 2**-52) * 2.0**1023}
Parts = result_type("frexp", "mantissa exponent")


# ---- inverse hyperbolic functions ----------------------------------------------------------------

@elementwise(reference=np.arcsinh, samples=reals(-3, 3), edges=EDGES + (1e-9, 1e30), to_float=True,
             complex=True)
def asinh(input):
    """The inverse hyperbolic sine of each element."""


@asinh.deriv
def asinh_deriv(input):
    """d/dx asinh(x) = 1 / sqrt(x**2 + 1)"""
    return (input * input + 1).rsqrt()


@elementwise(reference=np.arccosh, samples=reals(1.1, 4), edges=EDGES + (1.5, 1e30), to_float=True,
             complex=True)
def acosh(input):
    """The inverse hyperbolic cosine of each element, 0 or more; NaN below 1."""


@acosh.deriv
def acosh_deriv(input):
    """1 / sqrt(input**2 - 1), by roots of two factors: it keeps its digits near 1, and for complex
    numbers it has the branch of `acosh`."""
    return (input - 1).rsqrt() * (input + 1).rsqrt()


@elementwise(reference=np.arctanh, samples=reals(-0.9, 0.9), edges=EDGES + (1e-9, 0.5),
             to_float=True, complex=True)
def atanh(input):
    """The inverse hyperbolic tangent of each element; NaN outside [-1, 1]."""


@atanh.deriv
def atanh_deriv(input):
    """1 / (1 - input**2), as a product that keeps its digits near 1."""
    return 1 / ((1 - input) * (1 + input))


@elementwise(reference=np.sinc, samples=reals(0.1, 3), edges=(0.0, -0.0, 1.0, -2.5, 1e-9, nan),
             to_float=True, signed_zeros=False, complex=True)
def sinc(input):
    """sin(pi * input) / (pi * input) for each element, 1 at 0.

    >>> tensorlib.sinc(tensorlib.tensor([0., 0.5]))
    tensor([1.0000, 0.6366])
    """


@sinc.deriv
def sinc_deriv(input, out):
    """(cos(pi * input) - out) / input, and 0 at 0."""
    return (((input * 3.141592653589793).cos() - out) / input).where(input != 0, 0.0)


# ---- parts of numbers ----------------------------------------------------------------------------

@elementwise(reference=lambda x: x - np.trunc(x), samples=reals(0.1, 0.9),
             edges=(0.0, 1.0, -2.5, nan, inf), takes="floating", slopes={"input": 1})
def frac(input):
    """Each element less its whole part, with its sign: input - trunc(input)."""


@elementwise(reference=np.copysign, samples=pairs(low=0.3), edges=EDGES, to_float=True,
             slopes={"other": 0})
def copysign(input, other):
    """The magnitudes of `input` with the signs of `other`, with broadcasting.

    Gradient: 0 at 0, and to `other`.

    >>> tensorlib.copysign(tensorlib.tensor([1., -2.]), -0.0)
    tensor([-1., -2.])
    """


@copysign.deriv("input")
def copysign_deriv_input(input, out):
    """-1 where the sign was turned; 0 at 0."""
    return input.sign() * out.sign()


def sign_bit(input: Tensor):
    """The `convert` of `signbit`: integers have no -0."""
    refuse_complex("signbit", input)
    zero = False if input.dtype.name == "bool" else 0      # neither is cast
    return (input,) if input.is_floating_point() else [lt, input, zero]


@elementwise(reference=lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
             ufuncs=[np.signbit], samples=reals(-1, 1), edges=EDGES, differentiable=False,
             inplace=False, convert=sign_bit)
def signbit(input):
    """Whether each element has a minus sign, as bool; -0 has one."""


@elementwise(kernel="nextafter", reference=lambda x, y: np.nextafter(x, y), samples=pairs(),
             edges=(0.0, -0.0, 1.0, -2.5, nan), takes="floating", public=False, method=False,
             slopes={"input": 1, "other": 0})
def next_number(input, other):
    """The number after each element of `input` on the way to that of `other`: see `nextafter`."""


@composite(out=True, reference=np.nextafter, samples=pairs(), takes="floating",
           dtypes=("float32", "float64"))
def nextafter(input, other: Tensor):
    """The number after each element of `input` on the way to that of `other`, with broadcasting.

    Gradient: 1 to `input`, from which the result is a rounding error away, and 0 to `other`.

    Raises: RuntimeError for other dtypes than float32 and float64.
    """
    for x in (input, other):
        if x.dtype.name not in ("float32", "float64"):
            raise UnsupportedDtype(f"nextafter: takes float32 and float64, got {x.dtype}")
    return next_number(input, other)


def nextafter_in_place(self, other: Tensor):
    """In-place form of `nextafter`."""
    return write_result("nextafter_", self, nextafter(self, other))


publish("nextafter_", nextafter_in_place, nextafter_in_place.__doc__, public=False)


@elementwise(reference=lambda x: np.frexp(x)[0], samples=reals(0.3, 3), edges=EDGES,
             takes="floating", public=False, method=False)
def mantissa(input):
    """The mantissas of `frexp`."""


@mantissa.deriv
def mantissa_deriv(input, out):
    """A power of two, which for 0 and what is not finite is 1."""
    return (out / input).where((input != 0).logical_and(input.abs() < float("inf")), 1.0)


@elementwise(reference=lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0), takes="floating",
             samples=reals(0.3, 3), edges=EDGES, signed_zeros=False, differentiable=False,
             public=False, method=False)
def exponent(input):
    """The exponents of `frexp`."""


def mantissas(x):
    """The reference of `frexp`."""
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype(np.int32)


@composite(outputs=("mantissa", "exponent"), out=True, reference=mantissas,
           samples=reals(0.3, 3), takes="floating")
def frexp(input):
    """Each element as mantissa * 2**exponent, a named tuple of both, the exponent as int32.

    The mantissa is 0, or in [0.5, 1) or (-1, -0.5].

    Raises: RuntimeError for integers.

    >>> tensorlib.frexp(tensorlib.tensor([6., -0.25])).mantissa
    tensor([ 0.7500, -0.5000])
    """
    if not input.is_floating_point():
        raise UnsupportedDtype(f"frexp: takes floating dtypes, got {input.dtype}")
    return Parts(mantissa(input), exponent(input.detach()).to(INT32))


# ---- powers of two and others --------------------------------------------------------------------

@elementwise(kernel="ldexp", public=False, method=False, inplace=False, to_float=True,
             reference=lambda x, y: x * np.exp2(y * 1.0), samples=pairs(), edges=EDGES,
             complex=True)
def times_power(input, other):
    """input * 2**other, with broadcasting."""


@times_power.deriv("input")
def times_power_deriv_input(other):
    """d/dx (x 2**n) = 2**n"""
    return other.exp2()


@times_power.deriv("other")
def times_power_deriv_other(out):
    """log(2) out."""
    return out * 0.6931471805599453


@composite(out=True, inplace="of a copy", reference=lambda x, y: x * np.exp2(y * 1.0),
           samples=pairs(), tensors=("input", "other"), tolerance="product", rounds_once=False,
           complex=True)
def ldexp(input, other):
    """input * 2**other, with broadcasting.

    >>> tensorlib.ldexp(tensorlib.tensor([1., -3.]), tensorlib.tensor(4))
    tensor([ 16., -48.])
    """
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype is other.dtype and (
            input.dtype.itemsize > 2 and (input.is_floating_point() or input.is_complex())
            and is_spread(other.shape, input.shape)):
        return mul(input, other.exp2())          # powers are taken before they are broadcast
    return times_power(input, other)


def is_spread(sizes, others):
    """Whether a tensor of these sizes is broadcast beside one of others."""
    return len(sizes) < len(others) or any(n == 1 < m for n, m in zip(sizes[::-1], others[::-1]))


@composite(out=True, samples=pairs(low=0.3, other_low=-2.0), reference=np.float_power,
           tolerance="product",
           result_dtype=lambda x, y: COMPLEX128 if x.is_complex() else FLOAT64,
           tensors=("input", "exponent"),
           complex=True)
def float_power(input: object, exponent):
    """`input` to the power of `exponent`, with broadcasting, in float64 or complex128.

    One of both may be a number.

    >>> tensorlib.float_power(tensorlib.tensor([2, 4]), -1)
    tensor([0.5000, 0.2500], dtype=tensorlib.float64)
    """
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError("float_power: input or exponent must be a Tensor")
    return pow(in_double(input), in_double(exponent))


def in_double(x):
    """A tensor in float64 or complex128, or a number as one of Python's."""
    if isinstance(x, Tensor):
        return x.to(COMPLEX128 if x.is_complex() else FLOAT64)
    return complex(x) if isinstance(x, complex) else float(x)


def float_power_in_place(self, exponent):
    """In-place form of `float_power`. Raises: RuntimeError unless the tensor is of float64."""
    if self.dtype != FLOAT64:
        raise RuntimeError(f"float_power_: the tensor must be of float64, got {self.dtype}")
    return self.pow_(in_double(exponent))


publish("float_power_", float_power_in_place, float_power_in_place.__doc__, public=False)


# ---- logarithms ----------------------------------------------------------------------------------

def times_log(log):
    """The reference of `xlogy` and `xlog1py`."""
    def product(x, y):
        with np.errstate(all="ignore"):
            return np.where((x == 0) & ~np.isnan(y), 0.0, x * log(y))
    return product


@elementwise(reference=times_log(np.log), samples=pairs(other_low=0.3), edges=EDGES,
             signed_zeros=False, to_float=True)
def xlogy(input, other):
    """input * log(other), with broadcasting; 0 where `input` is 0 unless `other` is NaN.

    Gradient: to `input` 0 where both are 0.

    >>> tensorlib.xlogy(tensorlib.tensor([0., 2.]), tensorlib.tensor([0., 1.]))
    tensor([0., 0.])
    """


@xlogy.deriv("input")
def xlogy_deriv_input(input, other):
    """log(y), but 0 for x = 0 where that is NaN or infinite."""
    return other.log().where((input != 0).logical_or(other > 0), 0.0)


@xlogy.deriv("other")
def xlogy_deriv_other(input, other):
    """d/dy (x log(y)) = x / y"""
    return input / other


@elementwise(reference=np.logaddexp2, samples=pairs(), edges=EDGES, to_float=True)
def logaddexp2(input, other):
    """log2(2**input + 2**other) without overflow between, with broadcasting."""


@logaddexp2.deriv("input")
def logaddexp2_deriv_input(input, other):
    """2^(x - out); half where both are the same infinity."""
    away = other - input
    return (1 / (1 + away.exp2())).where((input != other).logical_or(away == 0), 0.5)


@logaddexp2.deriv("other")
def logaddexp2_deriv_other(input, other):
    """2^(y - out); half where both are the same infinity."""
    away = input - other
    return (1 / (1 + away.exp2())).where((input != other).logical_or(away == 0), 0.5)


def clamped(input: Tensor, eps=None):
    """The `convert` of `logit`."""
    return (input,) if eps is None else [logit_within, input, eps]


def logit_within(input, eps, out=None):
    """`logit` after the elements were brought into [eps, 1 - eps]."""
    return logit.canonical(clamp(input, eps, 1 - eps), out=out)


logit_within.inplace = lambda input, eps: write_result(
    "logit_", input, logit_within(input, eps))


@elementwise(reference=lambda x: np.log(x / (1 - x)), samples=reals(0.1, 0.9),
             edges=(0.0, -0.0, 0.5, 0.25, 1.0, -0.5, 2.0, nan), to_float=True, convert=clamped)
def logit(input):
    """log(input / (1 - input)) for each element; NaN outside [0, 1].

    eps: brings the elements into [eps, 1 - eps] first.

    >>> tensorlib.logit(tensorlib.tensor([0.5, 2.]), eps=0.5)
    tensor([0., 0.])
    """


@logit.deriv
def logit_deriv(input):
    """1 / (x (1 - x)), NaN outside of [0, 1]."""
    return (1 / (input * (1 - input))).where((input >= 0).logical_and(input <= 1), nan)


# ---- whole numbers -------------------------------------------------------------------------------

@elementwise(reference=np.gcd, samples=integers(2), takes="integer", differentiable=False)
def gcd(input, other):
    """The greatest common divisor of the elements of both, with broadcasting; gcd(0, 0) = 0.

    >>> tensorlib.gcd(tensorlib.tensor([12, 7, 0]), 8)
    tensor([4, 1, 8])
    """


@elementwise(reference=np.lcm, samples=integers(2), takes="integer", differentiable=False)
def lcm(input, other):
    """The least common multiple of the elements of both, with broadcasting; lcm(0, x) = 0."""


# ---- steps and predicates ------------------------------------------------------------------------

def of_one_dtype(input: Tensor, values: Tensor):
    """The `convert` of `heaviside`."""
    if input.dtype != values.dtype:
        raise RuntimeError(f"heaviside: input and values must have one dtype, got {input.dtype} "
                           f"and {values.dtype}")
    return input, values


def where_zero(x, y):
    """The reference of `heaviside`."""
    return np.where(x == 0, y, x > 0).astype(x.dtype)


@elementwise(reference=where_zero, samples=pairs(), edges=EDGES,
             differentiable=False, convert=of_one_dtype)
def heaviside(input, values):
    """0 where `input` is negative, 1 where it is positive, `values` where it is 0.

    Raises: RuntimeError for tensors of different dtypes.

    >>> tensorlib.heaviside(tensorlib.tensor([-1., 0., 2.]), tensorlib.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """


@composite(out=True, differentiable=False, samples=reals(-1, 1), reference=np.isposinf)
def isposinf(input):
    """Whether each element is infinity, as bool."""
    return infinite("isposinf", input, inf)


@composite(out=True, differentiable=False, samples=reals(-1, 1), reference=np.isneginf)
def isneginf(input):
    """Whether each element is minus infinity, as bool."""
    return infinite("isneginf", input, -inf)


def infinite(name, input, which):
    """Whether each element is this infinity; no integer is."""
    refuse_complex(name, input)
    x = input.detach()
    return x == which if x.is_floating_point() else x.new_zeros(x.shape, dtype=BOOL)


@composite(differentiable=False, samples=reals(-1, 1), reference=np.isreal, complex=True)
def isreal(input):
    """Whether each element is real: of imaginary part 0, or of a real dtype."""
    if input.is_complex():
        return input.detach().imag == 0
    return input.detach().new_ones(input.shape, dtype=BOOL)


# ---- angles, and numbers in the place of NaN -----------------------------------------------------

@composite(reference=np.deg2rad, out=True, inplace=True, samples=reals(-360, 360),
           rounds_once=False)
def deg2rad(input):
    """Angles in degrees as radians. Units: degrees -> radians."""
    refuse_complex("deg2rad", input)
    return input * (math.pi / 180)


@composite(reference=np.rad2deg, out=True, inplace=True, samples=reals(-7, 7), rounds_once=False)
def rad2deg(input):
    """Angles in radians as degrees. Units: radians -> degrees."""
    refuse_complex("rad2deg", input)
    return input * (180 / math.pi)


@composite(reference=np.positive, samples=reals(-2, 2), takes="integer floating", view="maybe",
           complex=True)
def positive(input):
    """`input` itself. Raises: RuntimeError for bools, which have no sign."""
    if input.dtype.name == "bool":
        raise RuntimeError("positive: not implemented for bools")
    return input


@elementwise(reference=lambda x, number, most: np.select(
                 [np.isnan(x), x > most, x < -most], [number, most, -most], x),
             samples=three_reals(low=1.0), edges=(0.0, -0.0, 1.0, nan), takes="floating",
             differentiable=False, public=False, method=False)
def finite(input, number, most):
    """Each element between -most and most, and `number` for NaN: see `nan_to_num`."""


def nan_to_num_(input, nan=0.0, posinf=None, neginf=None):
    """In place."""
    if input.is_floating_point() and posinf is neginf is None and not may_be_differentiated(input):
        return finite.inplace(input, 0.0 if nan is None else nan, LARGEST[input.dtype.name])
    return write_result("nan_to_num_", input, nan_to_num(input, nan, posinf, neginf))


@composite(tensors=("input",), out=True, inplace=nan_to_num_,
           reference=lambda x, *numbers, **named: np.nan_to_num(x, True, *numbers, **named),
           samples=given(((2, 3),), ((4,), 1.0, 2.0, 3.0), ((0,),)), complex=True)
def nan_to_num(input: Tensor, nan=0.0, posinf=None, neginf=None):
    """`input` with numbers in the place of NaN and of infinities, in both parts if it is complex.

    These are 0 and the largest and smallest finite numbers of the dtype, unless others are given.
    Gradient: 0 where the element was replaced.

    >>> tensorlib.tensor([1.0, float("nan"), float("inf")]).nan_to_num(posinf=9.0)
    tensor([1., 0., 9.])
    """
    if input.is_complex():
        return view_as_complex(nan_to_num(view_as_real(input), nan, posinf, neginf))
    if not input.is_floating_point():
        return input.clone()
    largest = LARGEST[input.dtype.name]
    if posinf is neginf is None and not may_be_differentiated(input):
        return finite(input, 0.0 if nan is None else nan, largest)
    x = where(input == inf, largest if posinf is None else posinf, input)
    x = where(input == -inf, -largest if neginf is None else neginf, x)
    return where(input != input, 0.0 if nan is None else nan, x)


for _name, _function in {
    "arcsinh": asinh, "arccosh": acosh, "arctanh": atanh,
}.items():
    alias(_name, _function)

declared(__name__)
