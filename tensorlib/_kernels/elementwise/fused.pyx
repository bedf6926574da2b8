"""The hottest derivatives as one loop each, held equal to their formulas by tests.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). `g` is the
gradient coming in, `out` the result of the forward operation.
"""

from tensorlib._kernels.elementwise.zero_products cimport strong_product
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for

cdef void tanh_backward_run(const floating* g, const floating* out, floating* y,
                            Py_ssize_t n) noexcept nogil:
    """y := g * (1 - out * out), 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = strong_product(g[i], one - out[i] * out[i])


cdef void sigmoid_backward_run(const floating* g, const floating* out, floating* y,
                               Py_ssize_t n) noexcept nogil:
    """y := g * (out * (1 - out)), 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = strong_product(g[i], out[i] * (one - out[i]))


cdef void relu_backward_run(const floating* g, const floating* out, floating* y,
                            Py_ssize_t n) noexcept nogil:
    """y := g where out is not 0, else 0; a NaN is not"""
    cdef Py_ssize_t i
    cdef floating zero = 0, slope
    for i in range(n):
        slope = g[i]
        y[i] = slope if out[i] != 0 else zero


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("tanh_backward",
         <size_t>&tanh_backward_run[float], <size_t>&tanh_backward_run[double]),
        ("sigmoid_backward",
         <size_t>&sigmoid_backward_run[float], <size_t>&sigmoid_backward_run[double]),
        ("relu_backward",
         <size_t>&relu_backward_run[float], <size_t>&relu_backward_run[double]),
    ], 2)
