"""Tiles of attention: the softmax of rows that are seen piece by piece, and its gradient.

A tile has `rows` rows of `n` scores, contiguous. `first` is how many of the scores of row 0 may be
looked at where later ones may not: one more in each row after it; LARGEST where all may.
"""

from tensorlib._kernels.rows cimport (
    dot_products, exp_below, row_maxima, row_sums, rows_together,
)
from tensorlib._kernels.vecmath cimport floating, infinity
from tensorlib._kernels.vecmath_log cimport log

cdef enum:
    MOST_ROWS = 64          # of a tile


cdef inline Py_ssize_t seen(Py_ssize_t first, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    return n if first >= n else max(<Py_ssize_t>0, min(n, first + row))


cdef void online(floating* s, const floating* mask, Py_ssize_t mask_row, Py_ssize_t mask_col,
                 double scale, floating* top, floating* total, floating* factor, Py_ssize_t rows,
                 Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """s := exp(scale * s + mask - top), after `top` took in this tile; `factor` is what earlier
    results are worth now, `total` the sum of all of the row so far. mask may be NULL."""
    cdef floating most[MOST_ROWS]
    cdef floating added[MOST_ROWS]
    cdef floating by = <floating>scale, zero = 0, least = -infinity(zero), shift
    cdef Py_ssize_t r, i
    for i in range(rows * n):
        s[i] *= by
    if mask != NULL:
        for r in range(rows):
            for i in range(n):
                s[r * n + i] += mask[r * mask_row + i * mask_col]
    if first < n:
        for r in range(rows):
            for i in range(seen(first, r, n), n):
                s[r * n + i] = least
    row_maxima(s, most, rows, n)
    for r in range(rows):
        most[r] = top[r] if top[r] > most[r] else most[r]
        shift = zero if most[r] == least else most[r]        # nothing to look at so far
        factor[r] = exp_below(top[r] - shift)
        top[r] = most[r]
        for i in range(n):
            s[r * n + i] = exp_below(s[r * n + i] - shift)
    row_sums(s, added, rows, n)
    for r in range(rows):
        total[r] = total[r] * factor[r] + added[r]


cdef void gather(floating* y, const floating* part, const floating* factor, Py_ssize_t rows,
                 Py_ssize_t n) noexcept nogil:
    """y := factor * y + part, by rows"""
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            y[r * n + i] = y[r * n + i] * factor[r] + part[r * n + i]


cdef void finish(floating* y, const floating* top, const floating* total, floating* logs,
                 Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := y / total, 0 where nothing was looked at; logs := top + log(total)"""
    cdef double log_of[MOST_ROWS]
    cdef floating by[MOST_ROWS]
    cdef double one = 1
    cdef Py_ssize_t r, i
    for r in range(rows):
        log_of[r] = log(<double>total[r])
    for r in range(rows):
        logs[r] = <floating>(top[r] + log_of[r])
        by[r] = <floating>(0 if total[r] == 0 else one / total[r])
    for r in range(rows):
        for i in range(n):
            y[r * n + i] *= by[r]


cdef void probabilities(floating* s, const floating* mask, Py_ssize_t mask_row,
                        Py_ssize_t mask_col, double scale, const floating* logs, Py_ssize_t rows,
                        Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """s := exp(scale * s + mask - logs), 0 where nothing may be looked at"""
    cdef floating by = <floating>scale
    cdef Py_ssize_t r, i
    for i in range(rows * n):
        s[i] *= by
    if mask != NULL:
        for r in range(rows):
            for i in range(n):
                s[r * n + i] += mask[r * mask_row + i * mask_col]
    for r in range(rows):
        for i in range(n):
            s[r * n + i] -= logs[r]
    for i in range(rows * n):            # whole vectors: what may not be looked at is not left out
        s[i] = exp_below(s[i])
    for r in range(rows):
        for i in range(0 if logs[r] == -infinity(by) else seen(first, r, n), n):
            s[r * n + i] = 0


cdef void slopes(const floating* p, floating* dp, const floating* d, double scale, Py_ssize_t rows,
                 Py_ssize_t n) noexcept nogil:
    """dp := scale * p * (dp - d)"""
    cdef floating by = <floating>scale
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            dp[r * n + i] = by * p[r * n + i] * (dp[r * n + i] - d[r])


cdef void dots(const floating* g, const floating* y, floating* d, Py_ssize_t rows,
               Py_ssize_t n) noexcept nogil:
    """d := sum of g * y, by rows"""
    cdef Py_ssize_t together
    while rows > 0:
        together = rows_together(rows, n)
        dot_products(g, y, d, together, n)
        g += together * n
        y += together * n
        d += together
        rows -= together


def table():
    loops = [
        ("online", <size_t>&online[float], <size_t>&online[double]),
        ("gather", <size_t>&gather[float], <size_t>&gather[double]),
        ("finish", <size_t>&finish[float], <size_t>&finish[double]),
        ("probabilities", <size_t>&probabilities[float], <size_t>&probabilities[double]),
        ("slopes", <size_t>&slopes[float], <size_t>&slopes[double]),
        ("dots", <size_t>&dots[float], <size_t>&dots[double]),
    ]
    return [row for name, single, double_ in loops for row in (
        (name, ("float32",), "float32", single), (name, ("float64",), "float64", double_))]
