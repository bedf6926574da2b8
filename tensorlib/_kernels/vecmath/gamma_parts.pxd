"""Incomplete gamma functions, and how a gamma number moves with its shape, in double.

Source: Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 6.5 and 26.4, for the series
and the continued fraction; Temme, "The asymptotic expansion of the incomplete gamma functions",
SIAM Journal on Mathematical Analysis 10(4), 1979; Fisher and Cornish, "The Percentile Points of
Distributions Having Known Cumulants", Technometrics 2(2), 1960, for the quantiles of large shapes;
Figurnov, Mohamed and Mnih, "Implicit Reparameterization Gradients", NeurIPS 2018.
"""

from tensorlib._kernels.vecmath.basics cimport infinity, magnitude, nan, poly4, poly5, sqrt
from tensorlib._kernels.vecmath.erf cimport erfc
from tensorlib._kernels.vecmath.exp cimport exp
from tensorlib._kernels.vecmath.gamma cimport digamma_positive, lgamma_positive, stirling
from tensorlib._kernels.vecmath.log cimport log, log1p

cdef enum:
    MANY = 100000       # terms; of the series some 8 * sqrt(a) are enough


cdef inline double log1p_less(double m) noexcept nogil:
    """log1p(m) - m, exact where it is small"""
    cdef double r = m / (2.0 + m), y = r * r                # log1p(m) = 2 * atanh(r)
    y = r * (2.0 * y * (1.0 / 3 + y * (1.0 / 5 + y * (1.0 / 7 + y * (1.0 / 9 + y * (
        1.0 / 11 + y * (1.0 / 13 + y * (1.0 / 15 + y / 17))))))) - m)
    return log1p(m) - m if magnitude(m) > 0.2 else y


cdef inline double gamma_density(double a, double x) noexcept nogil:
    """x**a * exp(-x) / gamma(a + 1)"""
    cdef bint small = a < 10.0
    cdef double power = a * (log(x) if small else log1p_less((x - a) / a))
    cdef double rest = x + lgamma_positive(a + 1.0) if small else stirling(a)
    return exp(power - rest) * (1.0 if small else 0.3989422804014327 / sqrt(a))


cdef inline double upper_fraction(double a, double x, double* slope) noexcept nogil:
    """h with gamma(a, x) = x**a * exp(-x) * h for x >= a + 1, and its derivative for a

    Lentz's continued fraction, each of its parts with its derivative.
    """
    cdef double b = x + 1.0 - a, db = -1.0, c = 1e300, dc = 0.0, d = 1.0 / b, dd = d * d
    cdef double h = d, dh = dd, top, dtop, delta, ddelta, dy
    cdef int i
    for i in range(1, MANY):
        top = -i * (i - a)
        dtop = i
        b += 2.0
        dy = db + dtop * d + top * dd
        d = 1.0 / (b + top * d)
        dd = -dy * d * d
        dy = db + dtop / c - top * dc / (c * c)
        c = b + top / c
        dc = dy
        delta = d * c
        ddelta = dd * c + d * dc
        dh = dh * delta + h * ddelta
        h = h * delta
        if magnitude(delta - 1.0) < 1e-16 and magnitude(ddelta) < 1e-16 * (1 + magnitude(dh / h)):
            break
    slope[0] = dh
    return h


cdef inline double near_shape(double a, double x) noexcept nogil:
    """the smaller part for a > 1e5 and x near a, by Temme's uniform expansion; error 1e-14"""
    cdef double y = -log1p_less((x - a) / a), eta = sqrt(2.0 * y), s
    eta = -eta if x < a else eta
    s = poly5(eta, 0.00035273368606701936, 0.0011574074074074073, -0.014814814814814815,
              0.08333333333333333, -0.3333333333333333)
    s += poly4(eta, -0.0009902263374485596, 0.0026455026455026454, -0.003472222222222222,
               -0.001851851851851852) / a
    s = s * exp(-a * y) * 0.3989422804014327 / sqrt(a)
    return 0.5 * erfc(sqrt(a * y)) + (-s if x < a else s)


cdef inline bint is_rare(double a, double x) noexcept nogil:
    """whether the incomplete gamma functions go by `rare_part`"""
    cdef bint near = (a > 1e5) & (magnitude(x - a) < 0.05 * a)
    return near | (not ((a > 0) & (a < infinity(a)) & (x > 0) & (x < infinity(x))))


cdef inline double rare_part(double a, double x, bint upper) noexcept nogil:
    """the regularized incomplete gamma function, the lower one or the upper one, at the edges and
    near a large shape"""
    cdef double part
    if not (a >= 0 and x >= 0) or (a == 0 and x == 0):
        return nan(a)
    if a == infinity(a):
        return nan(a) if x == infinity(x) else 1.0 if upper else 0.0
    if x == 0 or a == 0 or x == infinity(x):
        return 1.0 if upper == (x == 0) else 0.0
    part = near_shape(a, x)
    return part if upper == (x >= a) else 1.0 - part


cdef inline double large_shape(double a, double z, double* slope) noexcept nogil:
    """the quantile of a gamma number of shape a > 1000 at that of z, and its derivative for a"""
    cdef double r = sqrt(a), y = z * z
    cdef double c3 = (y * z - 7.0 * z) / 36.0, c4 = (3.0 * y * y + 7.0 * y - 16.0) / 810.0
    slope[0] = 1.0 + (0.5 * z - 0.5 * c3 / a) / r + c4 / (a * a)
    return a + r * z + (y - 1.0) / 3.0 + c3 / r - c4 / a


cdef inline double gamma_gradient(double a, double x) noexcept nogil:
    """how a gamma number x of shape a moves with a, at its quantile: -(dP/da) / (dP/dx)"""
    cdef double term, total, l, psi, slope, h, z
    cdef int i
    if not (a > 0 and x > 0) or a == infinity(a) or x == infinity(x):
        return 0.0 if x == 0 and a > 0 else nan(a)
    if a > 1000.0:
        z = (x - a) / sqrt(a)
        for i in range(20):                  # dx/dz is near sqrt(a)
            l = (x - large_shape(a, z, &slope)) / (sqrt(a) + 0.6666666666666666 * z)
            z += l
            if magnitude(l) < 1e-13:
                break
        large_shape(a, z, &slope)
        return slope
    l = log(x)
    if x >= a + 1.0:
        h = upper_fraction(a, x, &slope)
        return x * (h * (l - digamma_positive(a)) + slope)
    psi = digamma_positive(a + 1.0)
    term, total = x / a, 0.0
    for i in range(1, MANY):                 # the derivative of each term of the series
        total += term * (psi - l)
        if term * (1.0 + magnitude(psi - l)) < 1e-17 * magnitude(total):
            break
        psi += 1.0 / (a + i)
        term *= x / (a + i)
    return total
