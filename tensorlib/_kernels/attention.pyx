"""Tiles of attention: the softmax of rows that are seen piece by piece, and its gradient.

A tile has `rows` rows of `n` scores, contiguous. `first` is how many of the scores of row 0 may be
looked at where later ones may not: one more in each row after it; LARGEST where all may.
"""

from tensorlib._kernels.rows cimport exp_below, row_maxima, row_sums
from tensorlib._kernels.vecmath cimport floating, infinity


cdef inline Py_ssize_t seen(Py_ssize_t first, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    return n if first >= n else max(<Py_ssize_t>0, min(n, first + row))


cdef void online(floating* s, const floating* mask, Py_ssize_t mask_row, Py_ssize_t mask_col,
                 double scale, floating* top, floating* total, floating* factor, Py_ssize_t rows,
                 Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """s := exp(scale * s + mask - top), after `top` took in this tile; `factor` is what earlier
    results are worth now, `total` the sum of all of the row so far. mask may be NULL."""
    cdef floating most, added, by = <floating>scale
    cdef Py_ssize_t r, i, count
    for r in range(rows):
        count = seen(first, r, n)
        for i in range(count):
            s[i] *= by
        if mask != NULL:
            for i in range(count):
                s[i] += mask[r * mask_row + i * mask_col]
        most = -infinity(by)
        if count:
            row_maxima(s, &most, 1, count)
        most = top[r] if top[r] > most else most
        factor[r] = 1
        if most == -infinity(by):              # nothing to look at so far
            count = 0
        else:
            factor[r] = exp_below(top[r] - most)
            for i in range(count):
                s[i] = exp_below(s[i] - most)
            added = 0
            if count:
                row_sums(s, &added, 1, count)
            total[r] = total[r] * factor[r] + added
        for i in range(count, n):
            s[i] = 0
        top[r] = most
        s += n


cdef void gather(floating* y, const floating* part, const floating* factor, Py_ssize_t rows,
                 Py_ssize_t n) noexcept nogil:
    """y := factor * y + part, by rows"""
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            y[r * n + i] = y[r * n + i] * factor[r] + part[r * n + i]


cdef void probabilities(floating* s, const floating* mask, Py_ssize_t mask_row,
                        Py_ssize_t mask_col, double scale, const floating* logs, Py_ssize_t rows,
                        Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """s := exp(scale * s + mask - logs), 0 where nothing may be looked at"""
    cdef floating by = <floating>scale
    cdef Py_ssize_t r, i, count
    for r in range(rows):
        count = 0 if logs[r] == -infinity(by) else seen(first, r, n)
        if mask != NULL:
            for i in range(count):
                s[i] = s[i] * by + mask[r * mask_row + i * mask_col]
        else:
            for i in range(count):
                s[i] = s[i] * by
        for i in range(count):
            s[i] = exp_below(s[i] - logs[r])
        for i in range(count, n):
            s[i] = 0
        s += n


cdef void slopes(const floating* p, floating* dp, const floating* d, double scale, Py_ssize_t rows,
                 Py_ssize_t n) noexcept nogil:
    """dp := scale * p * (dp - d)"""
    cdef floating by = <floating>scale
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            dp[r * n + i] = by * p[r * n + i] * (dp[r * n + i] - d[r])


def table():
    loops = [
        ("online", <size_t>&online[float], <size_t>&online[double]),
        ("gather", <size_t>&gather[float], <size_t>&gather[double]),
        ("probabilities", <size_t>&probabilities[float], <size_t>&probabilities[double]),
        ("slopes", <size_t>&slopes[float], <size_t>&slopes[double]),
    ]
    return [row for name, single, double_ in loops for row in (
        (name, ("float32",), "float32", single), (name, ("float64",), "float64", double_))]
