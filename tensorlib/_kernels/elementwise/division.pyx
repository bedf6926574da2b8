"""Loops of rounding division, and its remainders, by PyTorch's rules.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Blocks of 1024
elements, which stay in the L1 cache, are checked for those that need libm. Integers: division by
zero gives 0, and the caller raises; the smallest number by -1 wraps.
"""

from libc.math cimport fmod as libm_fmod, fmodf
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from tensorlib._kernels.vecmath.rounding cimport floor, trunc
from tensorlib._kernels.vecmath.basics cimport floating, infinity, magnitude, split_high, with_sign

from tensorlib._kernels import rows_for

ctypedef fused integer:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t


cdef inline bint is_far(floating a, floating b) noexcept nogil:
    """whether `fmod_near` is inexact: the quotient has more than 28 or 52 bits"""
    cdef double x = magnitude(a), y = magnitude(b), q = x / y
    if floating is float:
        return (q >= 268435456.0) & (q < infinity(q))
    else:
        return (q >= 4503599627370496.0) & (y > 0) & (x < infinity(x))


cdef inline floating fmod_near(floating a, floating b) noexcept nogil:
    """the remainder of a / b with the sign of a, where not far"""
    cdef double x = magnitude(a), y = magnitude(b), q = trunc(x / y), r
    cdef double q_high, q_low, y_high, y_low
    if floating is float:  # the quotient of two floats is never rounded up to an integer
        r = x - q * y
    else:  # products of half-length parts are exact, and so is each difference
        q_high = split_high(q)
        q_low = q - q_high
        y_high = split_high(y)
        y_low = y - y_high
        r = (((x - q_high * y_high) - q_high * y_low) - q_low * y_high) - q_low * y_low
        r = r + y if r < 0 else r
    r = x if x < y else r
    return with_sign(<floating>r, a)


cdef inline floating fmod_far(floating a, floating b) noexcept nogil:
    if floating is float:
        return fmodf(a, b)
    else:
        return libm_fmod(a, b)


cdef inline floating remainder_from(floating rest, floating b) noexcept nogil:
    """the remainder with the sign of b, as in Python, from that with the sign of a"""
    return rest + b if (rest != 0) & ((rest < 0) != (b < 0)) else rest


cdef inline floating floor_quotient(floating rest, floating a, floating b) noexcept nogil:
    """floor(a / b) from the remainder with the sign of a, so that it agrees with `remainder`"""
    cdef floating zero = 0, one = 1, half = 0.5, ratio = a / b, q = (a - rest) / b, whole
    q = q - one if (rest != 0) & ((rest < 0) != (b < 0)) else q
    whole = floor(q)
    whole = whole + one if q - whole > half else whole
    whole = with_sign(zero, ratio) if q == 0 else whole
    return ratio if b == 0 else whole


cdef inline bint any_far(const floating* a, const floating* b, Py_ssize_t start,
                         Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= is_far(a[i], b[i])
    return found


cdef inline floating fmod(floating a, floating b) noexcept nogil:
    return fmod_far(a, b) if is_far(a, b) else fmod_near(a, b)


cdef void fmod_run(const floating* a, const floating* b, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := a - trunc(a / b) * b"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_far(a, b, start, stop):
            for i in range(start, stop):
                y[i] = fmod(a[i], b[i])
        else:
            for i in range(start, stop):
                y[i] = fmod_near(a[i], b[i])


cdef void remainder_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := a - floor(a / b) * b"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_far(a, b, start, stop):
            for i in range(start, stop):
                y[i] = remainder_from(fmod(a[i], b[i]), b[i])
        else:
            for i in range(start, stop):
                y[i] = remainder_from(fmod_near(a[i], b[i]), b[i])


cdef void floor_divide_run(const floating* a, const floating* b, floating* y,
                           Py_ssize_t n) noexcept nogil:
    """y := floor(a / b)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_far(a, b, start, stop):
            for i in range(start, stop):
                y[i] = floor_quotient(fmod(a[i], b[i]), a[i], b[i])
        else:
            for i in range(start, stop):
                y[i] = floor_quotient(fmod_near(a[i], b[i]), a[i], b[i])


cdef void div_trunc_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := trunc(a / b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = trunc(a[i] / b[i])


cdef inline integer quotient(integer a, integer b) noexcept nogil:
    """a / b rounded to zero; 0 for b == 0"""
    if b == 0:
        return 0
    if b == -1:
        return <integer>(0 - <uint64_t>a)
    return a // b  # cdivision: C's


cdef inline integer rest(integer a, integer b) noexcept nogil:
    """a - quotient(a, b) * b; 0 for b == 0"""
    if b == 0:
        return 0
    if b == -1:  # the smallest number % -1 traps
        return 0
    return a % b  # cdivision: C's


cdef inline bint rounds_down(integer remaining, integer b) noexcept nogil:
    return remaining != 0 and (remaining < 0) != (b < 0)


cdef inline bint any_unusual(const integer* a, const integer* b, Py_ssize_t start,
                             Py_ssize_t stop) noexcept nogil:
    """whether a divisor is 0, or a number has more than 53 bits"""
    cdef Py_ssize_t i
    cdef bint zero = False
    cdef uint64_t high = 0, middle = 9007199254740991
    for i in range(start, stop):
        zero |= b[i] == 0
    if integer is int64_t:
        for i in range(start, stop):
            high |= (<uint64_t>a[i] + middle) | (<uint64_t>b[i] + middle)
    return zero | (high >> 54 != 0)


# Doubles hold integers of 53 bits, and a quotient that is not an integer is at least 1 / b away
# from one, which is more than its rounding error: so it is rounded down or towards zero as the
# exact one. Eight such quotients take as long as one division of integers.

cdef inline integer near_floor(integer a, integer b) noexcept nogil:
    return <integer><int64_t>floor(<double>a / <double>b)


cdef inline integer near_trunc(integer a, integer b) noexcept nogil:
    return <integer><int64_t>(<double>a / <double>b)


cdef inline integer less(integer a, integer q, integer b) noexcept nogil:
    """a - q * b, in unsigned numbers: the least number has no counterpart, its q by -1 is no int"""
    return <integer>(<uint64_t>a - <uint64_t>q * <uint64_t>b)


cdef void div_trunc_int_run(const integer* a, const integer* b, integer* y,
                            Py_ssize_t n) noexcept nogil:
    """y := trunc(a / b)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_unusual(a, b, start, stop):
            for i in range(start, stop):
                y[i] = quotient(a[i], b[i])
        else:
            for i in range(start, stop):
                y[i] = near_trunc(a[i], b[i])


cdef void floor_divide_int_run(const integer* a, const integer* b, integer* y,
                               Py_ssize_t n) noexcept nogil:
    """y := floor(a / b)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_unusual(a, b, start, stop):
            for i in range(start, stop):
                y[i] = quotient(a[i], b[i]) - <integer>rounds_down(rest(a[i], b[i]), b[i])
        else:
            for i in range(start, stop):
                y[i] = near_floor(a[i], b[i])


cdef void fmod_int_run(const integer* a, const integer* b, integer* y,
                       Py_ssize_t n) noexcept nogil:
    """y := a - trunc(a / b) * b"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_unusual(a, b, start, stop):
            for i in range(start, stop):
                y[i] = rest(a[i], b[i])
        else:
            for i in range(start, stop):
                y[i] = less(a[i], near_trunc(a[i], b[i]), b[i])


cdef void remainder_int_run(const integer* a, const integer* b, integer* y,
                            Py_ssize_t n) noexcept nogil:
    """y := a - floor(a / b) * b"""
    cdef Py_ssize_t i, start, stop
    cdef integer remaining
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_unusual(a, b, start, stop):
            for i in range(start, stop):
                remaining = rest(a[i], b[i])
                y[i] = remaining + b[i] if rounds_down(remaining, b[i]) else remaining
        else:
            for i in range(start, stop):
                y[i] = less(a[i], near_floor(a[i], b[i]), b[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(("float32", "float64", "uint8", "int8", "int16", "int32", "int64"), [
        ("fmod", <size_t>&fmod_run[float], <size_t>&fmod_run[double],
         <size_t>&fmod_int_run[uint8_t], <size_t>&fmod_int_run[int8_t],
         <size_t>&fmod_int_run[int16_t], <size_t>&fmod_int_run[int32_t],
         <size_t>&fmod_int_run[int64_t]),
        ("remainder", <size_t>&remainder_run[float], <size_t>&remainder_run[double],
         <size_t>&remainder_int_run[uint8_t], <size_t>&remainder_int_run[int8_t],
         <size_t>&remainder_int_run[int16_t], <size_t>&remainder_int_run[int32_t],
         <size_t>&remainder_int_run[int64_t]),
        ("floor_divide", <size_t>&floor_divide_run[float], <size_t>&floor_divide_run[double],
         <size_t>&floor_divide_int_run[uint8_t], <size_t>&floor_divide_int_run[int8_t],
         <size_t>&floor_divide_int_run[int16_t], <size_t>&floor_divide_int_run[int32_t],
         <size_t>&floor_divide_int_run[int64_t]),
        ("div_trunc", <size_t>&div_trunc_run[float], <size_t>&div_trunc_run[double],
         <size_t>&div_trunc_int_run[uint8_t], <size_t>&div_trunc_int_run[int8_t],
         <size_t>&div_trunc_int_run[int16_t], <size_t>&div_trunc_int_run[int32_t],
         <size_t>&div_trunc_int_run[int64_t]),
    ], 2)
