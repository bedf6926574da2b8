"""Inverse trigonometry: asin, acos, atan, atan2."""

from tensorlib._kernels.vecmath.basics cimport (
    bits32, bits64, floating, infinity, is_negative, magnitude, poly5, poly11, poly12,
    product_error, sqrt, with_sign)


cdef inline floating pi_parts(floating* low, floating times) noexcept nogil:
    """high + low = pi * times, for a power of two"""
    if floating is float:
        low[0] = times * <float>-8.742278e-08
        return times * <float>3.1415927
    else:
        low[0] = times * 1.2246467991473532e-16
        return times * 3.141592653589793


cdef inline floating asin_series(floating z) noexcept nogil:
    """asin(a) / a - 1 for z = a**2 <= 1/4"""
    if floating is float:  # 2**-27.6
        return z * poly5[float](z, 0.042230114, 0.024141265, 0.045478277, 0.074952334, 0.16666754)
    else:  # 2**-55.9
        return z * poly12(
            z, 0.03198158778500917, -0.01632653325681123, 0.01959423163066638,
            0.006503563294020478, 0.01217493174099952, 0.01388435210748384, 0.01735979548001461,
            0.022371751947462822, 0.03038195939514529, 0.044642856821981845, 0.07500000000344798,
            0.16666666666665375)


cdef inline floating asin(floating x) noexcept nogil:
    """above 1/2: pi/2 - 2 * asin(sqrt((1 - x) / 2))"""
    cdef floating zero = 0, half = 0.5, one = 1, two = 2, a = magnitude(x), z
    cdef floating base, low, term, total
    cdef bint steep = a > half
    z = (one - a) * half if steep else a * a
    term = -two * sqrt(z) if steep else a
    base = pi_parts(&low, half)
    base = base if steep else zero
    low = low if steep else zero
    total = base + term
    return with_sign(total + (((base - total) + term) + (low + term * asin_series(z))), x)


cdef inline floating acos(floating x) noexcept nogil:
    """pi/2 - asin(x); above 1/2: 2 * asin(sqrt((1 - |x|) / 2)), or pi minus that"""
    cdef floating zero = 0, half = 0.5, one = 1, two = 2, a = magnitude(x), z
    cdef floating base, low, term, total
    cdef bint steep = a > half, positive = x > 0
    z = (one - a) * half if steep else a * a
    term = two * sqrt(z) if steep else a
    term = -term if positive != steep else term
    base = pi_parts(&low, half)
    base = (zero if positive else two * base) if steep else base
    low = (zero if positive else two * low) if steep else low
    total = base + term
    return total + (((base - total) + term) + (low + term * asin_series(z)))


cdef inline floating atan_series(floating z) noexcept nogil:
    """atan(t) / t - 1 for z = t**2, t <= 7/16"""
    if floating is float:  # 2**-29.6
        return z * poly5[float](z, -0.058204398, 0.104916625, -0.14229757, 0.19997752, -0.33333305)
    else:  # 2**-57.7
        return z * poly11(
            z, -0.016254963494891802, 0.036500659372913885, -0.04975544538729694,
            0.05833246183469115, -0.06661024462939218, 0.07691871529597215,
            -0.09090886846791048, 0.11111110394599903, -0.14285714272266614,
            0.1999999999987391, -0.3333333333333292)


cdef inline floating atan_positive(floating a, floating correction) noexcept nogil:
    """atan(a) + correction for a >= 0: fdlibm's five ranges, chosen by selection

    atan(a) = atan(b) + atan((a - b) / (1 + a * b)) for b = 0, 1/2, 1, 3/2, infinity.
    """
    cdef floating zero = 0, one = 1, two = 2, three_halves = 1.5
    cdef floating top, bottom, high, low, t
    cdef floating border1 = 0.4375, border2 = 0.6875, border3 = 1.1875, border4 = 2.4375
    cdef floating half_high, half_low, one_high, one_low, most_high, most_low, inf_high, inf_low
    cdef bint below1 = a < border1, below2 = a < border2, below3 = a < border3, below4 = a < border4
    if floating is float:  # atan(1/2), atan(1), atan(3/2), pi/2
        half_high, half_low = 4.6364760399e-01, 5.0121582440e-09
        one_high, one_low = 7.8539812565e-01, 3.7748947079e-08
        most_high, most_low = 9.8279368877e-01, 3.4473217170e-08
        inf_high, inf_low = 1.5707962513e+00, 7.5497894159e-08
    else:
        half_high, half_low = 4.63647609000806093515e-01, 2.26987774529616870924e-17
        one_high, one_low = 7.85398163397448278999e-01, 3.06161699786838301793e-17
        most_high, most_low = 9.82793723247329054082e-01, 1.39033110312309984516e-17
        inf_high, inf_low = 1.57079632679489655800e+00, 6.12323399573676603587e-17
    top = a - three_halves if below4 else -one
    bottom = one + three_halves * a if below4 else a
    high = most_high if below4 else inf_high
    low = most_low if below4 else inf_low
    top = a - one if below3 else top
    bottom = a + one if below3 else bottom
    high = one_high if below3 else high
    low = one_low if below3 else low
    top = two * a - one if below2 else top
    bottom = two + a if below2 else bottom
    high = half_high if below2 else high
    low = half_low if below2 else low
    top = a if below1 else top
    bottom = one if below1 else bottom
    high = zero if below1 else high
    low = zero if below1 else low
    t = top / bottom
    return high + (t + (low + correction + t * atan_series(t * t)))


cdef inline floating atan(floating x) noexcept nogil:
    cdef floating zero = 0
    return with_sign(atan_positive(magnitude(x), zero), x)


cdef inline bint is_moderate(floating q) noexcept nogil:
    """whether 1/64 <= q < 64, told by its bits: what gcc knows of q from comparisons, it spreads
    into control flow that is not vectorised"""
    if floating is float:
        return bits32(q) - 0x3C800000u < 0x06000000u
    else:
        return bits64(q) - 0x3F90000000000000u < 0x00C0000000000000u


cdef inline floating atan2(floating y, floating x) noexcept nogil:
    """the angle of (x, y): atan(q) + lost / (1 + q**2) for q + lost = |y| / |x|"""
    cdef floating zero = 0, one = 1, ay = magnitude(y), ax = magnitude(x), largest, factor
    cdef floating huge, tiny, up, down, q, product, lost, angle, high, low
    # the same power of two in both keeps the error of the product exact
    if floating is float:
        huge, tiny, up, down = 1e30, 1e-18, 1.1529215046068470e18, 9.094947017729282e-13
    else:
        huge, tiny, up, down = 1e300, 1e-150, 1.6069380442589903e60, 9.094947017729282e-13
    largest = ax if ax > ay else ay
    factor = up if largest < tiny else one
    factor = down if largest > huge else factor
    q = (ay * factor) / (ax * factor)
    product = q * (ax * factor)
    lost = (ay * factor - product) - product_error(q, ax * factor, product)
    lost = lost / (ax * factor * (one + q * q))
    # elsewhere q rounds without consequence, and its error may not be finite
    angle = atan_positive(q, lost if is_moderate(q) else zero)
    high = pi_parts(&low, one)
    angle = high * <floating>0.25 if (ax == ay) & (ax == infinity(x)) else angle
    angle = zero if ay == 0 else angle
    # beside an infinite quotient the sign of x does not count, and a difference would round
    angle = high - (angle - low) if is_negative(x) & (q != infinity(x)) else angle
    angle = x if x != x else angle  # lost where y == 0
    return with_sign(angle, y)
