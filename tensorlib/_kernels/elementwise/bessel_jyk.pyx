"""Loops of Bessel functions: J and Y, which oscillate, and K, which decays, of orders 0 and 1.

y := f(x), float32 (by double) and float64. Every loop sees one contiguous run of n elements
(`tensorlib/_kernels/__init__.py`).

The elements of a block go in two groups, those near 0 and those beyond, which have other
polynomials; each is a vectorised loop. Of J and Y what is so large that sine and cosine need more
digits is then taken again.
"""

from tensorlib._kernels.vecmath.basics cimport floating, infinity, magnitude
from tensorlib._kernels.vecmath.bessel_jyk cimport (
    j0_inside, j0_outside, j1_inside, j1_outside, k0_inside, k0_outside, k1_inside, k1_outside,
    y0_inside, y0_outside, y1_inside, y1_outside)
from tensorlib._kernels.vecmath.exp cimport exp
from tensorlib._kernels.vecmath.trig cimport cos, cos_far, is_far, sin, sin_far

from tensorlib._kernels import FLOATS, rows_for

cdef enum:
    BLOCK = 256

ctypedef void (*group_fn)(const double* x, double* y, Py_ssize_t n) noexcept nogil


cdef void by_groups(group_fn inside, group_fn outside, double bound, const floating* x, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := f(x), by one function where |x| <= bound, and by another one elsewhere"""
    cdef double[BLOCK] values, results
    cdef int[BLOCK] near, far
    cdef int i, n_near, n_far, count
    cdef bint is_near
    while n > 0:
        count = <int>min(n, <Py_ssize_t>BLOCK)
        n_near = n_far = 0
        for i in range(count):
            is_near = magnitude(x[i]) <= bound
            near[n_near] = far[n_far] = i
            n_near += is_near
            n_far += not is_near
        for i in range(n_near):
            values[i] = x[near[i]]
        inside(values, results, n_near)
        for i in range(n_near):
            y[near[i]] = <floating>results[i]
        for i in range(n_far):
            values[i] = x[far[i]]
        outside(values, results, n_far)
        for i in range(n_far):
            y[far[i]] = <floating>results[i]
        x += count
        y += count
        n -= count


cdef void j0_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = j0_inside(x[i])


cdef void j0_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = j0_outside(x[i], sin(magnitude(x[i])), cos(magnitude(x[i])))
    for i in range(n):
        if is_far(x[i]):
            y[i] = j0_outside(x[i], sin_far(magnitude(x[i])), cos_far(magnitude(x[i])))


cdef void j0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := J0(x)"""
    by_groups(j0_near, j0_beyond, 5, x, y, n)


cdef void j1_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = j1_inside(x[i])


cdef void j1_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = j1_outside(x[i], sin(magnitude(x[i])), cos(magnitude(x[i])))
    for i in range(n):
        if is_far(x[i]):
            y[i] = j1_outside(x[i], sin_far(magnitude(x[i])), cos_far(magnitude(x[i])))


cdef void j1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := J1(x)"""
    by_groups(j1_near, j1_beyond, 5, x, y, n)


cdef void y0_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = y0_inside(x[i])


cdef void y0_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = y0_outside(x[i], sin(magnitude(x[i])), cos(magnitude(x[i])))
    for i in range(n):
        if is_far(x[i]):
            y[i] = y0_outside(x[i], sin_far(magnitude(x[i])), cos_far(magnitude(x[i])))


cdef void y0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := Y0(x)"""
    by_groups(y0_near, y0_beyond, 5, x, y, n)


cdef void y1_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = y1_inside(x[i])


cdef void y1_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = y1_outside(x[i], sin(magnitude(x[i])), cos(magnitude(x[i])))
    for i in range(n):
        if is_far(x[i]):
            y[i] = y1_outside(x[i], sin_far(magnitude(x[i])), cos_far(magnitude(x[i])))


cdef void y1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := Y1(x)"""
    by_groups(y1_near, y1_beyond, 5, x, y, n)


cdef void k0_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = k0_inside(x[i])


cdef void k0_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = k0_outside(x[i], exp(-x[i]))


cdef void k0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := K0(x)"""
    by_groups(k0_near, k0_beyond, 2, x, y, n)


cdef void k0e_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = exp(x[i]) * k0_inside(x[i])


cdef void k0e_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = k0_outside(x[i], 1)


cdef void k0e_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := exp(x) * K0(x)"""
    by_groups(k0e_near, k0e_beyond, 2, x, y, n)


cdef void k1_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = k1_inside(x[i])


cdef void k1_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = k1_outside(x[i], exp(-x[i]))


cdef void k1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := K1(x)"""
    by_groups(k1_near, k1_beyond, 2, x, y, n)


cdef void k1e_near(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = exp(x[i]) * k1_inside(x[i])


cdef void k1e_beyond(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = k1_outside(x[i], 1)


cdef void k1e_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := exp(x) * K1(x)"""
    by_groups(k1e_near, k1e_beyond, 2, x, y, n)


cdef void spherical_j0_part(const double* x, double* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef double ratio
    for i in range(n):
        ratio = 0.0 if magnitude(x[i]) == infinity(x[i]) else sin(x[i]) / x[i]
        y[i] = 1.0 if x[i] == 0 else ratio
    for i in range(n):
        if is_far(x[i]):
            y[i] = sin_far(x[i]) / x[i]


cdef void spherical_j0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sin(x) / x, 1 at 0 and 0 at infinity"""
    by_groups(spherical_j0_part, spherical_j0_part, infinity(<double>0), x, y, n)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("bessel_j0", <size_t>&j0_run[float], <size_t>&j0_run[double]),
        ("bessel_j1", <size_t>&j1_run[float], <size_t>&j1_run[double]),
        ("bessel_y0", <size_t>&y0_run[float], <size_t>&y0_run[double]),
        ("bessel_y1", <size_t>&y1_run[float], <size_t>&y1_run[double]),
        ("modified_bessel_k0", <size_t>&k0_run[float], <size_t>&k0_run[double]),
        ("modified_bessel_k1", <size_t>&k1_run[float], <size_t>&k1_run[double]),
        ("scaled_modified_bessel_k0", <size_t>&k0e_run[float], <size_t>&k0e_run[double]),
        ("scaled_modified_bessel_k1", <size_t>&k1e_run[float], <size_t>&k1e_run[double]),
        ("spherical_bessel_j0", <size_t>&spherical_j0_run[float],
         <size_t>&spherical_j0_run[double]),
    ])
