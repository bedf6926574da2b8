"""Loops of one exact operation: y := f(x), float32 and float64; predicates give bool.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from tensorlib._kernels.vecmath.rounding cimport ceil, floor, trunc
from tensorlib._kernels.vecmath.basics cimport (
    bits32, bits64, floating, from_bits32, from_bits64, infinity, magnitude, round_even, sqrt)

from tensorlib._kernels import FLOATS, HALVES, rows_for

cdef extern from "vecmath/wide_root.h" nogil:
    const bint HAS_WIDE
    void wide_sqrt_run()
    void wide_sqrt_d_run()


cdef void neg_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := -x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = -x[i]


cdef void abs_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := |x|"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = magnitude(x[i])


cdef void sign_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := -1, 0 or 1 by the sign of x; 0 for NaN"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>((x[i] > 0) - (x[i] < 0))


cdef void sqrt_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sqrt(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = sqrt(x[i])


cdef void root_of_positive_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sqrt(x), 0 for x below 0"""
    cdef Py_ssize_t i
    cdef floating zero = 0
    for i in range(n):
        y[i] = sqrt(zero if x[i] < 0 else x[i])


cdef void rsqrt_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / sqrt(x)"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = one / sqrt(x[i])


cdef void square_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x * x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] * x[i]


cdef void reciprocal_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / x"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = one / x[i]


cdef void floor_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := floor(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = floor(x[i])


cdef void ceil_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := ceil(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = ceil(x[i])


cdef void round_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x rounded to an integer, halves to even"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = round_even(x[i])


cdef void trunc_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := trunc(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = trunc(x[i])


cdef void frac_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x - trunc(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] - trunc(x[i])


cdef inline floating split_exponent(floating x, floating* e) noexcept nogil:
    """m in (-1, -0.5] or [0.5, 1) and e with x = m * 2**e; x and 0 where it is 0 or not finite"""
    cdef floating lift, lifted, zero = 0, half
    cdef bint subnormal, plain = (x != 0) & (magnitude(x) < infinity(x))
    if floating is float:
        subnormal = magnitude(x) < <float>1.17549435e-38
        lift = 16777216.0
        lifted = x * lift if subnormal else x
        half = from_bits32((bits32(lifted) & 0x807FFFFFu) | 0x3F000000u)
        e[0] = <float>(<int32_t>((bits32(lifted) >> 23) & 0xFFu) - (150 if subnormal else 126))
    else:
        subnormal = magnitude(x) < 2.2250738585072014e-308
        lift = 18014398509481984.0
        lifted = x * lift if subnormal else x
        half = from_bits64((bits64(lifted) & 0x800FFFFFFFFFFFFFu) | 0x3FE0000000000000u)
        e[0] = <double>(<int64_t>((bits64(lifted) >> 52) & 0x7FFu) - (1076 if subnormal else 1022))
    e[0] = e[0] if plain else zero
    return half if plain else x


cdef void mantissa_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := m for x = m * 2**e, m in (-1, -0.5], 0 or [0.5, 1)"""
    cdef Py_ssize_t i
    cdef floating e
    for i in range(n):
        y[i] = split_exponent(x[i], &e)


cdef void exponent_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := e, as in `mantissa`; 0 where x is not finite"""
    cdef Py_ssize_t i
    cdef floating e
    for i in range(n):
        split_exponent(x[i], &e)
        y[i] = e


cdef void logical_not_run(const floating* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := x == 0"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] == 0


cdef void angle_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := pi where x is negative, else 0; NaN stays"""
    cdef Py_ssize_t i
    cdef floating pi = 3.141592653589793, zero = 0, found
    for i in range(n):
        found = pi if x[i] < 0 else zero
        y[i] = x[i] if x[i] != x[i] else found


cdef void isnan_run(const floating* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := x is NaN"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] != x[i]


cdef void isinf_run(const floating* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := |x| is infinite"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = magnitude(x[i]) == infinity(x[i])


cdef void isfinite_run(const floating* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := x is neither NaN nor infinite"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = magnitude(x[i]) < infinity(x[i])


# ---- half types: their sign is a bit, whatever the rest means -----------------------------------

cdef void square_bool_run(const uint8_t* x, int64_t* y, Py_ssize_t n) noexcept nogil:
    """y := x**2, which of 0 and 1 is itself"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] != 0


cdef void not_bool_run(const uint8_t* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := not x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] == 0


cdef void neg_half_run(const uint16_t* x, uint16_t* y, Py_ssize_t n) noexcept nogil:
    """y := -x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] ^ 0x8000


cdef void abs_half_run(const uint16_t* x, uint16_t* y, Py_ssize_t n) noexcept nogil:
    """y := |x|"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] & 0x7FFF


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("neg", <size_t>&neg_run[float], <size_t>&neg_run[double]),
        ("abs", <size_t>&abs_run[float], <size_t>&abs_run[double]),
        ("sign", <size_t>&sign_run[float], <size_t>&sign_run[double]),
        ("sqrt", <size_t>&wide_sqrt_run if HAS_WIDE else <size_t>&sqrt_run[float],
         <size_t>&wide_sqrt_d_run if HAS_WIDE else <size_t>&sqrt_run[double]),
        ("root_of_positive",
         <size_t>&root_of_positive_run[float], <size_t>&root_of_positive_run[double]),
        ("rsqrt", <size_t>&rsqrt_run[float], <size_t>&rsqrt_run[double]),
        ("square", <size_t>&square_run[float], <size_t>&square_run[double]),
        ("reciprocal", <size_t>&reciprocal_run[float], <size_t>&reciprocal_run[double]),
        ("floor", <size_t>&floor_run[float], <size_t>&floor_run[double]),
        ("ceil", <size_t>&ceil_run[float], <size_t>&ceil_run[double]),
        ("round", <size_t>&round_run[float], <size_t>&round_run[double]),
        ("mantissa", <size_t>&mantissa_run[float], <size_t>&mantissa_run[double]),
        ("exponent", <size_t>&exponent_run[float], <size_t>&exponent_run[double]),
        ("frac", <size_t>&frac_run[float], <size_t>&frac_run[double]),
        ("angle", <size_t>&angle_run[float], <size_t>&angle_run[double]),
        ("trunc", <size_t>&trunc_run[float], <size_t>&trunc_run[double]),
    ]) + rows_for(FLOATS, [
        ("logical_not", <size_t>&logical_not_run[float], <size_t>&logical_not_run[double]),
        ("isnan", <size_t>&isnan_run[float], <size_t>&isnan_run[double]),
        ("isinf", <size_t>&isinf_run[float], <size_t>&isinf_run[double]),
        ("isfinite", <size_t>&isfinite_run[float], <size_t>&isfinite_run[double]),
    ], output="bool") + rows_for(HALVES, [
        ("neg", <size_t>&neg_half_run, <size_t>&neg_half_run),
        ("abs", <size_t>&abs_half_run, <size_t>&abs_half_run),
    ]) + rows_for(("bool",), [("square", <size_t>&square_bool_run)], output="int64") + rows_for(
        ("bool",), [("logical_not", <size_t>&not_bool_run), ("bitwise_not", <size_t>&not_bool_run)])
