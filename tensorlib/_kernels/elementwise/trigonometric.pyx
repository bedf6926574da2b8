"""Trigonometric loops: y := f(x), float32 and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). What is far
is looked for in blocks of 1024 elements, which stay in the first-level cache.
"""

from tensorlib._kernels.vecmath.basics cimport floating
from tensorlib._kernels.vecmath.arc cimport acos, asin, atan, atan2
from tensorlib._kernels.vecmath.trig cimport (
    cos, cos_far, is_far, sin, sin_far, sinc, tan, tan_far)

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "vecmath/wide_trig.h" nogil:
    const bint HAS_WIDE
    void wide_sin_run(const float* x, float* y, Py_ssize_t n)
    void wide_cos_run(const float* x, float* y, Py_ssize_t n)
    void wide_sin_d_run(const double* x, double* y, Py_ssize_t n)
    void wide_cos_d_run(const double* x, double* y, Py_ssize_t n)
    void wide_tan_d_run(const double* x, double* y, Py_ssize_t n)
cdef extern from "vecmath/wide_doubles.h" nogil:
    void wide_tan_run(const float* x, float* y, Py_ssize_t n)


cdef inline bint any_far(const floating* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= is_far(x[i])
    return found


cdef inline void sin_near(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sin(x), none of them far"""
    cdef Py_ssize_t i
    if not HAS_WIDE:
        for i in range(n):
            y[i] = sin(x[i])
    elif floating is float:
        wide_sin_run(x, y, n)
    else:
        wide_sin_d_run(x, y, n)


cdef void sin_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sin(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_far(x, start, stop):
            for i in range(start, stop):
                if is_far(x[i]):
                    y[i] = sin_far(x[i])
                else:
                    sin_near(x + i, y + i, 1)
        else:
            sin_near(x + start, y + start, stop - start)


cdef inline void cos_near(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := cos(x), none of them far"""
    cdef Py_ssize_t i
    if not HAS_WIDE:
        for i in range(n):
            y[i] = cos(x[i])
    elif floating is float:
        wide_cos_run(x, y, n)
    else:
        wide_cos_d_run(x, y, n)


cdef void cos_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := cos(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_far(x, start, stop):
            for i in range(start, stop):
                if is_far(x[i]):
                    y[i] = cos_far(x[i])
                else:
                    cos_near(x + i, y + i, 1)
        else:
            cos_near(x + start, y + start, stop - start)


cdef inline void tan_near(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := tan(x), none of them far"""
    cdef Py_ssize_t i
    if not HAS_WIDE:
        for i in range(n):
            y[i] = tan(x[i])
    elif floating is float:
        wide_tan_run(x, y, n)
    else:
        wide_tan_d_run(x, y, n)


cdef void tan_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := tan(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_far(x, start, stop):
            for i in range(start, stop):
                if is_far(x[i]):
                    y[i] = tan_far(x[i])
                else:
                    tan_near(x + i, y + i, 1)
        else:
            tan_near(x + start, y + start, stop - start)


cdef void asin_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := asin(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = asin(x[i])


cdef void acos_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := acos(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = acos(x[i])


cdef void atan_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := atan(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = atan(x[i])


cdef void atan2_run(const floating* a, const floating* b, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := the angle of (b, a)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = atan2(a[i], b[i])


cdef void sinc_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sinc(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>sinc(x[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("sin", <size_t>&sin_run[float], <size_t>&sin_run[double]),
        ("cos", <size_t>&cos_run[float], <size_t>&cos_run[double]),
        ("tan", <size_t>&tan_run[float], <size_t>&tan_run[double]),
        ("asin", <size_t>&asin_run[float], <size_t>&asin_run[double]),
        ("acos", <size_t>&acos_run[float], <size_t>&acos_run[double]),
        ("sinc", <size_t>&sinc_run[float], <size_t>&sinc_run[double]),
        ("atan", <size_t>&atan_run[float], <size_t>&atan_run[double]),
    ]) + rows_for(FLOATS, [
        ("atan2", <size_t>&atan2_run[float], <size_t>&atan2_run[double]),
    ], 2)
