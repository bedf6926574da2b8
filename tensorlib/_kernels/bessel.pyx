"""Loops of Bessel functions: y := f(x), float32 (by double) and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Blocks of 1024
elements leave out the polynomial of large numbers where there are none; functions that are not of
the first modified kind choose for each element.
"""

from tensorlib._kernels.vecmath cimport floating, magnitude
from tensorlib._kernels.vecmath_bessel cimport i0, i0e, i1, i1e
from tensorlib._kernels.vecmath_waves cimport j0, j1, k0, k1, spherical_j0, y0, y1

from tensorlib._kernels import FLOATS, rows_for

cdef inline bint any_large(const floating* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= magnitude(x[i]) >= 12
    return found


cdef void i0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := i0(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_large(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>i0(x[i], False)
        else:
            for i in range(start, stop):
                y[i] = <floating>i0(x[i], True)


cdef void i0e_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := i0e(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_large(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>i0e(x[i], False)
        else:
            for i in range(start, stop):
                y[i] = <floating>i0e(x[i], True)


cdef void i1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := i1(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_large(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>i1(x[i], False)
        else:
            for i in range(start, stop):
                y[i] = <floating>i1(x[i], True)


cdef void i1e_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := i1e(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_large(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>i1e(x[i], False)
        else:
            for i in range(start, stop):
                y[i] = <floating>i1e(x[i], True)


cdef void j0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := J0(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>j0(x[i])


cdef void j1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := J1(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>j1(x[i])


cdef void y0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := Y0(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>y0(x[i])


cdef void y1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := Y1(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>y1(x[i])


cdef void k0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := K0(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>k0(x[i], False)


cdef void k1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := K1(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>k1(x[i], False)


cdef void k0e_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := exp(x) * K0(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>k0(x[i], True)


cdef void k1e_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := exp(x) * K1(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>k1(x[i], True)


cdef void spherical_j0_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sin(x) / x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>spherical_j0(x[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("i0", <size_t>&i0_run[float], <size_t>&i0_run[double]),
        ("i0e", <size_t>&i0e_run[float], <size_t>&i0e_run[double]),
        ("i1", <size_t>&i1_run[float], <size_t>&i1_run[double]),
        ("i1e", <size_t>&i1e_run[float], <size_t>&i1e_run[double]),
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
