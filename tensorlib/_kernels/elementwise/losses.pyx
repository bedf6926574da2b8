"""Loops of element-wise losses: x is the prediction, t the target.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`).
"""

from tensorlib._kernels.vecmath.basics cimport floating, magnitude
from tensorlib._kernels.vecmath.exp cimport exp
from tensorlib._kernels.vecmath.log cimport log, log1p, log1p_unit

from tensorlib._kernels import FLOATS, rows_for


cdef void squared_error_run(const floating* x, const floating* t, floating* y,
                            Py_ssize_t n) noexcept nogil:
    """y := (x - t)**2"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] - t[i]) * (x[i] - t[i])


cdef void smooth_l1_run(const floating* x, const floating* t, const floating* beta, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := d**2 / (2 beta) for d = |x - t| < beta, else d - beta / 2"""
    cdef Py_ssize_t i
    cdef floating d, half = 0.5
    for i in range(n):
        d = magnitude(x[i] - t[i])
        y[i] = half * d * d / beta[i] if d < beta[i] else d - half * beta[i]


cdef void huber_run(const floating* x, const floating* t, const floating* delta, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := d**2 / 2 for d = |x - t| <= delta, else delta * (d - delta / 2)"""
    cdef Py_ssize_t i
    cdef floating d, half = 0.5
    for i in range(n):
        d = magnitude(x[i] - t[i])
        y[i] = half * d * d if d <= delta[i] else delta[i] * (d - half * delta[i])


cdef void cross_run(const floating* x, const floating* t, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := -(t * log(x) + (1 - t) * log(1 - x)), the logarithms at least -100"""
    cdef Py_ssize_t i
    cdef floating one = 1, least = -100, a, b
    for i in range(n):
        a, b = log(x[i]), log1p(-x[i])
        a = least if a < least else a
        b = least if b < least else b
        y[i] = (t[i] - one) * b - t[i] * a


cdef void cross_of_logits_run(const floating* x, const floating* t, floating* y,
                              Py_ssize_t n) noexcept nogil:
    """y := max(x, 0) - x * t + log(1 + exp(-|x|))"""
    cdef Py_ssize_t i
    cdef floating zero = 0
    for i in range(n):
        y[i] = (zero if x[i] < 0 else x[i]) - x[i] * t[i] + log1p_unit(exp(-magnitude(x[i])))


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("squared_error", <size_t>&squared_error_run[float], <size_t>&squared_error_run[double]),
        ("binary_cross", <size_t>&cross_run[float], <size_t>&cross_run[double]),
        ("cross_of_logits", <size_t>&cross_of_logits_run[float],
         <size_t>&cross_of_logits_run[double]),
    ], 2) + rows_for(FLOATS, [
        ("smooth_l1", <size_t>&smooth_l1_run[float], <size_t>&smooth_l1_run[double]),
        ("huber", <size_t>&huber_run[float], <size_t>&huber_run[double]),
    ], 3)
