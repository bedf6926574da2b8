"""Special functions of the gamma, normal and Bessel families, element by element.

What PyTorch has in `torch.special` alone is no function of the package and no method here either:
`tensorlib.special` gathers all of them.
"""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import get_default_dtype
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.pointwise import special_references as references
from tensorlib.ops.declare import composite, elementwise, find, op, publish
from tensorlib.ops.formulas import Symbol
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.arithmetic import EDGES
from tensorlib.ops.pointwise.rare import times_log
from tensorlib.ops.publish import publish_in_place
from tensorlib.ops.samples import pairs, reals, refused_calls

inf, nan = float("inf"), float("nan")


def hidden(**declaration):
    """Declares an element-wise function that is neither a function of the package nor a method."""
    return elementwise(public=False, method=False, to_float=True, **declaration)


def noted(loop, *operands):
    """What the operation of this name, which is not a method, gives in a formula.

    Where the operands are symbols, it notes a step of the loop.
    """
    for x in operands:
        if isinstance(x, Symbol):
            return x.apply(loop, *operands)
    return find(loop).function(*operands)


def beside(name, argument):
    """The rule of an argument that has no gradient. Raises: RuntimeError."""
    def rule(g):
        raise RuntimeError(f"{name}: the derivative for {argument!r} is not implemented")
    return rule


def whole_and_real(low, high):
    """Samples of whole numbers in [low, high), and of positive ones that broadcast."""
    def generate(rng):
        for shape, other in (((), ()), ((2, 3), (3,)), ((0,), (1,))):
            yield (rng.integers(low, high, shape), rng.uniform(0.3, 6, other)), {}
    return generate


def given_positive(*numbers):
    """Samples of positive elements, and one of these numbers."""
    def generate(rng):
        for n in numbers:
            yield (rng.uniform(0.4, 6, (2, 3)), n), {}
    return generate


def orders(rng):
    """Samples of `polygamma`."""
    for n in (0, 1, 2):
        yield (n, rng.uniform(0.4, 6, (2, 3))), {}


def sides(rng):
    """Samples of `mvlgamma`."""
    for p in (1, 3):
        yield (rng.uniform(1.3, 6, (2, 3)), p), {}


def each_order(n, x):
    """The reference of `polygamma_numbers`."""
    return references.each(lambda n, x: references.polygamma(int(n), x))(n, x)


# ---- gamma ---------------------------------------------------------------------------------------

@elementwise(reference=references.lgamma, samples=reals(0.3, 6), to_float=True,
             edges=(0.0, -0.0, 1.0, 2.0, -1.0, -2.5, 0.5, 30.0, 1e6, inf, -inf, nan))
def lgamma(input):
    """log(|gamma(input)|) for each element; infinite at 0 and the whole numbers below.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 6.1.

    >>> tensorlib.lgamma(tensorlib.tensor([1., 0.5, 5.]))        # log(4!) = 3.1781
    tensor([0.0000, 0.5724, 3.1781])
    """


@lgamma.deriv
def lgamma_deriv(input):
    """d/dx log |Gamma(x)| = digamma(x)"""
    return input.digamma()


@elementwise(reference=references.digamma, samples=reals(0.3, 6), to_float=True,
             edges=(0.0, -0.0, 1.0, 2.0, -1.0, -2.5, 0.5, 30.0, 1e6, inf, nan))
def digamma(input):
    """The derivative of `lgamma` for each element; -inf at 0, NaN at the whole numbers below.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 6.3.
    """


@digamma.deriv
def digamma_deriv(input):
    """digamma' = trigamma"""
    return noted("trigamma", input)


@hidden(reference=lambda x: references.zeta(2.0, x), samples=reals(0.3, 6),
        edges=(1.0, 2.0, 0.5, 30.0, nan))
def trigamma(input):
    """The derivative of `digamma` for each element."""


@trigamma.deriv
def trigamma_deriv(input):
    """The `polygamma` of order 2."""
    if isinstance(input, Symbol):
        return input.apply("polygamma", 2.0, input)
    return polygamma_of(input, 2)


@hidden(kernel="polygamma", reference=each_order, samples=whole_and_real(0, 5), edges=(1.0, 2.0),
        differentiable=False, tolerance="product")
def polygamma_numbers(order, input):
    """The derivatives of `digamma` of these orders."""


@op(public=False, method=False, reference=references.polygamma_of, takes="floating",
    samples=given_positive(2, 3), tolerance="product")
def polygamma_of(input: Tensor, n):
    """The derivative of `digamma` of order `n` for each element."""
    return polygamma_numbers(float(n), input)


@polygamma_of.symmetric("input")
def polygamma_rule(g, input, n):
    """The next order, times g."""
    return g * polygamma_of(input, n + 1)


@composite(tensors=("input",), out=True, method=False, samples=orders, tolerance="product",
           reference=references.polygamma,
           errors=refused_calls((RuntimeError, -1, np.ones(2)), (TypeError, 1.5, np.ones(2))))
def polygamma(n, input: Tensor):
    """The derivative of `digamma` of order `n`, a whole number, for each element.

    Raises: RuntimeError for a negative `n`, TypeError for what is not an int.
    Source: as `zeta` for orders from 2 on.

    >>> tensorlib.polygamma(1, tensorlib.tensor([1.]))           # pi**2 / 6
    tensor([1.6449])
    """
    n = integer("polygamma", "n", n)
    if n < 0:
        raise RuntimeError(f"polygamma: n must be 0 or more, got {n}")
    if n < 2:
        return trigamma(input) if n else digamma(input)
    if not input.is_floating_point():
        input = input.to(get_default_dtype())
    return polygamma_of(input, min(n, 10000))


def polygamma_method(self, n):
    """`n` comes first in the function, but `self` in the method."""
    return polygamma(n, self)


publish("polygamma", polygamma_method, polygamma.__doc__, public=False)


@composite(out=True, samples=sides, reference=references.mvlgamma, tolerance="product",
           errors=refused_calls((RuntimeError, np.ones(2), 0), (TypeError, np.ones(2), 1.5)))
def mvlgamma(input: Tensor, p: int):
    """The logarithm of the multivariate gamma function of dimension `p` for each element.

    Raises: RuntimeError for `p` below 1, TypeError for what is not an int.
    Source: James, "Distributions of Matrix Variates", Annals of Mathematical Statistics 35, 1964.
    """
    p = integer("mvlgamma", "p", p)
    if not 1 <= p <= 100000:
        raise RuntimeError(f"mvlgamma: p must be in [1, 100000], got {p}")
    total = lgamma(input)
    for j in range(1, p):
        total = total + lgamma(input + -j / 2)
    return total + p * (p - 1) / 4 * 1.1447298858494002                  # log(pi)


# ---- sums and integrals of two arguments ---------------------------------------------------------

@hidden(kernel="zeta", reference=references.zeta, samples=whole_and_real(2, 6),
        edges=(2.0, 3.0, 0.0, nan), differentiable=False)
def zeta_numbers(input, other):
    """See `zeta`."""


@op(public=False, method=False, out=True, reference=references.zeta, samples=whole_and_real(2, 6),
    takes="floating", tolerance="product")
def zeta(input: Tensor, other: Tensor):
    """Hurwitz's zeta function: the sum of (other + i)**-input over i >= 0, with broadcasting.

    Infinite where a term is, NaN for `input` below 1.
    Gradient: to `other` alone; that of `input` is refused.
    Source: Johansson, "Rigorous high-precision computation of the Hurwitz zeta function and its
    derivatives", Numerical Algorithms 69, 2015, for Euler and Maclaurin's formula.
    """
    return zeta_numbers(input, other)


@zeta.symmetric("other")
def zeta_rule(g, input, other):
    """The derivative of zeta(s, q) by q is -s zeta(s + 1, q)."""
    return g * -input * zeta(input + 1, other)


zeta.vjp("input")(beside("zeta", "input"))


@hidden(kernel="gammainc", reference=references.gammainc, samples=whole_and_real(1, 6),
        edges=(0.0, 1.0, 2.5, nan, inf), differentiable=False, signed_zeros=False)
def lower_numbers(input, other):
    """See `igamma`."""


@hidden(kernel="gammaincc", reference=references.gammaincc, samples=whole_and_real(1, 6),
        edges=(0.0, 1.0, 2.5, nan, inf), differentiable=False, signed_zeros=False)
def upper_numbers(input, other):
    """See `igammac`."""


def floats(name, input, other):
    """Both, of which one is floating. Raises: RuntimeError."""
    if not other.is_floating_point():
        raise UnsupportedDtype(f"{name}: takes floating dtypes, got {other.dtype}")
    return input, other


@op(reference=references.gammainc, samples=whole_and_real(1, 6), takes="floating", out=True,
    tolerance="product")
def igamma(input: Tensor, other: Tensor):
    """The regularized lower incomplete gamma function P(input, other), with broadcasting.

    Gradient: to `other` alone; that of `input` is refused.
    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 6.5.

    >>> tensorlib.igamma(tensorlib.tensor([1.]), tensorlib.tensor([2.]))     # 1 - exp(-2)
    tensor([0.8647])
    """
    return lower_numbers(*floats("igamma", input, other))


@op(reference=references.gammaincc, samples=whole_and_real(1, 6), takes="floating", out=True,
    tolerance="product")
def igammac(input: Tensor, other: Tensor):
    """The regularized upper incomplete gamma function, 1 - `igamma`, with broadcasting.

    Gradient: to `other` alone; that of `input` is refused.
    """
    return upper_numbers(*floats("igammac", input, other))


def density(input, other):
    """The derivative of `igamma` for `other`."""
    return ((input - 1).xlogy(other) - other - input.lgamma()).exp()


@igamma.symmetric("other")
def igamma_rule(g, input, other):
    """dP(a, x)/dx = x**(a - 1) e**-x / Gamma(a)"""
    return g * density(input, other)


@igammac.symmetric("other")
def igammac_rule(g, input, other):
    """Q = 1 - P"""
    return g * -density(input, other)


igamma.vjp("input")(beside("igamma", "input"))
igammac.vjp("input")(beside("igammac", "input"))


@hidden(reference=references.moved, samples=pairs(low=0.5, high=4.0, other_low=0.3, other_high=5.0),
        edges=(1.0, 2.0, 0.5, nan), differentiable=False, tolerance="product")
def gamma_gradient(input, other):
    """How a gamma number `other` of shape `input` moves with it, its quantile fixed.

    Source: Figurnov, Mohamed and Mnih, "Implicit Reparameterization Gradients", NeurIPS 2018.
    """


# ---- the normal distribution ---------------------------------------------------------------------

@elementwise(reference=references.erfinv, samples=reals(-0.9, 0.9), edges=(
    0.0, -0.0, 0.5, -0.999, 1.0, -1.0, 2.0, nan), to_float=True)
def erfinv(input):
    """The inverse of `erf` for each element; NaN outside [-1, 1].

    Source: Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2011).

    >>> tensorlib.erfinv(tensorlib.tensor([0., 0.5, 1.]))
    tensor([0.0000, 0.4769,    inf])
    """


@erfinv.deriv
def erfinv_deriv(out):
    """sqrt(pi)/2 e**(y**2): one over the derivative of erf at the result y"""
    return (out * out).exp() * 0.8862269254527579            # sqrt(pi) / 2


@hidden(reference=references.erfcx, samples=reals(-2, 4), edges=(0.0, 1.0, -3.0, 1e8, nan))
def erfcx(input):
    """exp(input**2) * erfc(input) for each element, without overflow between.

    Source: as `erfc`.
    """


@erfcx.deriv
def erfcx_deriv(input, out):
    """d/dx (e**(x**2) erfc(x)) = 2 x y - 2 / sqrt(pi)"""
    return 2 * input * out - 1.1283791670955126              # 2 / sqrt(pi)


@hidden(reference=references.ndtr, samples=reals(-3, 3), edges=EDGES + (-30.0, 9.0))
def ndtr(input):
    """The probability that a standard normal number is below each element."""


@ndtr.deriv
def ndtr_deriv(input):
    """The standard normal density e**(-x**2 / 2) / sqrt(2 pi)."""
    return (input * input * -0.5).exp() * 0.3989422804014327  # 1 / sqrt(2 pi)


@hidden(reference=references.ndtri, samples=reals(0.1, 0.9), edges=(
    0.0, 1.0, 0.5, 0.25, 1e-3, -1.0, 2.0, nan))
def ndtri(input):
    """The inverse of `ndtr` for each element; NaN outside [0, 1].

    Source: as `erfinv`; below 1e-16 Newton's method.
    """


@ndtri.deriv
def ndtri_deriv(out):
    """One over the standard normal density at y."""
    return (out * out * 0.5).exp() * 2.5066282746310002      # sqrt(2 pi)


@hidden(reference=references.log_ndtr, samples=reals(-4, 3), edges=(0.0, 1.0, -1.0, -3.0, 9.0, nan),
        signed_zeros=False)
def log_ndtr(input):
    """log(ndtr(input)) for each element, also where `ndtr` underflows."""


@log_ndtr.deriv
def log_ndtr_deriv(input):
    """sqrt(2 / pi) / erfcx(-input / sqrt(2))"""
    return 0.7978845608028654 / noted("erfcx", input * -0.7071067811865476)


# ---- Bessel functions ----------------------------------------------------------------------------

BESSEL = (0.0, 1.0, -1.0, 7.999, 8.0, 30.0, nan)


@elementwise(reference=references.i0, samples=reals(-6, 6), edges=BESSEL, to_float=True)
def i0(input):
    """The modified Bessel function of the first kind and order 0 of each element.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 9.6.
    """


@i0.deriv
def i0_deriv(input):
    """I0' = I1"""
    return noted("i1", input)


@hidden(reference=references.i0e, samples=reals(-6, 6), edges=BESSEL)
def i0e(input):
    """exp(-|input|) * i0(input) for each element."""


@i0e.deriv
def i0e_deriv(input, out):
    """Of exp(-|x|) I0(x), with I0' = I1."""
    return noted("i1e", input) - input.sign() * out


@hidden(reference=references.i1, samples=reals(0.5, 6), edges=BESSEL, signed_zeros=False)
def i1(input):
    """The modified Bessel function of the first kind and order 1 of each element."""


@i1.deriv
def i1_deriv(input, out):
    """i0(input) - i1(input) / input, one half at 0."""
    return (input.i0() - out / input).where(input != 0, 0.5)


@hidden(reference=references.i1e, samples=reals(0.5, 6), edges=BESSEL, signed_zeros=False)
def i1e(input):
    """exp(-|input|) * i1(input) for each element."""


@i1e.deriv
def i1e_deriv(input, out):
    """Of exp(-|x|) I1(x), with I1' = I0 - I1 / x, which is 1/2 at 0."""
    return (noted("i0e", input) - out * (input.sign() + 1 / input)).where(input != 0, 0.5)


# ---- logarithms ----------------------------------------------------------------------------------

@hidden(reference=references.entr, samples=reals(0.1, 3), edges=(0.0, 1.0, -1.0, inf, nan),
        signed_zeros=False)
def entr(input):
    """-input * log(input) for each element: 0 at 0, -inf below."""


@entr.deriv
def entr_deriv(input):
    """d/dx (-x log(x)) = -log(x) - 1"""
    return -1 - input.log()


@hidden(reference=times_log(np.log1p), samples=pairs(other_low=-0.5), edges=EDGES,
        signed_zeros=False)
def xlog1py(input, other):
    """input * log1p(other), with broadcasting; 0 where `input` is 0 unless `other` is NaN."""


@xlog1py.deriv("input")
def xlog1py_deriv_input(input, other):
    """log(1 + y), but 0 for x = 0 where that is NaN or infinite."""
    return other.log1p().where((input != 0).logical_or(other > -1), 0.0)


@xlog1py.deriv("other")
def xlog1py_deriv_other(input, other):
    """d/dy (x log(1 + y)) = x / (1 + y)"""
    return input / (other + 1)


# ---- in place: gradients need what is written over ----------------------------------------------

for _function in (polygamma_method, mvlgamma, igamma, igammac):
    publish_in_place(_function.__name__, _function, kept=True)
    del _function.inplace           # that takes floats alone, and samples begin with integers

declared(__name__)
