"""Loops of the exponential family: y := f(x), float32 and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Those that are
used most have others in their place where there is AVX-512 (`wide_exp.h` and its like).
"""

from tensorlib._kernels.vecmath.basics cimport floating, magnitude
from tensorlib._kernels.vecmath.erf cimport erf, erfc
from tensorlib._kernels.vecmath.exp cimport cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from tensorlib._kernels.vecmath.log cimport (
    acosh, asinh, atanh, entr, least_normal, log, log1p, log1p_unit, log2, log10, logit, xlog1py,
    xlogy)

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "vecmath/wide_exp.h" nogil:
    const bint HAS_WIDE
    void wide_erf_run()
    void wide_exp_run()
    void wide_exp_d_run()
    void wide_exp2_run(const float* x, float* y, Py_ssize_t n)
    void wide_exp2_d_run(const double* x, double* y, Py_ssize_t n)
    void wide_ldexp_run()
    void wide_ldexp_d_run()
    void wide_sigmoid_run()
    void wide_tanh_run()
cdef extern from "vecmath/wide_erf.h" nogil:
    void wide_erf_d_run()
    void wide_erfc_run()
    void wide_erfc_d_run()
cdef extern from "vecmath/wide_log.h" nogil:
    void wide_log_run()
    void wide_log_d_run()
    void wide_log2_run()
    void wide_log2_d_run()
    void wide_log10_run()
    void wide_log10_d_run()
    void wide_logit_run()
    void wide_logit_d_run()


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


cdef void asinh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := asinh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = asinh(x[i])


cdef void acosh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := acosh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = acosh(x[i])


cdef void atanh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := atanh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = atanh(x[i])


cdef inline bint any_subnormal(const floating* x, Py_ssize_t start,
                               Py_ssize_t stop) noexcept nogil:
    """whether any is subnormal or 0"""
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= magnitude(x[i]) < least_normal(x[i])
    return found


cdef void logit_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := logit(x); blocks of 1024 elements have lifted ones only where one is subnormal"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_subnormal(x, start, stop):
            for i in range(start, stop):
                y[i] = logit(x[i], True)
        else:
            for i in range(start, stop):
                y[i] = logit(x[i], False)


cdef void entr_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := entr(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = entr(x[i])


cdef void xlogy_run(const floating* a, const floating* b, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := xlogy(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = xlogy(a[i], b[i])


cdef void xlog1py_run(const floating* a, const floating* b, floating* y,
                      Py_ssize_t n) noexcept nogil:
    """y := xlog1py(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = xlog1py(a[i], b[i])


cdef inline floating distance(floating a, floating b) noexcept nogil:
    """|a - b|, 0 for equal infinities"""
    cdef floating zero = 0
    return zero if a == b else magnitude(a - b)


cdef inline floating larger(floating a, floating b) noexcept nogil:
    """the larger of both; NaN if either is"""
    cdef floating most = a if a >= b else b
    return a if a != a else most


cdef void logaddexp_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := log(exp(a) + exp(b)) = max(a, b) + log(1 + exp(-|a - b|))"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = larger(a[i], b[i]) + log1p_unit(exp(-distance(a[i], b[i])))


cdef void logaddexp2_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := log2(2**a + 2**b) = max(a, b) + log2(1 + 2**-|a - b|)"""
    cdef Py_ssize_t i
    cdef floating log2e = 1.4426950408889634
    for i in range(n):
        y[i] = larger(a[i], b[i]) + log2e * log1p_unit(exp2(-distance(a[i], b[i])))


cdef void ldexp_run(const floating* a, const floating* b, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := a * 2**b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] * exp2(b[i])


cdef void ldexp_number_run(const floating* a, const floating* b, floating* y,
                           Py_ssize_t n) noexcept nogil:
    """y := a * 2**b[0]"""
    cdef floating factor
    cdef Py_ssize_t i
    if not HAS_WIDE:
        factor = exp2(b[0])
    elif floating is float:
        wide_exp2_run(b, &factor, 1)
    else:
        wide_exp2_d_run(b, &factor, 1)
    for i in range(n):
        y[i] = a[i] * factor


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    loops = [
        ("exp", <size_t>&wide_exp_run if HAS_WIDE else <size_t>&exp_run[float],
         <size_t>&wide_exp_d_run if HAS_WIDE else <size_t>&exp_run[double]),
        ("expm1", <size_t>&expm1_run[float], <size_t>&expm1_run[double]),
        ("exp2", <size_t>&wide_exp2_run if HAS_WIDE else <size_t>&exp2_run[float],
         <size_t>&wide_exp2_d_run if HAS_WIDE else <size_t>&exp2_run[double]),
        ("sigmoid", <size_t>&wide_sigmoid_run if HAS_WIDE else <size_t>&sigmoid_run[float],
         <size_t>&sigmoid_run[double]),
        ("tanh", <size_t>&wide_tanh_run if HAS_WIDE else <size_t>&tanh_run[float],
         <size_t>&tanh_run[double]),
        ("sinh", <size_t>&sinh_run[float], <size_t>&sinh_run[double]),
        ("cosh", <size_t>&cosh_run[float], <size_t>&cosh_run[double]),
        ("log", <size_t>&wide_log_run if HAS_WIDE else <size_t>&log_run[float],
         <size_t>&wide_log_d_run if HAS_WIDE else <size_t>&log_run[double]),
        ("log1p", <size_t>&log1p_run[float], <size_t>&log1p_run[double]),
        ("log2", <size_t>&wide_log2_run if HAS_WIDE else <size_t>&log2_run[float],
         <size_t>&wide_log2_d_run if HAS_WIDE else <size_t>&log2_run[double]),
        ("log10", <size_t>&wide_log10_run if HAS_WIDE else <size_t>&log10_run[float],
         <size_t>&wide_log10_d_run if HAS_WIDE else <size_t>&log10_run[double]),
        ("asinh", <size_t>&asinh_run[float], <size_t>&asinh_run[double]),
        ("acosh", <size_t>&acosh_run[float], <size_t>&acosh_run[double]),
        ("atanh", <size_t>&atanh_run[float], <size_t>&atanh_run[double]),
        ("logit", <size_t>&wide_logit_run if HAS_WIDE else <size_t>&logit_run[float],
         <size_t>&wide_logit_d_run if HAS_WIDE else <size_t>&logit_run[double]),
        ("entr", <size_t>&entr_run[float], <size_t>&entr_run[double]),
        ("erf", <size_t>&wide_erf_run if HAS_WIDE else <size_t>&erf_run[float],
         <size_t>&wide_erf_d_run if HAS_WIDE else <size_t>&erf_run[double]),
        ("erfc", <size_t>&wide_erfc_run if HAS_WIDE else <size_t>&erfc_run[float],
         <size_t>&wide_erfc_d_run if HAS_WIDE else <size_t>&erfc_run[double]),
    ]
    pairs = [
        ("logaddexp", <size_t>&logaddexp_run[float], <size_t>&logaddexp_run[double]),
        ("logaddexp2", <size_t>&logaddexp2_run[float], <size_t>&logaddexp2_run[double]),
        ("ldexp", <size_t>&wide_ldexp_run if HAS_WIDE else <size_t>&ldexp_run[float],
         <size_t>&wide_ldexp_d_run if HAS_WIDE else <size_t>&ldexp_run[double]),
        ("ldexp_number", <size_t>&ldexp_number_run[float], <size_t>&ldexp_number_run[double]),
        ("xlogy", <size_t>&xlogy_run[float], <size_t>&xlogy_run[double]),
        ("xlog1py", <size_t>&xlog1py_run[float], <size_t>&xlog1py_run[double]),
    ]
    return rows_for(FLOATS, loops) + rows_for(FLOATS, pairs, 2)
