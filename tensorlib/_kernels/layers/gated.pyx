"""`glu` on rows: one row of elements times the sigmoid of another.

    void gated(const T* a, const T* b, T* y, Py_ssize_t n)
    void gated_backward(const T* g, const T* a, const T* b, T* da, T* db, Py_ssize_t n)
"""

from tensorlib._kernels.vecmath.logistic cimport logistic
from tensorlib._kernels.elementwise.zero_products cimport strong_product
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for


cdef void gated(const floating* a, const floating* b, floating* y, Py_ssize_t n) noexcept nogil:
    """y := a * s, s = logistic(b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] * logistic(b[i])


cdef void gated_backward(const floating* g, const floating* a, const floating* b, floating* da,
                         floating* db, Py_ssize_t n) noexcept nogil:
    """da := g * s, db := g * a * s * (1 - s); 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating one = 1, s
    for i in range(n):
        s = logistic(b[i])
        da[i] = strong_product(g[i], s)
        db[i] = strong_product(g[i], a[i] * (s * (one - s)))


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("gated", <size_t>&gated[float], <size_t>&gated[double]),
        ("gated_backward", <size_t>&gated_backward[float], <size_t>&gated_backward[double]),
    ])
