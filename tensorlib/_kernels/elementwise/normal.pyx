"""Loops of the normal distribution's functions: y := f(x), float32 (by double) and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Branches
that no element of a block of 1024 takes are skipped.
"""

from libc.stdint cimport uint8_t

from tensorlib._kernels.vecmath.basics cimport floating, magnitude
from tensorlib._kernels.vecmath.normal cimport (
    erfcx, erfcx_positive, erfinv, erfinv_far, erfinv_near, log_ndtr, ndtr, ndtri, ndtri_near)

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "vecmath/wide_doubles.h" nogil:
    const bint HAS_WIDE
    void wide_erfinv_run()
    void wide_erfinv_near_d_run(const double* x, double* y, Py_ssize_t n)


cdef inline bint any_negative(const floating* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= x[i] < 0
    return found


cdef inline bint any_small(const floating* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= x[i] < 1e-16
    return found


cdef inline void erfinv_block(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := erfinv(x) of at most 256 elements

    The few that are near 1 are collected, so that the others don't pay for their root and series.
    """
    cdef floating far[256]
    cdef uint8_t places[256]
    cdef floating border = 0.9966
    cdef Py_ssize_t i, count = 0
    cdef int found = 0
    for i in range(n):
        found |= not magnitude(x[i]) < border
    if found:
        for i in range(n):             # without a branch: elements that are not far are overwritten
            far[count] = x[i]
            places[count] = <uint8_t>i
            count += not magnitude(x[i]) < border
    if floating is float:
        for i in range(n):
            y[i] = erfinv_near(x[i])
        for i in range(count):
            far[i] = erfinv_far(far[i])
    else:
        wide_erfinv_near_d_run(x, y, n)
        for i in range(count):
            far[i] = erfinv(far[i])
    for i in range(count):
        y[places[i]] = far[i]


cdef void erfinv_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := erfinv(x)"""
    cdef Py_ssize_t i
    if floating is float or HAS_WIDE:
        for i in range(0, n, 256):
            erfinv_block(x + i, y + i, min(n - i, <Py_ssize_t>256))
    else:
        for i in range(n):
            y[i] = erfinv(x[i])


cdef void erfcx_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := erfcx(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>erfcx(x[i])
        else:
            for i in range(start, stop):
                y[i] = <floating>erfcx_positive(x[i])


cdef void ndtr_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := ndtr(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>ndtr(x[i])


cdef void log_ndtr_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log_ndtr(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>log_ndtr(x[i])


cdef void ndtri_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := ndtri(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_small(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>ndtri(x[i])
        else:
            for i in range(start, stop):
                y[i] = <floating>ndtri_near(x[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("erfinv", <size_t>&wide_erfinv_run if HAS_WIDE else <size_t>&erfinv_run[float],
         <size_t>&erfinv_run[double]),
        ("erfcx", <size_t>&erfcx_run[float], <size_t>&erfcx_run[double]),
        ("ndtr", <size_t>&ndtr_run[float], <size_t>&ndtr_run[double]),
        ("log_ndtr", <size_t>&log_ndtr_run[float], <size_t>&log_ndtr_run[double]),
        ("ndtri", <size_t>&ndtri_run[float], <size_t>&ndtri_run[double]),
    ])
