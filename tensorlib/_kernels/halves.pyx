"""Loops of half types that need no float32 in memory: sums, products, extremes.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). They give the
bits of the float32 loop between casts, and are used where all operands have the half type; what
has no loop here is cast tile by tile.
"""

from libc.stdint cimport int16_t, uint16_t

from tensorlib._kernels.half_types cimport (
    brain, brain_bits, brain_value, half, half_bits, half_value, short_float)

cdef extern from "half.h" nogil:
    enum:
        HALF_ADD
        HALF_SUB
        HALF_MUL
        HALF_DIV
    Py_ssize_t half_pairs(int what, const uint16_t* a, const uint16_t* b, uint16_t* y,
                          Py_ssize_t n)


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
                                 short_float* y, Py_ssize_t n) noexcept nogil:
    """How many elements the processor's conversions of float16 have done."""
    if short_float is half:
        return half_pairs(what, <const uint16_t*>a, <const uint16_t*>b, <uint16_t*>y, n)
    else:
        return 0


cdef void add_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a + b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_ADD, a, b, y, n), n):
        put(value(a[i]) + value(b[i]), y + i)


cdef void sub_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a - b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_SUB, a, b, y, n), n):
        put(value(a[i]) - value(b[i]), y + i)


cdef void mul_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a * b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_MUL, a, b, y, n), n):
        put(value(a[i]) * value(b[i]), y + i)


cdef void div_run(const short_float* a, const short_float* b, short_float* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a / b"""
    cdef Py_ssize_t i
    for i in range(converted(HALF_DIV, a, b, y, n), n):
        put(value(a[i]) / value(b[i]), y + i)


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


cdef void copysign_run(const short_float* a, const short_float* b, short_float* y,
                       Py_ssize_t n) noexcept nogil:
    """y := the magnitude of a with the sign of b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i].bits = (a[i].bits & 0x7FFF) | (b[i].bits & 0x8000)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    loops = [
        ("add", <size_t>&add_run[half], <size_t>&add_run[brain]),
        ("sub", <size_t>&sub_run[half], <size_t>&sub_run[brain]),
        ("mul", <size_t>&mul_run[half], <size_t>&mul_run[brain]),
        ("div", <size_t>&div_run[half], <size_t>&div_run[brain]),
        ("maximum", <size_t>&maximum_run[half], <size_t>&maximum_run[brain]),
        ("minimum", <size_t>&minimum_run[half], <size_t>&minimum_run[brain]),
        ("copysign", <size_t>&copysign_run[half], <size_t>&copysign_run[brain]),
    ]
    return [row for name, first, second in loops for row in (
        (name, ("float16",) * 2, "float16", first),
        (name, ("bfloat16",) * 2, "bfloat16", second),
    )]
