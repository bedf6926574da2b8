"""Softmax, its logarithm and logsumexp on contiguous rows (rows, n).

Here n is at least 1 unless said otherwise.

A row of `table()` is (kind, input dtypes, output dtype, address), with the signatures

    void run(const T* x, T* y, Py_ssize_t rows, Py_ssize_t n)                 the forward kinds
    void run(const T* g, const T* out, T* y, Py_ssize_t rows, Py_ssize_t n)   *_backward

y may be x, g or out. A row is shifted by its greatest element, so no exp overflows. A row that
holds NaN or inf, or nothing but -inf, has no softmax: it is NaN. Its logsumexp is NaN, inf or
-inf.
"""

from tensorlib._kernels.rows.softmax_rows cimport (
    LONG, TILE, dot_products, exp_below, exp_sums, exps_of, row_maxima, row_sums, rows_together)
from tensorlib._kernels.vecmath.basics cimport floating, infinity, magnitude
from tensorlib._kernels.vecmath.log cimport log

from tensorlib._kernels import FLOATS, rows_for


cdef inline floating part_of(floating x, floating sum, floating inverse) noexcept nogil:
    """x / sum, of which the inverse is known: a product and its error, since a division takes as
    long as ten of them (Markstein, IBM J. Res. Dev. 34, 1990)"""
    cdef floating y = x * inverse
    return y + (x - y * sum) * inverse


cdef void softmax(const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := exp_below(x - max x) / sum of exp(x - max x)"""
    cdef floating shift[TILE]
    cdef floating sums[TILE]
    cdef floating one = 1, inverse
    cdef Py_ssize_t i, r, together
    while rows > 0:
        together = rows_together(rows, n)
        row_maxima(x, shift, together, n)
        exps_of(x, shift, y, together, n)
        row_sums(y, sums, together, n)
        for r in range(together):
            inverse = one / sums[r]
            for i in range(n):
                y[r * n + i] = part_of(y[r * n + i], sums[r], inverse)
        x += together * n
        y += together * n
        rows -= together


cdef void log_softmax(const floating* x, floating* y, Py_ssize_t rows,
                      Py_ssize_t n) noexcept nogil:
    """y := x - max x - log(sum of exp(x - max x))"""
    cdef floating shift[TILE]
    cdef floating sums[TILE]
    cdef Py_ssize_t i, r, together
    while rows > 0:
        together = rows_together(rows, n)
        row_maxima(x, shift, together, n)
        exp_sums(x, shift, sums, together, n)
        for r in range(together):
            sums[r] = log(sums[r])
        for r in range(together):
            for i in range(n):
                y[r * n + i] = x[r * n + i] - shift[r] - sums[r]
        x += together * n
        y += together * n
        rows -= together


cdef void logsumexp(const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := log(sum of exp(x)); n may be 0: -inf"""
    cdef floating shift[TILE]
    cdef Py_ssize_t r, together
    while rows > 0:
        together = rows_together(rows, n)
        if n == 0:
            for r in range(together):
                y[r] = -infinity(y[r])
        else:
            row_maxima(x, shift, together, n)
            exp_sums(x, shift, y, together, n)
            for r in range(together):  # where the greatest is infinite, so is the result
                y[r] = (shift[r] if magnitude(shift[r]) == infinity(shift[r])
                        else shift[r] + log(y[r]))
        x += together * n
        y += together
        rows -= together


cdef void softmax_backward(const floating* g, const floating* out, floating* y, Py_ssize_t rows,
                           Py_ssize_t n) noexcept nogil:
    """y := (g - sum of g * out) * out"""
    cdef floating sums[TILE]
    cdef Py_ssize_t i, r, together
    while rows > 0:
        together = rows_together(rows, n)
        dot_products(g, out, sums, together, n)
        for r in range(together):
            for i in range(n):
                y[r * n + i] = (g[r * n + i] - sums[r]) * out[r * n + i]
        g += together * n
        out += together * n
        y += together * n
        rows -= together


cdef void log_softmax_backward(const floating* g, const floating* out, floating* y,
                               Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := g - exp(out) * sum of g"""
    cdef floating exps[TILE]
    cdef floating sums[TILE]
    cdef floating total
    cdef Py_ssize_t i, r, together, begin, size
    while rows > 0:
        together = rows_together(rows, n)
        row_sums(g, sums, together, n)
        begin = 0
        if n >= LONG:
            for r in range(together):
                total = sums[r]
                for i in range(r * n, r * n + n):
                    y[i] = g[i] - exp_below(out[i]) * total
            begin = together * n
        while begin < together * n:
            size = min(<Py_ssize_t>TILE, together * n - begin)
            for i in range(size):
                exps[i] = exp_below(out[begin + i])
            if together == 1:
                for i in range(size):
                    y[begin + i] = g[begin + i] - exps[i] * sums[0]
            else:
                for r in range(together):
                    for i in range(n):
                        y[r * n + i] = g[r * n + i] - exps[r * n + i] * sums[r]
            begin += size
        g += together * n
        out += together * n
        y += together * n
        rows -= together


def table():
    return rows_for(FLOATS, [
        ("softmax", <size_t>&softmax[float], <size_t>&softmax[double]),
        ("log_softmax", <size_t>&log_softmax[float], <size_t>&log_softmax[double]),
        ("logsumexp", <size_t>&logsumexp[float], <size_t>&logsumexp[double]),
        ("softmax_backward", <size_t>&softmax_backward[float], <size_t>&softmax_backward[double]),
        ("log_softmax_backward", <size_t>&log_softmax_backward[float],
         <size_t>&log_softmax_backward[double]),
    ])
