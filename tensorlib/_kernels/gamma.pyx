"""Loops of the gamma function's family: y := f(x), float32 (by double) and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Where nothing
is negative in a block of 1024, the branches of the reflections are left out.
"""

from tensorlib._kernels.vecmath cimport floating
from tensorlib._kernels.vecmath_gamma cimport (
    digamma, digamma_positive, lgamma, lgamma_positive, polygamma, trigamma, trigamma_for_float,
    trigamma_positive, zeta)
from tensorlib._kernels.vecmath_gamma_parts cimport gamma_gradient, gammainc, gammaincc

cdef inline bint any_negative(const floating* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= x[i] < 0
    return found


cdef void lgamma_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := lgamma(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>lgamma(x[i])
        else:
            for i in range(start, stop):
                y[i] = <floating>lgamma_positive(x[i])


cdef void digamma_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := digamma(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>digamma(x[i])
        else:
            for i in range(start, stop):
                y[i] = <floating>digamma_positive(x[i])


cdef inline floating trigamma_at_least_0(floating x) noexcept nogil:
    if floating is float:
        return <float>trigamma_for_float(x)
    else:
        return trigamma_positive(x)


cdef void trigamma_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := trigamma(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = trigamma_at_least_0(x[i]) if x[i] >= 0 else <floating>trigamma(x[i])
        else:
            for i in range(start, stop):
                y[i] = trigamma_at_least_0(x[i])


cdef void polygamma_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := polygamma(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>polygamma(a[i], b[i])


cdef void zeta_run(const floating* a, const floating* b, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := zeta(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>zeta(a[i], b[i])


cdef void gammainc_run(const floating* a, const floating* b, floating* y,
                       Py_ssize_t n) noexcept nogil:
    """y := gammainc(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>gammainc(a[i], b[i])


cdef void gammaincc_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := gammaincc(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>gammaincc(a[i], b[i])


cdef void gamma_gradient_run(const floating* a, const floating* b, floating* y,
                             Py_ssize_t n) noexcept nogil:
    """y := gamma_gradient(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>gamma_gradient(a[i], b[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    loops = [
        ("lgamma", <size_t>&lgamma_run[float], <size_t>&lgamma_run[double]),
        ("digamma", <size_t>&digamma_run[float], <size_t>&digamma_run[double]),
        ("trigamma", <size_t>&trigamma_run[float], <size_t>&trigamma_run[double]),
    ]
    pairs = [
        ("polygamma", <size_t>&polygamma_run[float], <size_t>&polygamma_run[double]),
        ("zeta", <size_t>&zeta_run[float], <size_t>&zeta_run[double]),
        ("gammainc", <size_t>&gammainc_run[float], <size_t>&gammainc_run[double]),
        ("gammaincc", <size_t>&gammaincc_run[float], <size_t>&gammaincc_run[double]),
        ("gamma_gradient", <size_t>&gamma_gradient_run[float],
         <size_t>&gamma_gradient_run[double]),
    ]
    return [row for arity, rows in ((1, loops), (2, pairs)) for name, single, double_ in rows
            for row in ((name, ("float32",) * arity, "float32", single),
                        (name, ("float64",) * arity, "float64", double_))]
