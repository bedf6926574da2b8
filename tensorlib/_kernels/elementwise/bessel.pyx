"""Loops of Bessel functions: y := f(x), float32 (by double) and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Blocks of 1024
elements leave out the polynomial of large numbers where there are none.
"""

from tensorlib._kernels.vecmath.basics cimport floating, magnitude
from tensorlib._kernels.vecmath.bessel cimport i0, i0e, i1, i1e

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


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("i0", <size_t>&i0_run[float], <size_t>&i0_run[double]),
        ("i0e", <size_t>&i0e_run[float], <size_t>&i0e_run[double]),
        ("i1", <size_t>&i1_run[float], <size_t>&i1_run[double]),
        ("i1e", <size_t>&i1e_run[float], <size_t>&i1e_run[double]),
    ])
