"""Loops of functions of complex numbers: pairs of floating ones, the real part first.

Every loop sees one contiguous run of n numbers (`tensorlib/_kernels/__init__.py`). What has no loop
here has NumPy's, which are the C library's functions.
"""

from libc.complex cimport cexp, clog, csqrt
from libc.math cimport atan2 as libm_atan2, log1p as libm_log1p

from tensorlib._kernels.vecmath cimport floating, infinity
from tensorlib._kernels.vecmath_exp cimport exp
from tensorlib._kernels.vecmath_trig cimport cos, cos_far, is_far, sin, sin_far

cdef enum:
    BLOCK = 256              # numbers whose parts are worked on apart from each other


cdef void exp_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := e**x

    Where e**re overflows, its product with a cosine may not: there it is taken in two factors.
    """
    cdef floating[BLOCK] re, im, size, factor, cosine, sine
    cdef floating inf = infinity(x[0]), limit, step, rest, zero = 0, one = 1
    cdef Py_ssize_t i, count, start = 0
    cdef bint far, large
    if floating is float:
        limit, step, rest = 80, 32, 78962960182680.69                  # e**32
    else:
        limit, step, rest = 700, 64, 6.235149080811617e27              # e**64
    while start < n:
        count = min(n - start, <Py_ssize_t>BLOCK)
        far = False
        for i in range(count):
            re[i], im[i] = x[2 * (start + i)], x[2 * (start + i) + 1]
            far |= is_far(im[i])
        for i in range(count):
            large = re[i] > limit
            size[i] = exp[floating](re[i] - (step if large else zero))
            factor[i] = rest if large else one
        if far:
            for i in range(count):
                cosine[i] = cos_far(im[i]) if is_far(im[i]) else cos(im[i])
                sine[i] = sin_far(im[i]) if is_far(im[i]) else sin(im[i])
        else:
            for i in range(count):
                cosine[i] = cos(im[i])
            for i in range(count):
                sine[i] = sin(im[i])
        for i in range(count):
            cosine[i] = size[i] * cosine[i] * factor[i]
            sine[i] = size[i] * sine[i] * factor[i]
            # e**-inf is 0 whatever the angle; e**inf is infinite in any direction; 0 stays 0
            cosine[i] = zero if re[i] == -inf else cosine[i]
            sine[i] = zero if re[i] == -inf else sine[i]
            cosine[i] = inf if (re[i] == inf) & (cosine[i] != cosine[i]) else cosine[i]
            sine[i] = im[i] if im[i] == 0 else sine[i]
        for i in range(count):
            y[2 * (start + i)], y[2 * (start + i) + 1] = cosine[i], sine[i]
        start += count


cdef void rsqrt_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / sqrt(x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = 1 / csqrt(pair(x[2 * i], x[2 * i + 1]))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef inline double complex pair(double re, double im) noexcept nogil:
    """re + im i, also where one is infinite"""
    cdef double complex z = 0
    z.real, z.imag = re, im
    return z


cdef void sigmoid_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / (1 + e**-x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = 1 / (1 + cexp(pair(-x[2 * i], -x[2 * i + 1])))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void log1p_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log(1 + x), in double, exact for small x: log |1 + x|**2 / 2 without the 1"""
    cdef Py_ssize_t i
    cdef double re, im
    cdef double complex z
    for i in range(n):
        re, im = x[2 * i], x[2 * i + 1]
        if re * re + im * im < 0.25:
            y[2 * i] = <floating>(0.5 * libm_log1p(re * (2 + re) + im * im))
            y[2 * i + 1] = <floating>libm_atan2(im, 1 + re)
        else:
            z = clog(pair(1 + re, im))
            y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    loops = [
        ("exp", <size_t>&exp_run[float], <size_t>&exp_run[double]),
        ("rsqrt", <size_t>&rsqrt_run[float], <size_t>&rsqrt_run[double]),
        ("sigmoid", <size_t>&sigmoid_run[float], <size_t>&sigmoid_run[double]),
        ("log1p", <size_t>&log1p_run[float], <size_t>&log1p_run[double]),
    ]
    return [row for name, single, double_ in loops for row in (
        (name, ("complex64",), "complex64", single),
        (name, ("complex128",), "complex128", double_))]
