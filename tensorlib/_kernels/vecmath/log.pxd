"""Logarithms: log, log1p, log2, log10, by the scheme of fdlibm's e_log.c, and functions of them.

x = 2**k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f),
log(1 + f) = f - f**2 / 2 + s * (f**2 / 2 + R), R = log((1 + s) / (1 - s)) / s - 2.
"""

from tensorlib._kernels.vecmath.basics cimport (
    bits32, bits64, floating, from_bits32, from_bits64, infinity, magnitude, nan, poly4, poly5,
    poly7, sqrt, uint32_t, uint64_t, with_sign)


cdef inline floating least_normal(floating like) noexcept nogil:
    """the smallest number that is not subnormal"""
    if floating is float:
        return <float>1.17549435e-38
    else:
        return 2.2250738585072014e-308


cdef inline floating log_split(floating x, floating* k) noexcept nogil:
    """m in [sqrt(1/2), sqrt(2)) with x = 2**k * m, for finite x > 0, subnormal too"""
    cdef uint32_t b32
    cdef uint64_t b64
    cdef bint subnormal = x < least_normal(x)
    cdef floating lift, magic
    # the exponent joins the bits of 2**23 (2**52), which makes a number of it by one subtraction:
    # int64 to double has no instruction before AVX-512
    if floating is float:
        lift = 8388608.0
        magic = 8388608.0 + 127
        b32 = bits32(x * lift if subnormal else x) + (0x3F800000u - 0x3F3504F3u)
        k[0] = from_bits32((b32 >> 23) | 0x4B000000u) - magic
        k[0] = k[0] - <float>23 if subnormal else k[0]
        return from_bits32((b32 & 0x007FFFFFu) + 0x3F3504F3u)
    else:
        lift = 4503599627370496.0
        magic = 4503599627370496.0 + 1023
        b64 = bits64(x * lift if subnormal else x) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu)
        k[0] = from_bits64((b64 >> 52) | 0x4330000000000000u) - magic
        k[0] = k[0] - 52 if subnormal else k[0]
        return from_bits64((b64 & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu)


cdef inline floating log_series(floating z) noexcept nogil:
    """R of the module's docstring for z = s**2 in [0, 0.0295]"""
    if floating is float:  # 2**-37.6
        return z * poly4[float](z, 0.23584968, 0.2853717, 0.40000337, 0.6666666)
    else:  # 2**-59.5
        return z * poly7(
            z, 0.14799063930476122, 0.15313755762475287, 0.18183575173932534,
            0.22222198378157346, 0.28571428744145855, 0.3999999999940746, 0.6666666666666735)


cdef inline floating log_edges(floating x, floating y) noexcept nogil:
    """y, or what a logarithm gives where x is not finite and positive"""
    y = y if x < infinity(x) else x
    y = -infinity(x) if x == 0 else y
    return nan(x) if x < 0 else y


cdef inline floating log_combine(floating k, floating f, floating tail) noexcept nogil:
    """k * ln(2) + log(1 + f) + tail"""
    cdef floating half = 0.5, two = 2, ln2_high, ln2_low, s, hfsq
    if floating is float:
        ln2_high = 6.9313812256e-01
        ln2_low = 9.0580006145e-06
    else:
        ln2_high = 6.93147180369123816490e-01
        ln2_low = 1.90821492927058770002e-10
    s = f / (two + f)
    hfsq = half * f * f
    return k * ln2_high - ((hfsq - (s * (hfsq + log_series(s * s)) + (k * ln2_low + tail))) - f)


cdef inline floating log(floating x) noexcept nogil:
    cdef floating zero = 0, one = 1, k, m = log_split(x, &k)
    return log_edges(x, log_combine(k, m - one, zero))


cdef inline floating log1p_parts(floating x, floating low) noexcept nogil:
    """log(1 + x + low): log(u) + (x - (u - 1) + low) / u for u = 1 + x

    Near 0 the series takes x itself.
    """
    cdef floating zero = 0, one = 1, u = one + x, k, m, lost
    m = log_split(u, &k)
    lost = one - (u - x) if x > one else x - (u - one)
    lost = ((zero if k == 0 else lost) + low) / u
    m = log_combine(k, x if k == 0 else m - one, lost)
    m = m if x < infinity(x) else x
    m = -infinity(x) if x == -one else m
    m = nan(x) if x < -one else m
    return x if x == 0 else m  # the sum loses the sign of -0


cdef inline floating log1p(floating x) noexcept nogil:
    cdef floating nothing = -0.0   # adding it changes no number, and the compiler leaves it out
    return log1p_parts(x, nothing)


cdef inline floating log1p_unit(floating x) noexcept nogil:
    """log(1 + x) for x in [0, 1] or NaN, by s = x / (2 + x) without a power of 2 split off

    x - s * (x - R), R as in the module's docstring, a series in s**2 up to 1 / 9. It takes a third
    of the steps of `log1p`; after an exp the processor otherwise waits for one element's.
    """
    cdef floating two = 2, s = x / (two + x), z = s * s, series
    if floating is float:  # 2**-27
        series = poly4[float](z, 0.23224329, 0.21706576, 0.28592358, 0.39999706)
        series = series * z + <float>0.6666667
    else:  # 2**-50
        series = poly7(
            z, 0.09735907062185165, 0.10618599253394084, 0.10137605045182144, 0.11823516408900397,
            0.1332830622896241, 0.1538487695869436, 0.18181809824240536)
        series = series * z + 0.22222222379873113
        series = series * z + 0.28571428569854007
        series = series * z + 0.40000000000006275
        series = series * z + 0.6666666666666665
    return x - s * (x - z * series)


cdef inline floating log_parts(floating f, floating* low) noexcept nogil:
    """high + low = log(1 + f), high with few digits (fdlibm's e_log2.c)"""
    cdef floating half = 0.5, two = 2, s = f / (two + f), hfsq = half * f * f, high
    if floating is float:
        high = from_bits32(bits32(f - hfsq) & 0xFFFFF000u)
    else:
        high = from_bits64(bits64(f - hfsq) & 0xFFFFFFFF00000000u)
    low[0] = ((f - high) - hfsq) + s * (hfsq + log_series(s * s))
    return high


cdef inline floating log2(floating x) noexcept nogil:
    cdef floating one = 1, k, high, low, m = log_split(x, &k), total, factor_high, factor_low
    if floating is float:  # 1 / ln(2)
        factor_high = 1.4428710938e+00
        factor_low = -1.7605285393e-04
    else:
        factor_high = 1.44269504072144627571e+00
        factor_low = 1.67517131648865118353e-10
    high = log_parts(m - one, &low)
    low = (low + high) * factor_low + low * factor_high
    high = high * factor_high
    total = k + high
    return log_edges(x, (low + ((k - total) + high)) + total)


cdef inline floating log10(floating x) noexcept nogil:
    cdef floating one = 1, k, high, low, m = log_split(x, &k), total, base
    cdef floating factor_high, factor_low, log10_2_high, log10_2_low
    if floating is float:  # 1 / ln(10) and log10(2)
        factor_high = 4.3432617188e-01
        factor_low = -3.1689971365e-05
        log10_2_high = 3.0102920532e-01
        log10_2_low = 7.9034151668e-07
    else:
        factor_high = 4.34294481878168880939e-01
        factor_low = 2.50829467116452752298e-11
        log10_2_high = 3.01029995663611771306e-01
        log10_2_low = 3.69423907715893078616e-13
    high = log_parts(m - one, &low)
    low = k * log10_2_low + (low + high) * factor_low + low * factor_high
    high = high * factor_high
    base = k * log10_2_high
    total = base + high
    return log_edges(x, (low + ((base - total) + high)) + total)


# ---- of floats, in double to the digits that these have ------------------------------------------

cdef inline double atanh_series(double z) noexcept nogil:
    """(atanh(s) / s - 1) / z for z = s**2 in [0, 0.0535], with an error of 2**-33.6"""
    return poly5(z, 0.10205326910021201, 0.1105750035676816, 0.14286754010986305,
                 0.19999992973040093, 0.3333333334092274)


cdef inline double log_for_float(double x) noexcept nogil:
    """log(x) for a normal number, with an error of 2**-39"""
    cdef double k, m = log_split(x, &k), s = (m - 1.0) / (m + 1.0), z = s * s
    return k * 0.6931471805599453 + 2.0 * (s + s * (z * atanh_series(z)))


cdef inline float atanh_float(float x) noexcept nogil:
    """k * log(2) / 2 + atanh(s) with s = (u - v) / (u + v), u = 1 + |x| and v = 2**k * (1 - |x|)

    k is the difference of the logarithms to base 2, which bits are nearly, rounded: |s| < 0.231.
    """
    cdef float size = magnitude(x), y
    cdef double a = size, u = 1.0 + a, v = 1.0 - a, s, z, k
    cdef uint64_t whole = (bits64(u) - bits64(v) + 0x0008000000000000u) >> 52
    k = from_bits64(whole | 0x4330000000000000u) - 4503599627370496.0
    v = from_bits64(bits64(v) + (whole << 52))
    s = (a + a if k == 0 else u - v) / (u + v)
    z = s * s
    y = <float>(k * 0.34657359027997264 + (s + s * (z * atanh_series(z))))
    y = infinity(x) if size == 1 else y
    y = nan(x) if size > 1 else y
    return with_sign(y, x)


# ---- inverse hyperbolic functions: float32 in double, whose range the squares need ---------------

cdef inline double asinh_double(double x) noexcept nogil:
    """log(a + sqrt(a**2 + 1)) with the sign of x, as the log1p of what it is beyond 1"""
    cdef double a = magnitude(x), b = 1.0 if a > 1.8e16 else a, y
    y = log1p(a if a > 1.8e16 else a + b * b / (1.0 + sqrt(1.0 + b * b)))
    return with_sign(y + 0.6931471805599453 if a > 1.8e16 else y, x)


cdef inline double acosh_double(double x) noexcept nogil:
    """log(x + sqrt(x**2 - 1)), as the log1p of what it is beyond 1"""
    cdef double t = x - 1.0, s = 1.0 if x > 1.8e16 else t, root = sqrt(s + s + s * s), sum, y
    sum = s + root
    y = log1p_parts(x if x > 1.8e16 else sum, s - (sum - root))
    y = y + 0.6931471805599453 if x > 1.8e16 else y
    return nan(x) if x < 1.0 else y


cdef inline double atanh_double(double x) noexcept nogil:
    """log((1 + a) / (1 - a)) / 2 with the sign of x"""
    cdef double a = magnitude(x), twice = a + a
    twice = twice + twice * a / (1.0 - a) if a < 0.5 else twice / (1.0 - a)
    return with_sign(0.5 * log1p(twice), x)


cdef inline floating asinh(floating x) noexcept nogil:
    return <floating>asinh_double(x)


cdef inline floating acosh(floating x) noexcept nogil:
    return <floating>acosh_double(x)


cdef inline floating atanh(floating x) noexcept nogil:
    if floating is float:
        return atanh_float(x)
    else:
        return atanh_double(x)


# ---- logarithms of chances -----------------------------------------------------------------------

cdef inline floating logit(floating x, bint lifted) noexcept nogil:
    """log(x / (1 - x)), as the log1p of what the quotient, or its inverse, is beyond 1

    A subnormal x, whose inverse overflows, is lifted by a power of two, if `lifted` says so.
    """
    cdef floating zero = 0, one = 1, half = 0.5, lift, lift_log, y
    cdef floating less = x + zero if x < half else one - x       # 0 for -0
    cdef bint tiny = lifted and magnitude(x) < least_normal(x)
    if floating is float:
        lift, lift_log = 8388608.0, <float>15.942385
    else:
        lift, lift_log = 4503599627370496.0, 36.04365338911715
    y = log1p(magnitude(one - (x + x)) / (less * lift if tiny else less))
    y = y + lift_log if tiny else y
    return -y if x < half else y


cdef inline floating entr(floating x) noexcept nogil:
    """-x * log(x), 0 at 0, -inf below"""
    cdef floating zero = 0, y = -x * log(x)
    y = zero if x == 0 else y
    return -infinity(x) if x < 0 else y


cdef inline floating xlogy(floating x, floating y) noexcept nogil:
    """x * log(y), and 0 for x = 0 unless y is NaN"""
    cdef floating zero = 0, product = x * log(y)
    product = zero if x == 0 else product
    return y if y != y else product


cdef inline floating xlog1py(floating x, floating y) noexcept nogil:
    """x * log1p(y), and 0 for x = 0 unless y is NaN"""
    cdef floating zero = 0, product = x * log1p(y)
    product = zero if x == 0 else product
    return y if y != y else product
