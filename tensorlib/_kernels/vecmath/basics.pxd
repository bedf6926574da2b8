"""What the vecmath families share: bits of floating-point numbers, exact errors, polynomials.

Every function of these files is scalar, branch-free and generic over `floating`, so that the
compiler vectorises a loop that calls it. None calls a library function that is not one
instruction. Products are written `a * b + c`: where the level has FMA the compiler contracts
them, and nothing here is less exact for it. (Where an error is computed, contraction leaves out
the rounding that the error stands for.) Literals pass through arguments or typed variables, never
bare in an expression: C would compute it in double.

Sources: Muller et al., Handbook of Floating-Point Arithmetic; Cody & Waite, Software Manual for
the Elementary Functions; fdlibm (Sun Microsystems, 1993) for the schemes named at each function.
Polynomial coefficients are minimax, by Remez exchange in 45 digits; their error stands beside them.
"""

from libc.math cimport fabs, fabsf, rint, rintf, sqrt as libm_sqrt, sqrtf as libm_sqrtf
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

ctypedef fused floating:
    float
    double

# On a level without the instruction fma() would be a slow library function.
cdef extern from *:
    """
    #if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    #define TL_HAS_FMA 1
    #define TL_FMA(a, b, c) __builtin_fma(a, b, c)
    #define TL_FMAF(a, b, c) __builtin_fmaf(a, b, c)
    #else
    #define TL_HAS_FMA 0
    #define TL_FMA(a, b, c) (c)
    #define TL_FMAF(a, b, c) (c)
    #endif
    """
    const bint TL_HAS_FMA
    double TL_FMA(double a, double b, double c) noexcept nogil
    float TL_FMAF(float a, float b, float c) noexcept nogil

cdef union float_bits:
    float value
    uint32_t bits

cdef union double_bits:
    double value
    uint64_t bits


cdef inline uint32_t bits32(float x) noexcept nogil:
    cdef float_bits u
    u.value = x
    return u.bits


cdef inline float from_bits32(uint32_t bits) noexcept nogil:
    cdef float_bits u
    u.bits = bits
    return u.value


cdef inline uint64_t bits64(double x) noexcept nogil:
    cdef double_bits u
    u.value = x
    return u.bits


cdef inline double from_bits64(uint64_t bits) noexcept nogil:
    cdef double_bits u
    u.bits = bits
    return u.value


cdef inline floating infinity(floating like) noexcept nogil:
    """inf in the type of `like`"""
    if floating is float:
        return from_bits32(0x7F800000)
    else:
        return from_bits64(0x7FF0000000000000)


cdef inline floating nan(floating like) noexcept nogil:
    """NaN in the type of `like`"""
    if floating is float:
        return from_bits32(0x7FC00000)
    else:
        return from_bits64(0x7FF8000000000000)


cdef inline floating magnitude(floating x) noexcept nogil:
    """|x|"""
    if floating is float:
        return fabsf(x)
    else:
        return fabs(x)


cdef inline floating with_sign(floating x, floating sign) noexcept nogil:
    """x for x >= 0, with the sign bit of `sign`"""
    if floating is float:
        return from_bits32(bits32(x) | (bits32(sign) & 0x80000000u))
    else:
        return from_bits64(bits64(x) | (bits64(sign) & 0x8000000000000000u))


cdef inline bint is_negative(floating x) noexcept nogil:
    """whether the sign bit is set, also for -0 and NaN"""
    if floating is float:
        return <int32_t>bits32(x) < 0
    else:
        return <int64_t>bits64(x) < 0


cdef inline floating round_even(floating x) noexcept nogil:
    """x rounded to an integer, halves to even"""
    if floating is float:
        return rintf(x)
    else:
        return rint(x)


cdef inline floating sqrt(floating x) noexcept nogil:
    if floating is float:
        return libm_sqrtf(x)
    else:
        return libm_sqrt(x)


cdef inline floating clamp(floating x, floating lo, floating hi) noexcept nogil:
    """x between lo and hi; NaN stays"""
    x = lo if x < lo else x
    return hi if x > hi else x


cdef inline floating power_of_two(floating n) noexcept nogil:
    """2**n for an integer n among the exponents of normal numbers"""
    # n + 1.5 * 2**23 has the integer n in its low bits, with no conversion instruction (double to
    # int64 has none before AVX-512)
    cdef floating magic
    if floating is float:
        magic = 12582912.0 + 127
        return from_bits32(bits32(n + magic) << 23)
    else:
        magic = 6755399441055744.0 + 1023
        return from_bits64(bits64(n + magic) << 52)


cdef inline floating scale(floating x, floating n) noexcept nogil:
    """x * 2**n, rounded once, for x near 1 and an integer n with 2**(n/2) in range"""
    cdef uint32_t biased32, first32
    cdef uint64_t biased64, first64
    cdef floating magic
    if floating is float:
        magic = 12582912.0
        biased32 = bits32(n + magic) - 0x4B3FFF02u  # the bits of magic less 2 * 127
        first32 = biased32 >> 1
        return x * from_bits32(first32 << 23) * from_bits32((biased32 - first32) << 23)
    else:
        magic = 6755399441055744.0
        biased64 = bits64(n + magic) - 0x4337FFFFFFFFF802u
        first64 = biased64 >> 1
        return x * from_bits64(first64 << 52) * from_bits64((biased64 - first64) << 52)


cdef inline floating split_high(floating x) noexcept nogil:
    """x without the lower half of its digits: products of two such numbers are exact"""
    if floating is float:
        return from_bits32(bits32(x) & 0xFFFFF000u)
    else:
        return from_bits64(bits64(x) & 0xFFFFFFFFF8000000u)


cdef inline floating product_error(floating a, floating b, floating p) noexcept nogil:
    """a * b - p for p = a * b rounded: by one instruction, or Dekker's product"""
    cdef floating ah, bh, al, bl
    if TL_HAS_FMA:
        if floating is float:
            return TL_FMAF(a, b, -p)
        else:
            return TL_FMA(a, b, -p)
    ah, bh = split_high(a), split_high(b)
    al, bl = a - ah, b - bh
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl


cdef inline double quotient(double top, double top_low, double bottom, double bottom_low,
                            double inverse, double* low) noexcept nogil:
    """q, and q + low = (top + top_low) / (bottom + bottom_low), for inverse near 1 / bottom"""
    cdef double q = top * inverse, product = q * bottom
    low[0] = (((top - product) - product_error(q, bottom, product))
              + (top_low - q * bottom_low)) * inverse
    return q


cdef inline floating poly3(floating x, floating c2, floating c1, floating c0) noexcept nogil:
    """c2 * x**2 + c1 * x + c0; the longer ones likewise"""
    return (c2 * x + c1) * x + c0


cdef inline floating poly4(floating x, floating c3, floating c2, floating c1,
                           floating c0) noexcept nogil:
    return poly3(x, c3 * x + c2, c1, c0)


cdef inline floating poly5(floating x, floating c4, floating c3, floating c2, floating c1,
                           floating c0) noexcept nogil:
    return poly4(x, c4 * x + c3, c2, c1, c0)


cdef inline floating poly6(floating x, floating c5, floating c4, floating c3, floating c2,
                           floating c1, floating c0) noexcept nogil:
    return poly5(x, c5 * x + c4, c3, c2, c1, c0)


cdef inline floating poly7(floating x, floating c6, floating c5, floating c4, floating c3,
                           floating c2, floating c1, floating c0) noexcept nogil:
    return poly6(x, c6 * x + c5, c4, c3, c2, c1, c0)


cdef inline floating poly8(floating x, floating c7, floating c6, floating c5, floating c4,
                           floating c3, floating c2, floating c1, floating c0) noexcept nogil:
    return poly7(x, c7 * x + c6, c5, c4, c3, c2, c1, c0)


cdef inline floating poly10(floating x, floating c9, floating c8, floating c7, floating c6,
                            floating c5, floating c4, floating c3, floating c2, floating c1,
                            floating c0) noexcept nogil:
    return poly6(x, poly5(x, c9, c8, c7, c6, c5), c4, c3, c2, c1, c0)


cdef inline floating poly11(floating x, floating c10, floating c9, floating c8, floating c7,
                            floating c6, floating c5, floating c4, floating c3, floating c2,
                            floating c1, floating c0) noexcept nogil:
    return poly10(x, c10 * x + c9, c8, c7, c6, c5, c4, c3, c2, c1, c0)


cdef inline floating poly12(floating x, floating c11, floating c10, floating c9, floating c8,
                            floating c7, floating c6, floating c5, floating c4, floating c3,
                            floating c2, floating c1, floating c0) noexcept nogil:
    return poly11(x, c11 * x + c10, c9, c8, c7, c6, c5, c4, c3, c2, c1, c0)
