"""Loops of Bessel functions: J and Y, which oscillate, and K, which decays, of orders 0 and 1.

y := f(x), float32 (by double) and float64. Every loop sees one contiguous run of n elements
(`tensorlib/_kernels/__init__.py`).
"""

from tensorlib._kernels.vecmath cimport floating
from tensorlib._kernels.vecmath_bessel_jyk cimport j0, j1, k0, k1, spherical_j0, y0, y1

from tensorlib._kernels import FLOATS, rows_for


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
