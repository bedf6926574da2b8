"""Tiles of attention: the softmax of rows that are processed piece by piece, and its gradient.

A tile has `rows` rows of `n` scores, contiguous. With a causal mask `first` scores of row 0 are
visible, and one more in each row after it; without one `first` is LARGEST.
"""

from tensorlib._kernels.rows.softmax_rows cimport (
    LONG, TILE, dot_products, exp_below, row_maxima, row_sum, row_sums, rows_together,
)
from tensorlib._kernels.vecmath.basics cimport floating, infinity
from tensorlib._kernels.vecmath.log cimport log

from tensorlib._kernels import FLOATS, rows_for

cdef enum:
    MOST_ROWS = 64          # of a tile


cdef inline Py_ssize_t seen(Py_ssize_t first, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    return n if first >= n else max(<Py_ssize_t>0, min(n, first + row))


cdef inline floating scaled(floating* s, const floating* mask, Py_ssize_t mask_row,
                            Py_ssize_t mask_col, double scale, Py_ssize_t rows,
                            Py_ssize_t n) noexcept nogil:
    """s := what is to be multiplied by what is given, and is scale * s + mask then"""
    cdef floating by = <floating>scale, one = 1
    cdef Py_ssize_t r, i
    if mask == NULL and by > 0:          # which leaves their order
        return by
    for i in range(rows * n):
        s[i] *= by
    if mask != NULL:
        for r in range(rows):
            for i in range(n):
                s[r * n + i] += mask[r * mask_row + i * mask_col]
    return one


cdef inline void exps_below(floating* s, floating by, const floating* shift, Py_ssize_t rows,
                            Py_ssize_t n) noexcept nogil:
    """s := exp(by * s - shift), by rows; short ones in whole vectors of several"""
    cdef floating moved
    cdef Py_ssize_t r, i
    if n >= LONG:
        for r in range(rows):
            moved = shift[r]
            for i in range(n):
                s[r * n + i] = exp_below(by * s[r * n + i] - moved)
        return
    for r in range(rows):
        for i in range(n):
            s[r * n + i] = by * s[r * n + i] - shift[r]
    for i in range(rows * n):
        s[i] = exp_below(s[i])


cdef void sums_of(const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := sums of rows. Long rows are summed one by one, in a quarter of the time."""
    cdef Py_ssize_t r
    if n < LONG:
        row_sums(x, y, rows, n)
        return
    for r in range(rows):
        y[r] = <floating>row_sum(x + r * n, n)


cdef void online(floating* s, const floating* mask, Py_ssize_t mask_row, Py_ssize_t mask_col,
                 double scale, floating* top, floating* total, floating* factor, Py_ssize_t rows,
                 Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """s := exp(scale * s + mask - top), where `top` is updated with this tile first. factor: by
    which earlier results are scaled now. total: the sum of the row so far. mask may be NULL."""
    cdef floating most[MOST_ROWS]
    cdef floating shift[MOST_ROWS]
    cdef floating zero = 0, least = -infinity(zero), by
    cdef Py_ssize_t r, i
    by = scaled(s, mask, mask_row, mask_col, scale, rows, n)
    if first < n:
        for r in range(rows):
            for i in range(seen(first, r, n), n):
                s[r * n + i] = least
    row_maxima(s, most, rows, n)
    for r in range(rows):
        most[r] *= by
        most[r] = top[r] if top[r] > most[r] else most[r]
        shift[r] = zero if most[r] == least else most[r]        # no score was visible so far
        factor[r] = exp_below(top[r] - shift[r])
        top[r] = most[r]
    exps_below(s, by, shift, rows, n)
    sums_of(s, most, rows, n)
    for r in range(rows):
        total[r] = total[r] * factor[r] + most[r]


cdef void rescale(floating* y, Py_ssize_t y_row, const floating* factor, Py_ssize_t rows,
                  Py_ssize_t n) noexcept nogil:
    """y := factor * y, by rows"""
    cdef Py_ssize_t r, i
    for r in range(rows):
        if factor[r] != 1:
            for i in range(n):
                y[r * y_row + i] *= factor[r]


cdef void finish(floating* y, Py_ssize_t y_row, const floating* top, const floating* total,
                 floating* logs, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := y / total, 0 where nothing was looked at; logs := top + log(total)"""
    cdef double log_of[MOST_ROWS]
    cdef floating by[MOST_ROWS]
    cdef double one = 1
    cdef Py_ssize_t r
    for r in range(rows):
        log_of[r] = log(<double>total[r])
    for r in range(rows):
        logs[r] = <floating>(top[r] + log_of[r])
        by[r] = <floating>(0 if total[r] == 0 else one / total[r])
    rescale(y, y_row, by, rows, n)


cdef void probabilities(floating* s, const floating* mask, Py_ssize_t mask_row,
                        Py_ssize_t mask_col, double scale, const floating* logs, Py_ssize_t rows,
                        Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """s := exp(scale * s + mask - logs), 0 where nothing may be looked at"""
    cdef floating by = scaled(s, mask, mask_row, mask_col, scale, rows, n), one = 1
    cdef Py_ssize_t r, i
    exps_below(s, by, logs, rows, n)     # also of masked scores, to fill vectors
    for r in range(rows):
        for i in range(0 if logs[r] == -infinity(one) else seen(first, r, n), n):
            s[r * n + i] = 0


cdef void slopes(const floating* p, floating* dp, const floating* d, double scale, Py_ssize_t rows,
                 Py_ssize_t n) noexcept nogil:
    """dp := scale * p * (dp - d)"""
    cdef floating by = <floating>scale
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            dp[r * n + i] = by * p[r * n + i] * (dp[r * n + i] - d[r])


cdef void dots(const floating* g, Py_ssize_t g_row, const floating* y, Py_ssize_t y_row,
               floating* d, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """d := sum of g * y, by rows; the same bits wherever rows lie"""
    cdef floating products[TILE]
    cdef Py_ssize_t together, r, i
    while rows > 0:
        together = rows_together(rows, n)
        if n > TILE:
            dot_products(g, y, d, 1, n)
        else:
            for r in range(together):
                for i in range(n):
                    products[r * n + i] = g[r * g_row + i] * y[r * y_row + i]
            sums_of(products, d, together, n)
        g += together * g_row
        y += together * y_row
        d += together
        rows -= together


def table():
    return rows_for(FLOATS, [
        ("online", <size_t>&online[float], <size_t>&online[double]),
        ("rescale", <size_t>&rescale[float], <size_t>&rescale[double]),
        ("finish", <size_t>&finish[float], <size_t>&finish[double]),
        ("probabilities", <size_t>&probabilities[float], <size_t>&probabilities[double]),
        ("slopes", <size_t>&slopes[float], <size_t>&slopes[double]),
        ("dots", <size_t>&dots[float], <size_t>&dots[double]),
    ])
