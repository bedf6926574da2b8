"""The negative log-likelihood of one class of each row, from unnormalised logits (rows, n).

A row of `table()` is (kind, input dtypes, output dtype, address), with the signatures

    Py_ssize_t run(const T* x, const int64_t* target, int64_t ignored, T* y, rows, n)
    Py_ssize_t run(const T* g, const T* x, const int64_t* target, int64_t ignored, T* y, rows, n)

Each gives the first row whose target is neither a class nor `ignored`, at which it stops, or -1.
Rows that are ignored have a loss and a gradient of 0. A target is read once: others may write where
it lies.
"""

from libc.stdint cimport int64_t

from tensorlib._kernels.rows cimport exp_below, exp_sums, row_max, row_sum
from tensorlib._kernels.vecmath cimport floating
from tensorlib._kernels.vecmath_log cimport log

ctypedef const volatile int64_t changing


cdef Py_ssize_t nll(const floating* x, changing* target, int64_t ignored, floating* y,
                    Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y[r] := log(sum of exp(x[r])) - x[r, target[r]]"""
    cdef floating shift, total
    cdef int64_t place
    cdef Py_ssize_t r
    for r in range(rows):
        place = target[r]
        if place == ignored:
            y[r] = 0
            continue
        if not 0 <= place < n:
            return r
        shift = row_max(x + r * n, n)
        exp_sums(x + r * n, &shift, &total, 1, n)
        y[r] = log(total) + (shift - x[r * n + place])
    return -1


cdef Py_ssize_t nll_backward(const floating* g, const floating* x, changing* target,
                             int64_t ignored, floating* y, Py_ssize_t rows,
                             Py_ssize_t n) noexcept nogil:
    """y[r] := g[r] * (softmax(x[r]) - 1 at the target)"""
    cdef floating shift, scale
    cdef int64_t place
    cdef Py_ssize_t r, i
    cdef const floating* row
    cdef floating* out
    for r in range(rows):
        place, row, out = target[r], x + r * n, y + r * n
        if place == ignored or g[r] == 0:
            for i in range(n):
                out[i] = 0
            if place != ignored and not 0 <= place < n:
                return r
            continue
        if not 0 <= place < n:
            return r
        shift = row_max(row, n)
        for i in range(n):
            out[i] = exp_below(row[i] - shift)
        scale = <floating>(g[r] / row_sum(out, n))
        for i in range(n):
            out[i] *= scale
        out[place] -= g[r]
    return -1


def table():
    return [
        ("nll", ("float32",), "float32", <size_t>&nll[float]),
        ("nll", ("float64",), "float64", <size_t>&nll[double]),
        ("nll_backward", ("float32", "float32"), "float32", <size_t>&nll_backward[float]),
        ("nll_backward", ("float64", "float64"), "float64", <size_t>&nll_backward[double]),
    ]
