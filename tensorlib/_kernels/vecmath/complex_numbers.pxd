"""Functions of complex numbers in double, for loops where they are not hot.

They combine the C library's functions without loss of accuracy. `TL_ROUNDED` keeps products from
being contracted with sums.
"""

from libc.complex cimport cexp, clog
from libc.math cimport INFINITY, NAN, atan2, log1p

from tensorlib._kernels.vecmath.basics cimport floating

cdef extern from *:
    """
    #if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
    #define TL_ROUNDED(x) __builtin_assoc_barrier(x)
    #else
    #define TL_ROUNDED(x) (x)
    #endif
    """
    float rounded_single "TL_ROUNDED" (float x) noexcept nogil
    double rounded_double "TL_ROUNDED" (double x) noexcept nogil


cdef inline floating rounded(floating x) noexcept nogil:
    """x, a product, rounded: never contracted with a sum"""
    if floating is float:
        return rounded_single(x)
    else:
        return rounded_double(x)


cdef inline double complex pair(double re, double im) noexcept nogil:
    """re + im i, also where one is infinite"""
    cdef double complex z = 0
    z.real, z.imag = re, im
    return z


cdef inline double complex log_of_one_and(double complex z) noexcept nogil:
    """log(1 + z), exact for small z: log |1 + z|**2 / 2 without the 1"""
    cdef double re = z.real, im = z.imag
    if re * re + im * im < 0.25:
        return pair(0.5 * log1p(re * (2 + re) + im * im), atan2(im, 1 + re))
    return clog(pair(1 + re, im))


cdef inline double complex log_of_two(double complex a, double complex b) noexcept nogil:
    """log(e**a + e**b), computed from the one with the larger real part; NaN where a part is NaN

    If both exponentials are 0 or infinite, the angle is that of one, or of their sum.
    """
    cdef double complex low = a, high = b
    if not (a.real == a.real and a.imag == a.imag and b.real == b.real and b.imag == b.imag):
        return pair(NAN, NAN)
    if a.real > b.real:
        low, high = b, a
    if low.real == high.real == -INFINITY:
        return low
    if low.real == high.real == INFINITY:
        return clog(cexp(low) + cexp(high))
    return high + log_of_one_and(cexp(low - high))
