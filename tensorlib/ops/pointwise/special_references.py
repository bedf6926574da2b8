"""What the special functions are compared with: NumPy's arithmetic, by definitions and recurrences.

They are slow, and exact to some 12 digits where the samples of the declarations lie.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.polynomial import chebyshev as T

inf, nan = math.inf, math.nan
ANGLES = (np.arange(400) + 0.5) * (math.pi / 400)


def each(function):
    """A function of floats, for arrays."""
    return np.vectorize(function, otypes=[float])


@each
def lgamma(x):
    """`math.lgamma`, which raises at its poles."""
    return inf if x == -inf or x <= 0 and x == math.floor(x) else math.lgamma(x)


@each
def digamma(x):
    """By psi(x) = psi(x + 1) - 1 / x, and from 30 on by its asymptotic series."""
    if x == 0:
        return -math.copysign(inf, x)
    if x < 0 and x == math.floor(x):
        return nan
    total = 0.0
    while x < 30:
        total -= 1 / x
        x += 1
    return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


@each
def zeta(s, q):
    """The sum, and from 30 on its integral with corrections."""
    if s != s or q != q or s < 1:
        return nan
    if s == 1 or q <= 0:
        return inf
    total = 0.0
    while q < 30:
        total += q**-s
        q += 1
    return total + q**(1 - s) / (s - 1) + q**-s / 2 + s * q**(-s - 1) / 12 - (
        s * (s + 1) * (s + 2) * q**(-s - 3) / 720)


def polygamma(n, x):
    """The n-th derivative of digamma, by the Hurwitz zeta function."""
    if n == 0:
        return digamma(x)
    return (-1) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, x)


def polygamma_of(x, n):
    """`polygamma` with its arguments in the order of the method."""
    return polygamma(n, x)


def mvlgamma(x, p):
    """The sum of lgamma(x - j / 2) of which the multivariate function consists."""
    return p * (p - 1) / 4 * math.log(math.pi) + sum(lgamma(x - j / 2) for j in range(p))


@each
def gammainc(a, x):
    """The series of the lower incomplete gamma function."""
    if not (a >= 0 and x >= 0):
        return nan
    if a == inf:
        return nan if x == inf else 0.0
    if a == 0 or x == 0 or x == inf:
        return nan if a == x == 0 else float(x > 0)
    term = total = 1 / a
    for n in range(1, 500):
        term *= x / (a + n)
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))


def gammaincc(a, x):
    """1 - gammainc(a, x)"""
    return 1 - gammainc(a, x)


@each
def erfinv(x):
    """By the quantile function of the normal distribution."""
    if not 0 < abs(x) < 1:
        return x * inf if abs(x) == 1 else x if x == 0 else nan
    return NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)


@each
def ndtri(p):
    """The quantile function of the normal distribution, infinite at 0 and 1."""
    if not 0 < p < 1:
        return inf if p == 1 else -inf if p == 0 else nan
    return NormalDist().inv_cdf(p)


@each
def erfcx(x):
    """exp(x^2) erfc(x), beyond 25 by its asymptote 1 / (x sqrt(pi))."""
    return 1 / (x * math.sqrt(math.pi)) if x > 25 else nan if x != x else (
        inf if x < -27 else math.exp(x * x) * math.erfc(x))


@each
def ndtr(x):
    """erfc(-x / sqrt(2)) / 2"""
    return 0.5 * math.erfc(-x / math.sqrt(2))


@each
def log_ndtr(x):
    """log(ndtr(x)), below -35 by its leading term."""
    return -x * x / 2 if x < -35 else math.log(ndtr(x))


def by_angles(integrand):
    """The mean of integrand(x, angle) over angles in [0, pi]."""
    @each
    def function(x):
        if math.isinf(x):
            return nan
        return float(np.mean(integrand(x, ANGLES)))
    return function


i0 = by_angles(lambda x, t: np.exp(x * np.cos(t)))
i1 = by_angles(lambda x, t: np.exp(x * np.cos(t)) * np.cos(t))
i0e = by_angles(lambda x, t: np.exp(x * np.cos(t) - abs(x)))
i1e = by_angles(lambda x, t: np.exp(x * np.cos(t) - abs(x)) * np.cos(t))


def wave(n, x):
    """The Bessel function of the first kind and order n, by its integral."""
    return float(np.mean(np.cos(n * ANGLES - x * np.sin(ANGLES))))


j0, j1 = each(lambda x: wave(0, x)), each(lambda x: wave(1, x))


@each
def y0(x):
    """By Neumann's series of functions of the first kind."""
    if not x > 0:
        return nan if x != 0 else -inf
    terms = [(-1) ** k * wave(2 * k, x) / k for k in range(1, 60)]
    return (2 * (math.log(x / 2) + 0.5772156649015329) * wave(0, x) - 4 * sum(terms)) / math.pi


@each
def y1(x):
    """By its product with J0: J1 Y0 - J0 Y1 = 2 / (pi x)."""
    if not x > 0:
        return nan if x != 0 else -inf
    return (wave(1, x) * float(y0(x)) - 2 / (math.pi * x)) / wave(0, x)


def by_hyperbolas(order, scaled):
    """The modified Bessel function of the second kind, by its integral."""
    t = np.arange(0, 12, 0.01)

    @each
    def function(x):
        if not x > 0:
            return nan if x != 0 else inf
        terms = np.exp(-x * (np.cosh(t) - scaled)) * np.cosh(order * t)
        return float(0.01 * (terms.sum() - terms[0] / 2))
    return function


@each
def spherical(x):
    """sin(x) / x, with its limits at 0 and infinity."""
    return 0.0 if math.isinf(x) else 1.0 if x == 0 else math.sin(x) / x


k0, k1, k0e, k1e = [by_hyperbolas(order, scaled) for scaled in (0, 1) for order in (0, 1)]


# ---- orthogonal polynomials ----------------------------------------------------------------------

def series(values):
    """The polynomial of one degree, by NumPy's sum of a series of such."""
    return np.vectorize(lambda x, n: values(x, [0] * int(n) + [1]) if n >= 0 else 0.0,
                        otypes=[float])


def chebyshev(others):
    """Of the second kind, with so many times the one of the degree below: the derivatives of those
    of the first kind."""
    def second(x, n):
        return T.chebval(x, T.chebder([0] * int(n + 1) + [1])) / (n + 1) if n >= 0 else 0.0
    return np.vectorize(lambda x, n: second(x, n) + others * second(x, n - 1), otypes=[float])


chebyshev_t = series(T.chebval)
chebyshev_u, chebyshev_v, chebyshev_w = map(chebyshev, (0, -1, 1))


# ---- others --------------------------------------------------------------------------------------

@each
def entr(x):
    """-x log(x), 0 at 0 and -inf below."""
    return -inf if x < 0 else 0.0 if x == 0 else -x * math.log(x) if x < inf else -x


def moved(a, x, step=1e-5):
    """-(dP/da) / (dP/dx) of the lower incomplete gamma function, by differences."""
    def slope(da, dx):
        return gammainc(a + da, x + dx) - gammainc(a - da, x - dx)
    with np.errstate(all="ignore"):
        return -slope(step, 0.0) / slope(0.0, step)
