"""Powers: x**y = e**(y * log(|x|)), the logarithm with enough digits for the largest exponent."""

from tensorlib._kernels.vecmath cimport (
    clamp, floating, infinity, is_negative, magnitude, nan, poly5, poly6, poly7, power_of_two,
    product_error, round_even, scale)
from tensorlib._kernels.vecmath_exp cimport exp_reduce, exp_series
from tensorlib._kernels.vecmath_log cimport log_split


cdef inline float pow_float(float a, float y) noexcept nogil:
    """a**y for finite a > 0, by a logarithm to 2**-45 in double"""
    cdef float k32
    cdef double m, k, s, z, n, tail, r
    m = log_split(a, &k32)
    k = k32
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    s = s * (2.0 + z * poly5(z, 0.19586990202593765, 0.22176004368753963, 0.28572113239698876,
                             0.3999999558668138, 0.6666666667589382))
    # beyond the clamp the result is 0 or infinite; 0 * inf is NaN and belongs to a == 1
    r = exp_reduce(clamp(y * (k * 0.6931471805599453 + s), -110.0, 100.0), &n, &tail)
    r = r + r * r * poly6(r, 0.00019918964435710243, 0.0013946403959290987,  # 2**-34
                          0.008333263313375404, 0.04166626533915061, 0.16666666865059168,
                          0.5000000079267316)
    return <float>((1.0 + r) * power_of_two(n))


cdef inline double log_double(double a, double* low) noexcept nogil:
    """high + low = log(a) for finite a > 0, relative error about 2**-65

    With s = f / (2 + f): log(1 + f) = 2 * s + s * (z * (2/3 + z * Q(z))), z = s**2, all but Q in
    double-double.
    """
    cdef double k, m, f, bottom, bottom_low, inverse, s, s_low, z, z_low, q, c, c_low, t, t_low
    cdef double v, v_low, base, lost, total
    m = log_split(a, &k)
    f = m - 1.0
    bottom = m + 1.0
    bottom_low = m - (bottom - 1.0)
    inverse = 1.0 / bottom
    s = f * inverse
    v = s * bottom
    s_low = (((f - v) - product_error(s, bottom, v)) - s * bottom_low) * inverse
    z = s * s
    z_low = product_error(s, s, z) + 2.0 * s * s_low
    q = z * poly7(z, 0.13199295033879924, 0.1325650686759641, 0.1538677028089269,  # 2**-66.3
                  0.18181784095358716, 0.22222222522913262, 0.28571428570083524,
                  0.4000000000000229)
    c = 0.6666666666666666 + q
    c_low = ((0.6666666666666666 - c) + q) + 3.700743415417188e-17
    t = z * c
    t_low = product_error(z, c, t) + (z * c_low + z_low * c)
    v = s * t
    v_low = product_error(s, t, v) + (s * t_low + s_low * t)
    s = 2.0 * s
    base = k * 6.93147180369123816490e-01
    total = base + s
    lost = (base - total) + s
    base = total + v
    lost = lost + ((total - base) + v) + (2.0 * s_low + v_low + k * 1.90821492927058770002e-10)
    total = base + lost
    low[0] = (base - total) + lost
    return total


cdef inline double pow_double(double a, double y) noexcept nogil:
    """a**y for finite a > 0"""
    cdef double low, high = log_double(a, &low), p, lost, limited, n, tail, r
    p = y * high
    lost = product_error(y, high, p) + y * low
    limited = clamp(p, -746.0, 711.0)
    lost = lost if limited == p else 0.0
    r = exp_reduce(limited, &n, &tail)
    r = r + (r * r * exp_series(r) + (tail + lost) * (1.0 + r))
    return scale(1.0 + r, n)


cdef inline floating pow(floating x, floating y) noexcept nogil:
    """x**y with the exceptions of IEEE 754: pow(x, 0) = pow(1, y) = 1, also for NaN"""
    cdef floating zero = 0, one = 1, half = 0.5, inf = infinity(x)
    cdef floating a = magnitude(x), r, whole = round_even(y), halved = y * half
    cdef bint odd = (whole == y) & (round_even(halved) != halved)
    if floating is float:
        r = pow_float(a, y)
    else:
        r = pow_double(a, y)
    r = (inf if y < 0 else zero) if a == 0 else r
    r = (zero if y < 0 else inf) if a == inf else r
    r = one if a == one else r
    r = nan(x) if (x < 0) & (whole != y) & (a < inf) else r
    r = -r if odd & is_negative(x) else r
    r = x + y if (x != x) | (y != y) else r
    return one if (y == 0) | (x == one) else r
