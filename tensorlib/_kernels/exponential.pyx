"""Loops of the exponential family: y := f(x), float32 and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`).
"""

from tensorlib._kernels.vecmath cimport floating
from tensorlib._kernels.vecmath_erf cimport erf, erfc
from tensorlib._kernels.vecmath_exp cimport cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from tensorlib._kernels.vecmath_log cimport log, log1p, log2, log10

cdef void exp_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := exp(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = exp(x[i])


cdef void expm1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := expm1(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = expm1(x[i])


cdef void exp2_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := exp2(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = exp2(x[i])


cdef void sigmoid_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sigmoid(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = sigmoid(x[i])


cdef void tanh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := tanh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = tanh(x[i])


cdef void sinh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sinh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = sinh(x[i])


cdef void cosh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := cosh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = cosh(x[i])


cdef void log_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = log(x[i])


cdef void log1p_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log1p(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = log1p(x[i])


cdef void log2_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log2(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = log2(x[i])


cdef void log10_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log10(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = log10(x[i])


cdef void erf_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := erf(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = erf(x[i])


cdef void erfc_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := erfc(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = erfc(x[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    loops = [
        ("exp", <size_t>&exp_run[float], <size_t>&exp_run[double]),
        ("expm1", <size_t>&expm1_run[float], <size_t>&expm1_run[double]),
        ("exp2", <size_t>&exp2_run[float], <size_t>&exp2_run[double]),
        ("sigmoid", <size_t>&sigmoid_run[float], <size_t>&sigmoid_run[double]),
        ("tanh", <size_t>&tanh_run[float], <size_t>&tanh_run[double]),
        ("sinh", <size_t>&sinh_run[float], <size_t>&sinh_run[double]),
        ("cosh", <size_t>&cosh_run[float], <size_t>&cosh_run[double]),
        ("log", <size_t>&log_run[float], <size_t>&log_run[double]),
        ("log1p", <size_t>&log1p_run[float], <size_t>&log1p_run[double]),
        ("log2", <size_t>&log2_run[float], <size_t>&log2_run[double]),
        ("log10", <size_t>&log10_run[float], <size_t>&log10_run[double]),
        ("erf", <size_t>&erf_run[float], <size_t>&erf_run[double]),
        ("erfc", <size_t>&erfc_run[float], <size_t>&erfc_run[double]),
    ]
    return [row for name, single, double_ in loops for row in (
        (name, ("float32",), "float32", single),
        (name, ("float64",), "float64", double_),
    )]
