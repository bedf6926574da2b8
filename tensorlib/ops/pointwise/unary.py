"""Functions of one tensor, element by element."""

import math
from operator import index as as_int

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib.ops.declare import FUNCTIONS, alias, elementwise
from tensorlib.ops.samples import in_complex, reals

inf, nan = float("inf"), float("nan")
EDGES = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan)


# ---- sign and size -------------------------------------------------------------------------------

@elementwise(reference=np.negative, samples=reals(-3, 3), edges=EDGES, takes="integer floating",
             complex=True, slopes={"input": -1}, no_bools=(None, (
                 "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                 "to invert a mask, use the `~` or `logical_not()` operator instead.")))
def neg(input):
    """The negative of each element."""


@elementwise(reference=np.abs, samples=reals(0.1, 3), edges=EDGES, takes="integer floating",
             complex=True)
def abs(input):
    """The absolute value of each element, real also for complex ones.

    Gradient: sgn(input), so 0 at 0.
    """


@abs.deriv
def abs_deriv(input):
    """conj(x) / |x|; 0 at 0."""
    return input.sgn().conj()


@elementwise(reference=np.conjugate, kernel="conj", samples=in_complex(reals(-3, 3)),
             takes="", public=False, method=False, complex=True)
def conjugated(input):
    """The conjugates of complex numbers: see `conj`."""


@conjugated.deriv
def conjugated_deriv(g):
    """conj(g)"""
    return g.conj()


@elementwise(reference=lambda x: x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x)),
             ufuncs=(np.sign, np.trunc), samples=reals(0.1, 3), edges=EDGES, slopes={"input": 0})
def sign(input):
    """-1, 0 or 1 by the sign of each element; 0 for NaN.

    Gradient: zero.
    """


# ---- powers --------------------------------------------------------------------------------------

@elementwise(reference=np.sqrt, samples=reals(0.1, 4), edges=EDGES, to_float=True, complex=True)
def sqrt(input):
    """The square root of each element; NaN for negative ones.

    Gradient: 1 / (2 sqrt(input)); infinite at 0, unless the incoming gradient is 0 there.
    """


@sqrt.deriv
def sqrt_deriv(out):
    """1 / (2 sqrt(x))"""
    return 0.5 / out


@elementwise(reference=lambda x: 1 / np.sqrt(x), samples=reals(0.1, 4), edges=(1.0, 4.0, inf, nan),
             to_float=True, complex=True)
def rsqrt(input):
    """The reciprocal of the square root of each element."""


@rsqrt.deriv
def rsqrt_deriv(out):
    """d/dx x**(-1/2) = -y**3 / 2"""
    return -0.5 * (out * out * out)


@elementwise(reference=lambda x: x.astype(np.int64) if x.dtype == bool else np.square(x),
             ufuncs=[np.square], samples=reals(-3, 3), edges=EDGES,
             result_dtype=lambda x, **out: BY_NAME["int64"] if x.dtype.name == "bool" else x.dtype,
             complex=True)
def square(input):
    """The square of each element; that of a bool is an int64."""


@square.deriv
def square_deriv(input):
    """2 x"""
    return 2 * input


@elementwise(reference=lambda x: 1 / x, ufuncs=(np.reciprocal,), samples=reals(0.2, 3),
             edges=(1.0, -1.0, inf, nan), to_float=True, complex=True)
def reciprocal(input):
    """One over each element."""


@reciprocal.deriv
def reciprocal_deriv(out):
    """d/dx (1 / x) = -y**2"""
    return -(out * out)


# ---- exponentials and logarithms -----------------------------------------------------------------

@elementwise(reference=np.exp, samples=reals(-3, 3), edges=EDGES + (89.0, -104.0), to_float=True,
             complex=True)
def exp(input):
    """e to the power of each element.

    Source: Cody and Waite, Software Manual for the Elementary Functions (1980), for the reduction
    by multiples of log(2).
    """


@exp.deriv
def exp_deriv(out):
    """e**x"""
    return out


@elementwise(reference=np.expm1, samples=reals(-3, 3), edges=EDGES + (1e-9,), to_float=True,
             complex=True)
def expm1(input):
    """e to the power of each element, minus 1; exact for small elements.

    >>> tensorlib.expm1(tensorlib.tensor(1e-10)), tensorlib.exp(tensorlib.tensor(1e-10)) - 1
    (tensor(1.0000e-10), tensor(0.))
    """


@expm1.deriv
def expm1_deriv(out):
    """e**x = y + 1"""
    return out + 1


@elementwise(reference=np.exp2, samples=reals(-3, 3), edges=EDGES, to_float=True, complex=True)
def exp2(input):
    """2 to the power of each element."""


@exp2.deriv
def exp2_deriv(out):
    """d/dx 2**x = log(2) 2**x"""
    return out * 0.6931471805599453


@elementwise(reference=np.log, samples=reals(0.1, 4), edges=EDGES, to_float=True, complex=True)
def log(input):
    """The natural logarithm of each element; -inf at 0, NaN below.

    Source: fdlibm (Sun Microsystems, 1993), e_log.c.
    """


@log.deriv
def log_deriv(input):
    """1 / x"""
    return 1 / input


@elementwise(reference=np.log1p, samples=reals(-0.5, 3), edges=EDGES + (1e-9,), to_float=True,
             complex=True)
def log1p(input):
    """The natural logarithm of 1 + each element; exact for small elements."""


@log1p.deriv
def log1p_deriv(input):
    """1 / (1 + x)"""
    return 1 / (input + 1)


@elementwise(reference=np.log2, samples=reals(0.1, 4), edges=EDGES, to_float=True, complex=True)
def log2(input):
    """The base-2 logarithm of each element.

    Source: as `log`.
    """


@log2.deriv
def log2_deriv(input):
    """1 / (x log(2))"""
    return 1 / (input * 0.6931471805599453)


@elementwise(reference=np.log10, samples=reals(0.1, 4), edges=EDGES, to_float=True, complex=True)
def log10(input):
    """The base-10 logarithm of each element."""


@log10.deriv
def log10_deriv(input):
    """1 / (x log(10))"""
    return 1 / (input * 2.302585092994046)


# ---- trigonometry --------------------------------------------------------------------------------

@elementwise(reference=np.sin, samples=reals(-4, 4), edges=EDGES + (1e5, 1e22), to_float=True,
             complex=True)
def sin(input):
    """The sine of each element.

    Units: radians.

    Source: Cody and Waite, Software Manual for the Elementary Functions (1980); for large elements
    Payne and Hanek, "Radian Reduction for Trigonometric Functions", SIGNUM Newsletter 18(1), 1983.
    """


@sin.deriv
def sin_deriv(input):
    """cos(x)"""
    return input.cos()


@elementwise(reference=np.cos, samples=reals(-4, 4), edges=EDGES + (1e5, 1e22), to_float=True,
             complex=True)
def cos(input):
    """The cosine of each element.

    Units: radians.

    Source: as `sin`.
    """


@cos.deriv
def cos_deriv(input):
    """-sin(x)"""
    return -input.sin()


@elementwise(reference=np.tan, samples=reals(-1.2, 1.2), edges=EDGES + (1e5,), to_float=True,
             complex=True)
def tan(input):
    """The tangent of each element.

    Units: radians.

    Source: as `sin`.
    """


@tan.deriv
def tan_deriv(out):
    """1 + tan(x)**2"""
    return out * out + 1


@elementwise(reference=np.arcsin, samples=reals(-0.9, 0.9), edges=EDGES, to_float=True,
             complex=True)
def asin(input):
    """The arcsine of each element, in [-pi/2, pi/2]; NaN outside [-1, 1].

    Units: radians.
    """


@asin.deriv
def asin_deriv(input):
    """1 / sqrt(1 - input**2), as a product that keeps its digits near 1."""
    return ((1 - input) * (1 + input)).rsqrt()


@elementwise(reference=np.arccos, samples=reals(-0.9, 0.9), edges=EDGES, to_float=True,
             complex=True)
def acos(input):
    """The arccosine of each element, in [0, pi]; NaN outside [-1, 1].

    Units: radians.
    """


@acos.deriv
def acos_deriv(input):
    """-1 / sqrt(1 - input**2), as a product that keeps its digits near 1."""
    return -((1 - input) * (1 + input)).rsqrt()


@elementwise(reference=np.arctan, samples=reals(-3, 3), edges=EDGES, to_float=True, complex=True)
def atan(input):
    """The arctangent of each element, in [-pi/2, pi/2].

    Units: radians.

    Source: fdlibm (Sun Microsystems, 1993), s_atan.c.
    """


@atan.deriv
def atan_deriv(input):
    """1 / (1 + x**2)"""
    return 1 / (input * input + 1)


# ---- hyperbolic functions, activations, error functions ------------------------------------------

@elementwise(reference=np.sinh, samples=reals(-3, 3), edges=EDGES, to_float=True, complex=True)
def sinh(input):
    """The hyperbolic sine of each element."""


@sinh.deriv
def sinh_deriv(input):
    """cosh(x)"""
    return input.cosh()


@elementwise(reference=np.cosh, samples=reals(-3, 3), edges=EDGES, to_float=True, complex=True)
def cosh(input):
    """The hyperbolic cosine of each element."""


@cosh.deriv
def cosh_deriv(input):
    """sinh(x)"""
    return input.sinh()


@elementwise(reference=np.tanh, samples=reals(-3, 3), edges=EDGES + (1e4, 1e-9), to_float=True,
             complex=True)
def tanh(input):
    """The hyperbolic tangent of each element."""


@tanh.deriv(fused="tanh_backward")
def tanh_deriv(out):
    """1 - tanh(x)**2"""
    return 1 - out * out


@elementwise(reference=lambda x: 0.5 * (1 + np.tanh(0.5 * x)), samples=reals(-4, 4),
             edges=EDGES + (1e4,), to_float=True, complex=True)
def sigmoid(input):
    """1 / (1 + exp(-input)) for each element."""


@sigmoid.deriv(fused="sigmoid_backward")
def sigmoid_deriv(out):
    """y (1 - y) for y = sigmoid(x)"""
    return out * (1 - out)


@elementwise(reference=lambda x: np.maximum(x, 0), samples=reals(0.1, 3),
             edges=(0.0, 1.0, -1.0, inf, -inf, nan), takes="integer floating")
def relu(input):
    """The larger of each element and 0.

    Gradient: 1 above 0 and for NaN, 0 elsewhere, at 0 too.

    Source: Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", ICML
    2010.
    """


@relu.deriv(fused="relu_backward")
def relu_deriv(g, out):
    """1 but where `out` is 0."""
    return g.where(out != 0, 0)


@elementwise(reference=np.vectorize(math.erf, otypes=[float]), samples=reals(-3, 3),
             edges=EDGES, to_float=True)
def erf(input):
    """The error function of each element.

    Source: as `erfc`, in float64.
    """


@erf.deriv
def erf_deriv(input):
    """2 / sqrt(pi) e**(-x**2)"""
    return (-(input * input)).exp() * 1.1283791670955126    # 2 / sqrt(pi)


@elementwise(reference=np.vectorize(math.erfc, otypes=[float]), samples=reals(-3, 3),
             edges=EDGES, to_float=True)
def erfc(input):
    """One minus the error function of each element, exact where that is small.

    Source: Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <=
    x < inf", Mathematics of Computation 36, 1981.
    """


@erfc.deriv
def erfc_deriv(input):
    """-2 / sqrt(pi) e**(-x**2)"""
    return (-(input * input)).exp() * -1.1283791670955126


# ---- rounding: the gradient is zero --------------------------------------------------------------

@elementwise(reference=np.floor, samples=reals(0.1, 0.9), edges=EDGES + (-1.5,),
             takes="integer floating", slopes={"input": 0})
def floor(input):
    """The largest whole number not above each element.

    Gradient: zero.
    """


@elementwise(reference=np.ceil, samples=reals(0.1, 0.9), edges=EDGES + (-1.5,),
             takes="integer floating", slopes={"input": 0})
def ceil(input):
    """The smallest whole number not below each element.

    Gradient: zero.
    """


def to_decimals(input, *, decimals=0):
    """The `convert` of `round`."""
    return (input,) if type(decimals) is int and decimals == 0 else [rounded_to, input, decimals]


def rounded_to(input, decimals, out=None):
    """What `round` gives for a number of decimals, which may be negative."""
    if not input.is_floating_point():
        raise RuntimeError(f"round: takes decimals for floating-point dtypes, got {input.dtype}")
    try:
        decimals = as_int(decimals)
        power = 10.0 ** (decimals if decimals > 0 else -decimals)
    except (TypeError, OverflowError):
        raise TypeError(f"round: decimals must be a small int, got {decimals!r}") from None
    if decimals > 0:
        return FUNCTIONS["div"]((input * power).round(), power, out=out)
    return FUNCTIONS["mul"]((input / power).round(), power, out=out)


rounded_to.inplace = lambda input, decimals: input.copy_(rounded_to(input, decimals))


@elementwise(reference=lambda x: np.rint(x).astype(x.dtype), ufuncs=[np.trunc],
             samples=reals(0.1, 0.4), edges=EDGES + (0.5, 1.5, 2.5, -0.5), takes="integer floating",
             convert=to_decimals, slopes={"input": 0})
def round(input):
    """The nearest whole number to each element, halves to even; or to so many `decimals`.

    Gradient: zero.

    >>> tensorlib.round(tensorlib.tensor([0.5, 1.5, 2.5, -2.6]))
    tensor([ 0.,  2.,  2., -3.])
    """


@elementwise(reference=np.trunc, samples=reals(0.1, 0.9), edges=EDGES + (-1.5,),
             takes="integer floating", slopes={"input": 0})
def trunc(input):
    """Each element without its fraction.

    Gradient: zero.
    """


# ---- predicates ----------------------------------------------------------------------------------

@elementwise(reference=np.isnan, samples=reals(-1, 1), edges=EDGES, differentiable=False,
             inplace=False, complex=True)
def isnan(input):
    """Whether each element is NaN, as bool."""


@elementwise(reference=np.isinf, samples=reals(-1, 1), edges=EDGES, differentiable=False,
             inplace=False, complex=True)
def isinf(input):
    """Whether each element is infinite, as bool."""


@elementwise(reference=np.isfinite, samples=reals(-1, 1), edges=EDGES, differentiable=False,
             inplace=False, complex=True)
def isfinite(input):
    """Whether each element is neither infinite nor NaN, as bool."""


for _name, _function in {
    "negative": neg, "absolute": abs, "arcsin": asin, "arccos": acos, "arctan": atan, "fix": trunc,
}.items():
    alias(_name, _function)
