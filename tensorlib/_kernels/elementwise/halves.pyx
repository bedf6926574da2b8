"""Loops of half types without float32 in memory: arithmetic, bounds and extremes.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). They give the
bits of a cast, the float32 loop and a cast back, and are used if all operands have the half type.
Operations without such a loop are cast tile by tile.
"""

from libc.stdint cimport int16_t, uint16_t

from tensorlib._kernels.elementwise.bounds cimport bounded, from_nearer_end, with_product
from tensorlib._kernels.types.half_types cimport (
    brain, brain_bits, brain_value, half, half_bits, half_value, short_float)
from tensorlib._kernels.elementwise.powers cimport pow_run as float_powers
from tensorlib._kernels.vecmath.basics cimport infinity, sqrt

from tensorlib._kernels import HALVES, rows_for

cdef extern from "types/half.h" nogil:
    enum:
        HALF_ADD
        HALF_SUB
        HALF_MUL
        HALF_DIV
        HALF_SQRT
        HALF_RSQRT
        HALF_RECIPROCAL
        HALF_SQUARE
        HALF_ADDCMUL
        HALF_ADDCDIV
        HALF_ADDCMUL_SCALED
        HALF_ADDCDIV_SCALED
        HALF_LERP
        HALF_CLAMP
    Py_ssize_t half_lanes_of(int what, const uint16_t* a, const uint16_t* b, const uint16_t* c,
                             const uint16_t* d, uint16_t* y, Py_ssize_t n)
    Py_ssize_t to_half(const float* x, uint16_t* y, Py_ssize_t n)
    Py_ssize_t from_half(const uint16_t* x, float* y, Py_ssize_t n)
    Py_ssize_t half_lanes_with(int what, const uint16_t* a, const uint16_t* b, float number,
                               uint16_t* y, Py_ssize_t n)
    Py_ssize_t half_between(const uint16_t* x, float low, float high, uint16_t* y, Py_ssize_t n)


cdef inline float value(short_float x) noexcept nogil:
    if short_float is half:
        return half_value(x.bits)
    else:
        return brain_value(x.bits)


cdef inline void put(float x, short_float* y) noexcept nogil:
    """y := x, rounded to nearest, ties to even"""
    if short_float is half:
        y[0].bits = half_bits(x)
    else:
        y[0].bits = brain_bits(x)


cdef inline Py_ssize_t converted(int what, const short_float* a, const short_float* b,
                                 const short_float* c, const short_float* d, short_float* y,
                                 Py_ssize_t n) noexcept nogil:
    """How many elements the processor's conversions of float16 have done."""
    if short_float is half:
        return half_lanes_of(what, <const uint16_t*>a, <const uint16_t*>b, <const uint16_t*>c,
                             <const uint16_t*>d, <uint16_t*>y, n)
    else:
        return 0


# ---- arithmetic ----------------------------------------------------------------------------------

cdef void sqrt_run(const short_float* x, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := sqrt(x)"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_SQRT, x, x, x, x, y, n), n):
        put(sqrt(value(x[i])), y + i)


cdef void rsqrt_run(const short_float* x, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / sqrt(x)"""
    cdef Py_ssize_t i
    cdef float one = 1
    for i in range(converted(HALF_RSQRT, x, x, x, x, y, n), n):
        put(one / sqrt(value(x[i])), y + i)


cdef void square_run(const short_float* x, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x * x"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_SQUARE, x, x, x, x, y, n), n):
        put(value(x[i]) * value(x[i]), y + i)


cdef void reciprocal_run(const short_float* x, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / x"""
    cdef Py_ssize_t i
    cdef float one = 1
    for i in range(converted(HALF_RECIPROCAL, x, x, x, x, y, n), n):
        put(one / value(x[i]), y + i)


cdef void add_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a + b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_ADD, a, b, a, a, y, n), n):
        put(value(a[i]) + value(b[i]), y + i)


cdef void sub_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a - b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_SUB, a, b, a, a, y, n), n):
        put(value(a[i]) - value(b[i]), y + i)


cdef void mul_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a * b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_MUL, a, b, a, a, y, n), n):
        put(value(a[i]) * value(b[i]), y + i)


cdef void div_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a / b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_DIV, a, b, a, a, y, n), n):
        put(value(a[i]) / value(b[i]), y + i)


# ---- powers --------------------------------------------------------------------------------------

cdef enum:
    BLOCK = 512          # elements whose powers are computed in float32 together


cdef inline void widen(const short_float* x, float* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, begin = 0
    if short_float is half:
        begin = from_half(<const uint16_t*>x, y, n)
    for i in range(begin, n):
        y[i] = value(x[i])


cdef inline void narrow(const float* x, short_float* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, begin = 0
    if short_float is half:
        begin = to_half(x, <uint16_t*>y, n)
    for i in range(begin, n):
        put(x[i], y + i)


cdef void pow_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a ** b"""
    cdef float bases[BLOCK]
    cdef float exponents[BLOCK]
    cdef Py_ssize_t i, count
    for i in range(0, n, 512):                   # BLOCK, as a literal: the sign must be known
        count = min(n - i, <Py_ssize_t>BLOCK)
        widen(a + i, bases, count)
        widen(b + i, exponents, count)
        float_powers(<const float*>bases, <const float*>exponents, <float*>bases, count)
        narrow(bases, y + i, count)


cdef void pow_number_run(const short_float* a, const short_float* b, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a ** b[0]"""
    cdef short_float exponents[BLOCK]
    cdef Py_ssize_t i
    cdef float x, root, inf = infinity[float](0), zero = 0
    if value(b[0]) == 2:
        square_run(a, y, n)
        return
    if short_float is brain and value(b[0]) == 0.5:
        for i in range(n):
            x = value(a[i])
            root = sqrt(x) + zero                # pow(-0, 0.5) is +0
            put(inf if x == -inf else root, y + i)
        return
    for i in range(min(n, <Py_ssize_t>BLOCK)):
        exponents[i] = b[0]
    for i in range(0, n, 512):                   # BLOCK, as a literal: the sign must be known
        pow_run(a + i, <const short_float*>exponents, y + i, min(n - i, <Py_ssize_t>BLOCK))


# ---- with one number -----------------------------------------------------------------------------

cdef void add_number_run(const short_float* a, const short_float* b, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a + b[0]"""
    cdef Py_ssize_t i
    cdef float number = value(b[0])
    for i in range(converted_with(HALF_ADD, a, a, number, y, n), n):
        put(value(a[i]) + number, y + i)


cdef void sub_number_run(const short_float* a, const short_float* b, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a - b[0]"""
    cdef Py_ssize_t i
    cdef float number = value(b[0])
    for i in range(converted_with(HALF_SUB, a, a, number, y, n), n):
        put(value(a[i]) - number, y + i)


cdef void mul_number_run(const short_float* a, const short_float* b, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a * b[0]"""
    cdef float number = value(b[0])
    mul_single_run(a, &number, y, n)


cdef void div_number_run(const short_float* a, const short_float* b, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a / b[0]"""
    cdef float number = value(b[0])
    div_single_run(a, &number, y, n)


# ---- with one float32 number ---------------------------------------------------------------------

cdef inline Py_ssize_t converted_with(int what, const short_float* a, const short_float* b,
                                      float number, short_float* y, Py_ssize_t n) noexcept nogil:
    """How many elements the processor's conversions of float16 have done."""
    if short_float is half:
        return half_lanes_with(what, <const uint16_t*>a, <const uint16_t*>b, number, <uint16_t*>y,
                               n)
    else:
        return 0


cdef void mul_single_run(const short_float* a, const float* number, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a * number[0]"""
    cdef Py_ssize_t i
    cdef float factor = number[0]
    for i in range(converted_with(HALF_MUL, a, a, factor, y, n), n):
        put(value(a[i]) * factor, y + i)


cdef void div_single_run(const short_float* a, const float* number, short_float* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a / number[0]"""
    cdef Py_ssize_t i
    cdef float divisor = number[0]
    for i in range(converted_with(HALF_DIV, a, a, divisor, y, n), n):
        put(value(a[i]) / divisor, y + i)


cdef void addcmul_single_run(const short_float* x, const short_float* a, const float* number,
                             short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x + a * number[0]"""
    cdef Py_ssize_t i
    cdef float factor = number[0]
    for i in range(converted_with(HALF_ADDCMUL, x, a, factor, y, n), n):
        put(with_product[float](value(x[i]), value(a[i]), factor), y + i)


# ---- of three and four operands, as in bounds.pyx ------------------------------------------------

cdef void addcmul_run(const short_float* x, const short_float* a, const short_float* b,
                      short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x + a * b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_ADDCMUL, x, a, b, x, y, n), n):
        put(with_product[float](value(x[i]), value(a[i]), value(b[i])), y + i)


cdef void addcdiv_run(const short_float* x, const short_float* a, const short_float* b,
                      short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x + a / b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_ADDCDIV, x, a, b, x, y, n), n):
        put(value(x[i]) + value(a[i]) / value(b[i]), y + i)


cdef void addcmul_scaled_run(const short_float* x, const short_float* a, const short_float* b,
                             const short_float* v, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a * b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_ADDCMUL_SCALED, x, a, b, v, y, n), n):
        put(value(x[i]) + value(a[i]) * value(v[i]) * value(b[i]), y + i)


cdef void addcdiv_scaled_run(const short_float* x, const short_float* a, const short_float* b,
                             const short_float* v, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a / b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_ADDCDIV_SCALED, x, a, b, v, y, n), n):
        put(value(x[i]) + value(a[i]) * value(v[i]) / value(b[i]), y + i)


cdef void lerp_run(const short_float* a, const short_float* b, const short_float* w, short_float* y,
                   Py_ssize_t n) noexcept nogil:
    """y := a + w * (b - a), from the nearer end"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_LERP, a, b, w, a, y, n), n):
        put(from_nearer_end(value(a[i]), value(b[i]), value(w[i])), y + i)


cdef void clamp_run(const short_float* x, const short_float* low, const short_float* high,
                    short_float* y, Py_ssize_t n) noexcept nogil:
    """y := min(max(x, low), high); NaN if any is"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_CLAMP, x, low, high, x, y, n), n):
        put(bounded(value(x[i]), value(low[i]), value(high[i])), y + i)


cdef void clamp_number_run(const short_float* x, const short_float* low, const short_float* high,
                           short_float* y, Py_ssize_t n) noexcept nogil:
    """The same between two numbers."""
    cdef float least = value(low[0]), most = value(high[0])
    cdef Py_ssize_t i, begin = 0
    if short_float is half:
        begin = half_between(<const uint16_t*>x, least, most, <uint16_t*>y, n)
    for i in range(begin, n):
        put(bounded(value(x[i]), least, most), y + i)


# ---- extremes, by the bits -----------------------------------------------------------------------

cdef inline int16_t rank(uint16_t bits) noexcept nogil:
    """An integer in the order of the numbers, the same for both zeros."""
    cdef int16_t sign = <int16_t>bits >> 15
    return (<int16_t>bits ^ (sign & 0x7FFF)) - sign


cdef inline bint unknown(short_float x) noexcept nogil:
    """Whether it is NaN."""
    if short_float is half:
        return (x.bits & 0x7FFF) > 0x7C00
    else:
        return (x.bits & 0x7FFF) > 0x7F80


cdef inline uint16_t chosen(short_float a, short_float b, bint first) noexcept nogil:
    """a if `first`, else b; NaN if either is"""
    first = (first & (not unknown(b))) | unknown(a)
    return a.bits if first else b.bits


cdef void maximum_run(const short_float* a, const short_float* b, short_float* y,
                      Py_ssize_t n) noexcept nogil:
    """y := the larger of a and b; NaN if either is"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i].bits = chosen(a[i], b[i], rank(a[i].bits) >= rank(b[i].bits))


cdef void minimum_run(const short_float* a, const short_float* b, short_float* y,
                      Py_ssize_t n) noexcept nogil:
    """y := the smaller of a and b; NaN if either is"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i].bits = chosen(a[i], b[i], rank(a[i].bits) <= rank(b[i].bits))


cdef void relu_run(const short_float* x, short_float* y, Py_ssize_t n) noexcept nogil:
    """y := max(x, 0); NaN and -0 stay"""
    cdef Py_ssize_t i
    cdef uint16_t most = 0x7C00 if short_float is half else 0x7F80
    for i in range(n):
        y[i].bits = 0 if <uint16_t>(x[i].bits - 0x8001) < most else x[i].bits


cdef void relu_backward_run(const short_float* g, const short_float* out, short_float* y,
                            Py_ssize_t n) noexcept nogil:
    """y := g where out is not 0, else 0; a NaN is not"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i].bits = g[i].bits if out[i].bits & 0x7FFF else 0


cdef inline uint16_t between(uint16_t x, uint16_t least, uint16_t most, int16_t low, int16_t high,
                             bint number) noexcept nogil:
    """x between two numbers of these ranks, if it is a number"""
    cdef int16_t at = rank(x)
    cdef bint below = (at < low) & number
    cdef uint16_t found = least if below else x
    at = low if below else at
    return most if (at > high) & number else found


cdef inline int16_t rank_or(short_float x, int16_t other) noexcept nogil:
    """The rank of a number, `other` for NaN."""
    return other if unknown(x) else rank(x.bits)


cdef void hardtanh_run(const short_float* x, const short_float* least, const short_float* most,
                       short_float* y, Py_ssize_t n) noexcept nogil:
    """y := x between least and most; NaN stays"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i].bits = between(x[i].bits, least[i].bits, most[i].bits, rank_or(least[i], -32768),
                            rank_or(most[i], 32767), not unknown(x[i]))


cdef void hardtanh_number_run(const short_float* x, const short_float* least,
                              const short_float* most, short_float* y,
                              Py_ssize_t n) noexcept nogil:
    """The same between two numbers."""
    cdef Py_ssize_t i
    cdef uint16_t first = least[0].bits, last = most[0].bits
    cdef int16_t low = rank_or(least[0], -32768), high = rank_or(most[0], 32767)
    for i in range(n):
        y[i].bits = between(x[i].bits, first, last, low, high, not unknown(x[i]))


cdef void copysign_run(const short_float* a, const short_float* b, short_float* y,
                       Py_ssize_t n) noexcept nogil:
    """y := the magnitude of a with the sign of b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i].bits = (a[i].bits & 0x7FFF) | (b[i].bits & 0x8000)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(HALVES, [
        ("sqrt", <size_t>&sqrt_run[half], <size_t>&sqrt_run[brain]),
        ("rsqrt", <size_t>&rsqrt_run[half], <size_t>&rsqrt_run[brain]),
        ("square", <size_t>&square_run[half], <size_t>&square_run[brain]),
        ("reciprocal", <size_t>&reciprocal_run[half], <size_t>&reciprocal_run[brain]),
        ("relu", <size_t>&relu_run[half], <size_t>&relu_run[brain]),
    ]) + rows_for(HALVES, [
        ("add", <size_t>&add_run[half], <size_t>&add_run[brain]),
        ("sub", <size_t>&sub_run[half], <size_t>&sub_run[brain]),
        ("mul", <size_t>&mul_run[half], <size_t>&mul_run[brain]),
        ("div", <size_t>&div_run[half], <size_t>&div_run[brain]),
        ("pow", <size_t>&pow_run[half], <size_t>&pow_run[brain]),
        ("pow_number", <size_t>&pow_number_run[half], <size_t>&pow_number_run[brain]),
        ("add_number", <size_t>&add_number_run[half], <size_t>&add_number_run[brain]),
        ("sub_number", <size_t>&sub_number_run[half], <size_t>&sub_number_run[brain]),
        ("mul_number", <size_t>&mul_number_run[half], <size_t>&mul_number_run[brain]),
        ("div_number", <size_t>&div_number_run[half], <size_t>&div_number_run[brain]),
        ("maximum", <size_t>&maximum_run[half], <size_t>&maximum_run[brain]),
        ("minimum", <size_t>&minimum_run[half], <size_t>&minimum_run[brain]),
        ("relu_backward", <size_t>&relu_backward_run[half], <size_t>&relu_backward_run[brain]),
        ("copysign", <size_t>&copysign_run[half], <size_t>&copysign_run[brain]),
    ], 2) + rows_for(HALVES, [
        ("hardtanh", <size_t>&hardtanh_run[half], <size_t>&hardtanh_run[brain]),
        ("hardtanh_number", <size_t>&hardtanh_number_run[half],
         <size_t>&hardtanh_number_run[brain]),
        ("addcmul", <size_t>&addcmul_run[half], <size_t>&addcmul_run[brain]),
        ("addcdiv", <size_t>&addcdiv_run[half], <size_t>&addcdiv_run[brain]),
        ("lerp", <size_t>&lerp_run[half], <size_t>&lerp_run[brain]),
        ("clamp", <size_t>&clamp_run[half], <size_t>&clamp_run[brain]),
        ("clamp_number", <size_t>&clamp_number_run[half], <size_t>&clamp_number_run[brain]),
    ], 3) + rows_for(HALVES, [
        ("addcmul_scaled", <size_t>&addcmul_scaled_run[half], <size_t>&addcmul_scaled_run[brain]),
        ("addcdiv_scaled", <size_t>&addcdiv_scaled_run[half], <size_t>&addcdiv_scaled_run[brain]),
    ], 4) + [
        (name + "_single", (*(dtype,) * inputs, "float32"), dtype, address)
        for name, inputs, *addresses in (
            ("mul", 1, <size_t>&mul_single_run[half], <size_t>&mul_single_run[brain]),
            ("div", 1, <size_t>&div_single_run[half], <size_t>&div_single_run[brain]),
            ("addcmul", 2, <size_t>&addcmul_single_run[half], <size_t>&addcmul_single_run[brain]),
        ) for dtype, address in zip(HALVES, addresses)]
