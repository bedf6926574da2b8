"""Trigonometry: sin, cos, tan, within a bound that `is_far` tells.

The argument is reduced by a multiple n of pi/2 in as many parts as leave the remainder exact to
more than its own digits (Cody & Waite). Float reduces in double. Beyond the bound a loop calls
`sin_far` and its like, element by element, which reduce by the digits of 2/pi (Payne & Hanek).
The C library is not asked there: glibc 2.36 is off by 136,921 ulp in cos(0x1.69eab0985179bp+246).

Sources: Payne and Hanek, "Radian Reduction for Trigonometric Functions", SIGNUM Newsletter 18(1),
1983; Muller et al., Handbook of Floating-Point Arithmetic, for how near a double comes to a
multiple of pi/2.
"""

from tensorlib._kernels.vecmath.basics cimport (
    bits32, bits64, floating, from_bits32, from_bits64, magnitude, poly3, poly4, poly5, poly6,
    product_error, quotient, round_even, uint32_t, uint64_t)


cdef extern from "vecmath/two_over_pi.h" nogil:
    const uint64_t TWO_OVER_PI[20]


cdef extern from *:
    ctypedef uint64_t uint128 "unsigned __int128"    # Cython needs no more than its name
    int __builtin_clzll(uint64_t x) noexcept nogil


cdef inline bint is_far(floating x) noexcept nogil:
    """whether sin, cos and tan reduce x inexactly; infinity and NaN come out right as they are"""
    if floating is float:
        return (bits32(x) & 0x7FFFFFFFu) - 0x4B000000u < 0x7F800000u - 0x4B000000u  # 2**23
    else:
        return ((bits64(x) & 0x7FFFFFFFFFFFFFFFu) - 0x4130000000000000u  # 2**20
                < 0x7FF0000000000000u - 0x4130000000000000u)


cdef inline double reduce_float(double x, uint64_t* quadrant) noexcept nogil:
    """x - n * pi/2; the low bits of `quadrant` are those of n"""
    cdef double magic = 6755399441055744.0
    cdef double shifted = x * 0.6366197723675814 + magic
    cdef double n = shifted - magic
    quadrant[0] = bits64(shifted)
    # 29 bits of pi/2, and the next 53: n * the first is exact for n < 2**24
    return (x - n * 1.570796325802803) - n * 9.920935796805404e-10


cdef inline double reduce_double(double x, uint64_t* quadrant, double* tail) noexcept nogil:
    """r with r + tail = x - n * pi/2; the low bits of `quadrant` are those of n"""
    cdef double magic = 6755399441055744.0
    cdef double shifted = x * 0.6366197723675814 + magic
    cdef double n = shifted - magic
    cdef double a, b, c, lost_b, lost_c, part, whole
    quadrant[0] = bits64(shifted)
    # fdlibm's parts of pi/2: 33 digits thrice, so that the products are exact for n < 2**20
    a = x - n * 1.57079632673412561417e+00
    part = n * 6.07710050630396597660e-11
    b = a - part
    whole = b - a
    lost_b = (a - (b - whole)) - (part + whole)
    part = n * 2.02226624871116645580e-21
    c = b - part
    whole = c - b
    lost_c = (b - (c - whole)) - (part + whole)
    part = (lost_b + lost_c) - n * 8.47842766036889956997e-32
    a = c + part
    tail[0] = (c - a) + part
    return a


cdef inline double reduce_far(double x, uint64_t* quadrant, double* tail) noexcept nogil:
    """As `reduce_double`, for any finite |x| >= 2**-10."""
    cdef uint64_t bits = bits64(x), sign = bits & 0x8000000000000000u
    cdef uint64_t digits = (bits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u
    # x = digits * 2**e. The digits of 2/pi are read from the one of weight 2**(1 - e) on: those
    # before it make multiples of 4. No double but 0 is nearer than 2**-62 to a multiple of pi/2, so
    # 192 of them leave a remainder of 75 and more.
    cdef uint64_t first = (bits >> 52 & 0x7FF) - 1013    # e + 62
    cdef const uint64_t* word = TWO_OVER_PI + (first >> 6)
    cdef int shift = first & 63
    cdef uint64_t top, middle, bottom, negative
    cdef uint128 product
    cdef double high, low, unit, a
    product = <uint128>(word[2] << shift | (word[3] >> 1) >> (63 - shift)) * digits
    bottom = <uint64_t>product
    product = (<uint128>(word[1] << shift | (word[2] >> 1) >> (63 - shift)) * digits
               + <uint64_t>(product >> 64))
    middle = <uint64_t>product
    top = ((word[0] << shift | (word[1] >> 1) >> (63 - shift)) * digits
           + <uint64_t>(product >> 64))
    # Two digits before the point, 190 behind it; the first of these rounds the quadrant.
    negative = -(top >> 61 & 1)
    quadrant[0] = (top >> 62) - negative
    top = (top << 2 | middle >> 62) ^ negative
    middle = (middle << 2 | bottom >> 62) ^ negative
    bottom = (bottom << 2) ^ negative
    shift = __builtin_clzll(top | 1)
    top = top << shift | (middle >> 1) >> (63 - shift)
    middle = middle << shift | (bottom >> 1) >> (63 - shift)
    unit = from_bits64((<uint64_t>(970 - shift) << 52) | (negative & 0x8000000000000000u) ^ sign)
    high = <double>(top >> 11) * unit
    low = <double>(top << 53 | middle >> 11) * 5.421010862427522e-20 * unit    # 2**-64
    if sign:
        quadrant[0] = -quadrant[0]
    # times pi/2, in two parts
    a = high * 1.5707963267948966
    tail[0] = (product_error(high, <double>1.5707963267948966, a)
               + (high * 6.123233995736766e-17 + low * 1.5707963267948966))
    high = a + tail[0]
    tail[0] = (a - high) + tail[0]
    return high


cdef inline double sin_series(double z) noexcept nogil:
    """(sin(r) / r - 1 + r**2 / 6) / r**4 for z = r**2, |r| <= pi/4; error 2**-58"""
    return poly5(z, 1.5896503221436504e-10, -2.5050753228755377e-08, 2.755731366178656e-06,
                 -0.00019841269829724286, 0.008333333333322314)


cdef inline double cos_series(double z) noexcept nogil:
    """(cos(r) - 1 + r**2 / 2) / r**4 for z = r**2, |r| <= pi/4; error 2**-64"""
    return poly6(z, -1.135945387382346e-11, 2.0875719661492695e-09, -2.755731432680809e-07,
                 2.480158728939771e-05, -0.0013888888888873995, 0.0416666666666666)


cdef inline double sin_parts(double r, double tail, double* low) noexcept nogil:
    """high + low = sin(r + tail) for |r| <= pi/4"""
    cdef double z = r * r, rest, high
    rest = tail * (1.0 - 0.5 * z) + z * r * (-0.16666666666666632 + z * sin_series(z))
    high = r + rest
    low[0] = (r - high) + rest
    return high


cdef inline double cos_parts(double r, double tail, double* low) noexcept nogil:
    """high + low = cos(r + tail) for |r| <= pi/4"""
    cdef double z = r * r, half = 0.5 * z, base = 1.0 - half, rest, high
    rest = ((1.0 - base) - half) + (z * z * cos_series(z) - r * tail)
    high = base + rest
    low[0] = (base - high) + rest
    return high


cdef inline double sin_reduced(double r, double tail, uint64_t quadrant) noexcept nogil:
    """sin(r + tail + quadrant * pi/2) for |r| <= pi/4"""
    cdef double low
    cdef double sine = sin_parts(r, tail, &low)
    cdef double cosine = cos_parts(r, tail, &low)
    sine = cosine if quadrant & 1 else sine
    return from_bits64(bits64(sine) ^ ((quadrant & 2) << 62))


cdef inline floating sin_shifted(floating x, uint64_t quarters) noexcept nogil:
    """sin(x + quarters * pi/2), for x not far"""
    cdef uint64_t quadrant
    cdef double tail
    cdef float r, z, s, c
    if floating is float:
        r = <float>reduce_float(x, &quadrant)
        quadrant += quarters
        z = r * r
        # errors 2**-28 and 2**-33
        s = r + r * z * poly3[float](z, -0.00019516659, 0.008332173, -0.16666655)
        c = z * z * poly3[float](z, 2.4437759e-05, -0.0013887362, 0.041666646)
        c = <float>1 - (z * <float>0.5 - c)
        s = c if quadrant & 1 else s
        return from_bits32(bits32(s) ^ (<uint32_t>(quadrant & 2) << 30))
    else:
        x = reduce_double(x, &quadrant, &tail)
        return sin_reduced(x, tail, quadrant + quarters)


cdef inline floating sin(floating x) noexcept nogil:
    """for x not far"""
    return x if x == 0 else sin_shifted(x, 0)


cdef inline floating cos(floating x) noexcept nogil:
    """for x not far"""
    return sin_shifted(x, 1)


cdef inline double tan_reduced(double r, double tail, uint64_t quadrant) noexcept nogil:
    """tan(r + tail + quadrant * pi/2) for |r| <= pi/4: sin / cos, divided with their low parts"""
    cdef double sine_low, cosine_low, quotient, product, swap
    cdef double sine = sin_parts(r, tail, &sine_low)
    cdef double cosine = cos_parts(r, tail, &cosine_low)
    cdef bint odd = quadrant & 1
    swap = -cosine if odd else sine
    cosine = sine if odd else cosine
    sine = swap
    swap = -cosine_low if odd else sine_low
    cosine_low = sine_low if odd else cosine_low
    sine_low = swap
    quotient = sine / cosine
    product = quotient * cosine
    tail = ((sine - product) - product_error(quotient, cosine, product)) + sine_low
    return quotient + (tail - quotient * cosine_low) / cosine


cdef inline floating tan(floating x) noexcept nogil:
    """for x not far"""
    cdef uint64_t quadrant
    cdef double r, z, tail, sine, cosine
    cdef bint odd
    if floating is float:
        r = reduce_float(x, &quadrant)
        z = r * r
        # errors 2**-37 and 2**-43
        sine = r + r * z * poly4(z, 2.718237297177656e-06, -0.00019839327127744942,
                                 0.008333329362189772, -0.16666666641424133)
        cosine = 1.0 - 0.5 * z + z * z * poly4(z, -2.7209558741934864e-07, 2.479951191594858e-05,
                                               -0.0013888883723311568, 0.0416666666224871)
        odd = quadrant & 1
        return x if x == 0 else <float>((-cosine if odd else sine) / (sine if odd else cosine))
    else:
        r = reduce_double(x, &quadrant, &tail)
        r = tan_reduced(r, tail, quadrant)
        return x if magnitude(x) < 1e-150 else r    # the error of the product underflows


cdef inline floating sin_far(floating x) noexcept nogil:
    cdef uint64_t quadrant
    cdef double tail
    cdef double r = reduce_far(x, &quadrant, &tail)
    return <floating>sin_reduced(r, tail, quadrant)


cdef inline floating cos_far(floating x) noexcept nogil:
    cdef uint64_t quadrant
    cdef double tail
    cdef double r = reduce_far(x, &quadrant, &tail)
    return <floating>sin_reduced(r, tail, quadrant + 1)


cdef inline floating tan_far(floating x) noexcept nogil:
    cdef uint64_t quadrant
    cdef double tail
    cdef double r = reduce_far(x, &quadrant, &tail)
    return <floating>tan_reduced(r, tail, quadrant)


# ---- of multiples of pi: the reduction is exact --------------------------------------------------

cdef inline double sin_pi(double x) noexcept nogil:
    """sin(pi * x)"""
    cdef double doubled = x + x, quarters = round_even(doubled), r = (doubled - quarters) * 0.5
    cdef double high = r * <double>3.141592653589793
    cdef double low = product_error(r, <double>3.141592653589793, high)
    # quarters modulo 4, in the low bits of a sum
    cdef double left = quarters - 4.0 * round_even(quarters * 0.25)
    cdef uint64_t quadrant = bits64(left + 6755399441055744.0)
    cdef double angle
    low = low + r * 1.2246467991473532e-16
    angle = high + low
    return sin_reduced(angle, (high - angle) + low, quadrant)


cdef inline float cos_sin_turn(float turns, float* sine) noexcept nogil:
    """cos(2 * pi * turns), and the sine, for 0 <= turns <= 1; within 2 ulp of 1"""
    cdef float quarters = round_even[float](<float>4 * turns), z, s, c, swap
    cdef float r = (<float>4 * turns - quarters) * <float>1.5707963267948966
    cdef uint32_t quadrant = bits32(quarters + <float>8388608.0)
    z = r * r
    s = r + r * z * poly3[float](z, -0.00019516659, 0.008332173, -0.16666655)
    c = z * z * poly3[float](z, 2.4437759e-05, -0.0013887362, 0.041666646)
    c = <float>1 - (z * <float>0.5 - c)
    swap = c if quadrant & 1 else s
    c = s if quadrant & 1 else c
    sine[0] = from_bits32(bits32(swap) ^ ((quadrant & 2) << 30))
    return from_bits32(bits32(c) ^ (((quadrant + 1) & 2) << 30))


cdef inline double sinc(double x) noexcept nogil:
    """sin(pi * x) / (pi * x), 1 at 0 and 0 at infinity"""
    cdef double z = 1.0 if magnitude(x) < 1e-150 else x, p = z * 3.141592653589793, p_low, low, y
    p_low = product_error(z, <double>3.141592653589793, p) + z * 1.2246467991473532e-16
    y = quotient(sin_pi(z), 0.0, p, p_low, 1.0 / p, &low)
    y = y + low
    y = 0.0 if magnitude(x) > 1e300 else y
    y = 1.0 if magnitude(x) < 1e-150 else y
    return x if x != x else y
