"""Bessel functions that oscillate or decay, and orthogonal polynomials, element by element.

They are in `tensorlib.special` alone, as PyTorch's are in `torch.special`.
"""

import numpy as np

from tensorlib._core.base.dtypes import get_default_dtype
from tensorlib._core.create.creation import ones_like, plain_number
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise import special_references as references
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.pointwise.special import hidden, noted
from tensorlib.ops.samples import reals, refused_calls

inf, nan = float("inf"), float("nan")
WAVES = (0.0, 1.0, -1.0, 4.999, 5.0, 30.0, nan)
POSITIVE = (1.0, 1.999, 2.0, 5.0, 30.0, -1.0, nan)
MOST_STEPS = 100_000         # of a recurrence, one for each degree


# ---- Bessel functions ----------------------------------------------------------------------------

@hidden(reference=references.j0, samples=reals(0.5, 12), edges=WAVES)
def bessel_j0(input):
    """The Bessel function of the first kind and order 0 of each element.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 9.1 and 9.2.
    """


@bessel_j0.deriv
def bessel_j0_deriv(input):
    """J0' = -J1"""
    return -noted("bessel_j1", input)


@hidden(reference=references.j1, samples=reals(0.5, 12), edges=WAVES, signed_zeros=False)
def bessel_j1(input):
    """The Bessel function of the first kind and order 1 of each element."""


@bessel_j1.deriv
def bessel_j1_deriv(input, out):
    """J0 - J1 / x, one half at 0."""
    return (noted("bessel_j0", input) - out / input).where(input != 0, 0.5)


@hidden(reference=references.y0, samples=reals(0.5, 12), edges=POSITIVE)
def bessel_y0(input):
    """The Bessel function of the second kind and order 0 of each element: -inf at 0, NaN below."""


@bessel_y0.deriv
def bessel_y0_deriv(input):
    """Y0' = -Y1"""
    return -noted("bessel_y1", input)


@hidden(reference=references.y1, samples=reals(0.5, 12), edges=POSITIVE)
def bessel_y1(input):
    """The Bessel function of the second kind and order 1 of each element: -inf at 0, NaN below."""


@bessel_y1.deriv
def bessel_y1_deriv(input, out):
    """Y1' = Y0 - Y1 / x"""
    return noted("bessel_y0", input) - out / input


@hidden(reference=references.k0, samples=reals(0.5, 6), edges=POSITIVE)
def modified_bessel_k0(input):
    """The modified Bessel function of the second kind and order 0 of each element.

    It is infinite at 0, and NaN below.
    """


@modified_bessel_k0.deriv
def modified_bessel_k0_deriv(input):
    """K0' = -K1"""
    return -noted("modified_bessel_k1", input)


@hidden(reference=references.k1, samples=reals(0.5, 6), edges=POSITIVE)
def modified_bessel_k1(input):
    """The modified Bessel function of the second kind and order 1 of each element.

    It is infinite at 0, and NaN below.
    """


@modified_bessel_k1.deriv
def modified_bessel_k1_deriv(input, out):
    """K1' = -K0 - K1 / x"""
    return -noted("modified_bessel_k0", input) - out / input


@hidden(reference=references.k0e, samples=reals(0.5, 6), edges=POSITIVE)
def scaled_modified_bessel_k0(input):
    """exp(input) * modified_bessel_k0(input) for each element, also where that underflows."""


@scaled_modified_bessel_k0.deriv
def scaled_modified_bessel_k0_deriv(input, out):
    """Of exp(x) K0(x), with K0' = -K1."""
    return out - noted("scaled_modified_bessel_k1", input)


@hidden(reference=references.k1e, samples=reals(0.5, 6), edges=POSITIVE)
def scaled_modified_bessel_k1(input):
    """exp(input) * modified_bessel_k1(input) for each element, also where that underflows."""


@scaled_modified_bessel_k1.deriv
def scaled_modified_bessel_k1_deriv(input, out):
    """Of exp(x) K1(x), with K1' = -K0 - K1 / x."""
    return out - noted("scaled_modified_bessel_k0", input) - out / input


@hidden(reference=references.spherical, samples=reals(0.5, 6),
        edges=(0.0, 1.0, -1.0, inf, nan))
def spherical_bessel_j0(input):
    """sin(input) / input for each element, and 1 at 0."""


@spherical_bessel_j0.deriv
def spherical_bessel_j0_deriv(input, out):
    """(cos(x) - sin(x) / x) / x, 0 at 0."""
    return ((input.cos() - out) / input).where(input != 0, 0)


# ---- orthogonal polynomials ----------------------------------------------------------------------

def polynomial(name, input, n, first, following, factor=1):
    """The polynomials of degrees n by their recurrence: 0 for a degree below 0.

    first: that of degree 1. following: that of degree k + 1, given k, x times a factor and the two
    before.
    """
    input = floating(input)
    x = input.float() if input.itemsize == 2 else input
    if not isinstance(n, Tensor):
        n = degree(name, plain_number(name, "n", n))
        before = found = ones_like(x) if n >= 0 else ones_like(x) - 1
        found = first(x) if n > 0 else found
        times = x if factor == 1 or n < 2 else factor * x
        for k in range(1, n):
            before, found = found, following(k, times, found, before)
        return found.clone() if found is input else found.to(input.dtype)
    n = n.trunc() if n.is_floating_point() else n.long()
    before, now, times = ones_like(x), first(x), factor * x
    found = where(n == 0, before, before - 1)
    last = degree(name, n.max().item()) if n.numel() else 0
    for k in range(1, last + 1):
        found = where(n == k, now, found)
        if k < last:
            before, now = now, following(k, times, now, before)
    return found.to(input.dtype)


def floating(x):
    """Numbers of the default dtype for integers, which have no room for what is computed."""
    return x if x.is_floating_point() else x.to(get_default_dtype())


def degree(name, n):
    """The degree of polynomials. Raises: RuntimeError for one that takes too many steps, or NaN."""
    if not n <= MOST_STEPS:
        raise RuntimeError(f"{name}: degrees up to {MOST_STEPS} are computed, got {n}")
    return int(max(n, -1))


def degrees(*numbers):
    """Samples of elements between -1 and 1 and one of these degrees."""
    def generate(rng):
        for n in numbers:
            yield (rng.uniform(-0.9, 0.9, (2, 3)), n), {}
    return generate


def polynomials(reference):
    """Declares polynomials of elements, whose degree is a number or a tensor."""
    return composite(tensors=("input",), out=True, public=False, method=False,
                     tolerance="product", reference=reference, samples=degrees(1, 2, 5),
                     errors=refused_calls((TypeError, np.ones(2), "1"),
                                          (RuntimeError, np.ones(2), 2 ** 31)))


def times_less(k, x, now, before):
    """x p[k] - p[k - 1]"""
    return x * now - before


@polynomials(references.chebyshev_t)
def chebyshev_polynomial_t(input: Tensor, n):
    """The Chebyshev polynomial of the first kind and degree n: cos(n t) of x = cos(t)."""
    return polynomial("chebyshev_polynomial_t", input, n, lambda x: x, times_less, 2)


@polynomials(references.chebyshev_u)
def chebyshev_polynomial_u(input: Tensor, n):
    """The Chebyshev polynomial of the second kind: sin((n + 1) t) / sin(t) of x = cos(t)."""
    return polynomial("chebyshev_polynomial_u", input, n, lambda x: 2 * x, times_less, 2)


@polynomials(references.chebyshev_v)
def chebyshev_polynomial_v(input: Tensor, n):
    """The Chebyshev polynomial of the third kind: cos((n + 1/2) t) / cos(t / 2) of x = cos(t)."""
    return polynomial("chebyshev_polynomial_v", input, n, lambda x: 2 * x - 1, times_less, 2)


@polynomials(references.chebyshev_w)
def chebyshev_polynomial_w(input: Tensor, n):
    """The Chebyshev polynomial of the fourth kind: sin((n + 1/2) t) / sin(t / 2) of x = cos(t)."""
    return polynomial("chebyshev_polynomial_w", input, n, lambda x: 2 * x + 1, times_less, 2)


def shifted(function):
    """A polynomial of 2 x - 1, for x from 0 to 1."""
    def of_shifted(input: Tensor, n):
        return function(2 * floating(input) - 1, n)
    of_shifted.__name__ = of_shifted.__qualname__ = f"shifted_{function.__name__}"
    of_shifted.__doc__ = f"`{function.__name__}` of 2 * input - 1, for elements from 0 to 1."
    reference = getattr(references, function.__name__.replace("_polynomial", ""))
    return polynomials(lambda x, n: reference(2 * x - 1, n))(of_shifted)


shifted_chebyshev_polynomial_t = shifted(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = shifted(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = shifted(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = shifted(chebyshev_polynomial_w)


@polynomials(references.series(np.polynomial.hermite.hermval))
def hermite_polynomial_h(input: Tensor, n):
    """The physicists' Hermite polynomial of degree n: orthogonal for the weight exp(-x**2)."""
    return polynomial("hermite_polynomial_h", input, n, lambda x: 2 * x,
                      lambda k, x, now, before: (x * now).sub(before, alpha=2 * k), 2)


@polynomials(references.series(np.polynomial.hermite_e.hermeval))
def hermite_polynomial_he(input: Tensor, n):
    """The probabilists' Hermite polynomial of degree n: for the weight exp(-x**2 / 2)."""
    return polynomial("hermite_polynomial_he", input, n, lambda x: x,
                      lambda k, x, now, before: (x * now).sub(before, alpha=k))


@polynomials(references.series(np.polynomial.laguerre.lagval))
def laguerre_polynomial_l(input: Tensor, n):
    """The Laguerre polynomial of degree n: orthogonal for the weight exp(-x) from 0 on."""
    return polynomial("laguerre_polynomial_l", input, n, lambda x: 1 - x,
                      lambda k, x, now, before: (
                          ((2 * k + 1 - x) * now).sub(before, alpha=k) / (k + 1)))


@polynomials(references.series(np.polynomial.legendre.legval))
def legendre_polynomial_p(input: Tensor, n):
    """The Legendre polynomial of degree n: orthogonal on [-1, 1]."""
    return polynomial("legendre_polynomial_p", input, n, lambda x: x,
                      lambda k, x, now, before: (
                          ((2 * k + 1) * x * now).sub(before, alpha=k) / (k + 1)))


declared(__name__)
