"""Cross entropy: the negative log-likelihood of a class for each row of logits (rows, n).

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

cdef enum:
    SHORT = 32          # elements of rows that are computed side by side, one in each lane
    SIDE_BY_SIDE = 16   # rows
    BLOCK = 512         # the elements of these


# ---- short rows ----------------------------------------------------------------------------------

cdef inline void exps_of_columns(const floating* x, floating* exps, floating* shift,
                                 floating* total, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """exps[i, r] := exp(x[r, i] - shift[r]), the greatest element of row r; total: their sums.

    What is past the last row is computed of that one. A row gives the same bits in every lane.
    """
    cdef Py_ssize_t i, r
    cdef const floating* row
    cdef floating* column
    for r in range(SIDE_BY_SIDE):
        row = x + min(r, rows - 1) * n
        for i in range(n):
            exps[i * SIDE_BY_SIDE + r] = row[i]
    for r in range(SIDE_BY_SIDE):
        shift[r], total[r] = exps[r], 0
    for i in range(1, n):
        column = exps + i * SIDE_BY_SIDE
        for r in range(SIDE_BY_SIDE):
            shift[r] = column[r] if column[r] > shift[r] else shift[r]
    for i in range(n):                # a NaN among the elements gets into the sum here
        column = exps + i * SIDE_BY_SIDE
        for r in range(SIDE_BY_SIDE):
            column[r] = exp_below(column[r] - shift[r])
            total[r] += column[r]


cdef Py_ssize_t nll_short(const floating* x, changing* target, int64_t ignored, floating* y,
                          Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """`nll` of rows of 1 to SHORT elements"""
    cdef floating exps[BLOCK]
    cdef floating shift[SIDE_BY_SIDE]
    cdef floating total[SIDE_BY_SIDE]
    cdef int64_t place
    cdef Py_ssize_t begin = 0, r, count
    while begin < rows:
        count = min(<Py_ssize_t>SIDE_BY_SIDE, rows - begin)
        exps_of_columns(x + begin * n, exps, shift, total, count, n)
        for r in range(SIDE_BY_SIDE):
            total[r] = log(total[r])
        for r in range(count):
            place = target[begin + r]
            if place == ignored:
                y[begin + r] = 0
            elif 0 <= place < n:
                y[begin + r] = total[r] + (shift[r] - x[(begin + r) * n + place])
            else:
                return begin + r
        begin += SIDE_BY_SIDE
    return -1


cdef Py_ssize_t nll_backward_short(const floating* g, const floating* x, changing* target,
                                   int64_t ignored, floating* y, Py_ssize_t rows,
                                   Py_ssize_t n) noexcept nogil:
    """`nll_backward` of rows of 1 to SHORT elements"""
    cdef floating exps[BLOCK]
    cdef floating shift[SIDE_BY_SIDE]
    cdef floating total[SIDE_BY_SIDE]
    cdef floating scale
    cdef floating* out
    cdef int64_t place
    cdef Py_ssize_t begin = 0, r, i, count
    while begin < rows:
        count = min(<Py_ssize_t>SIDE_BY_SIDE, rows - begin)
        exps_of_columns(x + begin * n, exps, shift, total, count, n)
        for r in range(count):
            place, out = target[begin + r], y + (begin + r) * n
            if place != ignored and not 0 <= place < n:
                return begin + r
            if place == ignored or g[begin + r] == 0:
                for i in range(n):
                    out[i] = 0
                continue
            scale = g[begin + r] / total[r]
            for i in range(n):
                out[i] = exps[i * SIDE_BY_SIDE + r] * scale
            out[place] -= g[begin + r]
        begin += SIDE_BY_SIDE
    return -1


# ---- rows of any length --------------------------------------------------------------------------

cdef Py_ssize_t nll(const floating* x, changing* target, int64_t ignored, floating* y,
                    Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y[r] := log(sum of exp(x[r])) - x[r, target[r]]"""
    cdef floating shift, total
    cdef int64_t place
    cdef Py_ssize_t r
    if 0 < n <= SHORT:
        return nll_short(x, target, ignored, y, rows, n)
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
    if 0 < n <= SHORT:
        return nll_backward_short(g, x, target, ignored, y, rows, n)
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
