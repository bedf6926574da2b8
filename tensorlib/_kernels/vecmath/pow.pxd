"""Powers: x**y = e**(y * log(|x|)), the logarithm with enough digits for the largest exponent."""

from tensorlib._kernels.vecmath.basics cimport (
    clamp, floating, infinity, is_negative, magnitude, nan, poly5, poly6, poly7, power_of_two,
    round_even, scale, split_high)
from tensorlib._kernels.vecmath.exp cimport exp_edges, exp_reduce, exp_series
from tensorlib._kernels.vecmath.log cimport log_split


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
    s = y * (k * 0.6931471805599453 + s)
    r = exp_reduce(s, &n, &tail)
    r = r + r * r * poly6(r, 0.00019918964435710243, 0.0013946403959290987,  # 2**-34
                          0.008333263313375404, 0.04166626533915061, 0.16666666865059168,
                          0.5000000079267316)
    r = (1.0 + r) * power_of_two(n)
    r = 0.0 if s < -110.0 else r
    return <float>(infinity(r) if s > 100.0 else r)


cdef inline double log2_parts(double a, double* low) noexcept nogil:
    """high + low = log2(a) for finite a > 0 to about 2**-66, high with half the digits

    As in fdlibm's e_pow.c: numbers cut to half their digits have exact products. With
    s = (m - 1) / (m + 1): log2(a) = k + factor * s * (3 + s**2 + r), factor = 2 / (3 * ln(2)).
    """
    cdef double k, m = log_split(a, &k), inverse = 1.0 / (m + 1.0), s, s_high, s_low, z, r
    cdef double t, t_low, product, product_low, high, scaled
    s = (m - 1.0) * inverse
    s_high = split_high(s)
    t = split_high(m + 1.0)
    t_low = m - (t - 1.0)
    s_low = inverse * (((m - 1.0) - s_high * t) - s_high * t_low)
    z = s * s
    r = z * z * poly7(z, 0.19798942550819887, 0.19884760301394613, 0.23080155421339033,  # 2**-66
                      0.2727267614303807, 0.33333333784369895, 0.4285714285512529,
                      0.6000000000000343)
    r = r + s_low * (s_high + s)
    z = s_high * s_high
    t = split_high(3.0 + (z + r))
    t_low = r - ((t - 3.0) - z)
    product = s_high * t
    product_low = s_low * t + t_low * s
    t = split_high(product + product_low)
    t_low = product_low - (t - product)
    scaled = t * 0.9617966860532761  # the factor in two parts, this one exact
    product_low = t * 7.872699542894897e-09 + t_low * 0.9617966939259756
    high = split_high(k + (scaled + product_low))
    low[0] = product_low - ((high - k) - scaled)
    return high


cdef inline double pow_double(double a, double y) noexcept nogil:
    """a**y for finite a > 0"""
    cdef double low, high = log2_parts(a, &low), y_high, n, r, total
    y = clamp(y, -1e30, 1e30)  # results are 0, 1 or infinite from 2**64 on, and inf has no parts
    y_high = split_high(y)
    low = (y - y_high) * high + y * low
    high = y_high * high
    total = high + low
    n = round_even(total)
    r = ((high - n) + low) * 0.6931471805599453
    total = total * 0.6931471805599453
    return exp_edges(total, scale(1.0 + (r + r * r * exp_series(r)), n))


cdef inline double pow_parts(double a, double y, double more, double* low,
                             double* n) noexcept nogil:
    """e, and (e + low) * 2**n = a**y * exp(more), for finite a > 0, |y| < 1e30 and |more| < 0.1"""
    cdef double rest, high = log2_parts(a, &rest), y_high = split_high(y), r, e
    rest = (y - y_high) * high + y * rest
    high = y_high * high
    n[0] = round_even(high + rest)
    r = ((high - n[0]) + rest) * 0.6931471805599453 + more
    rest = r + r * r * exp_series(r)
    e = 1.0 + rest
    low[0] = (1.0 - e) + rest
    return e


cdef inline bint is_ordinary(floating x, floating y) noexcept nogil:
    """whether `pow_ordinary` gives x**y: not for x <= 0, infinity and NaN"""
    return (x > 0) & (x < infinity(x)) & (magnitude(y) < infinity(y))


cdef inline floating pow_ordinary(floating x, floating y) noexcept nogil:
    if floating is float:
        return pow_float(x, y)
    else:
        return pow_double(x, y)


cdef inline floating pow(floating x, floating y) noexcept nogil:
    """x**y with the exceptions of IEEE 754: pow(x, 0) = pow(1, y) = 1, also for NaN"""
    cdef floating zero = 0, one = 1, half = 0.5, inf = infinity(x)
    cdef floating a = magnitude(x), r, whole = round_even(y), halved = y * half
    cdef bint odd = (whole == y) & (round_even(halved) != halved)
    r = pow_ordinary(a, y)
    r = (inf if y < 0 else zero) if a == 0 else r
    r = (zero if y < 0 else inf) if a == inf else r
    r = one if a == one else r
    r = nan(x) if (x < 0) & (whole != y) & (a < inf) else r
    r = -r if odd & is_negative(x) else r
    r = x + y if (x != x) | (y != y) else r
    return one if (y == 0) | (x == one) else r
