"""Softmax, its logarithm and logsumexp on contiguous rows (rows, n).

Here n is at least 1 unless said otherwise.

A row of `table()` is (kind, input dtypes, output dtype, address), with the signatures

    void run(const T* x, T* y, Py_ssize_t rows, Py_ssize_t n)                 the forward kinds
    void run(const T* g, const T* out, T* y, Py_ssize_t rows, Py_ssize_t n)   *_backward

y may be x, g or out. A row is shifted by its greatest element, so no exp overflows. A row that
holds NaN or inf, or nothing but -inf, has no softmax: it is NaN. Its logsumexp is NaN, inf or
-inf.
"""

from tensorlib._kernels.lanes cimport Max, Sum, fold
from tensorlib._kernels.vecmath cimport floating, infinity, magnitude, power_of_two
from tensorlib._kernels.vecmath_exp cimport exp_reduce, exp_series
from tensorlib._kernels.vecmath_log cimport log

cdef enum:
    # Rows are taken together up to this many elements, so that short ones fill the vector
    # registers too; a longer row is taken in blocks of it.
    TILE = 2048


cdef inline floating exp_below(floating x) noexcept nogil:
    """e**x for x <= 0; 0 where that is subnormal, which saves a third of the time of exp"""
    cdef floating n, tail, r, y
    cdef floating one = 1
    cdef floating limit = -87.3 if floating is float else -708.3
    r = exp_reduce(x, &n, &tail)
    y = (one + (r + r * r * exp_series(r))) * power_of_two(n)
    return 0 if x < limit else y


cdef inline Py_ssize_t rows_together(Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    return min(rows, max(1, TILE // max(1, n)))


cdef void row_maxima(const floating* x, floating* y, Py_ssize_t rows,
                     Py_ssize_t n) noexcept nogil:
    if n == 0:
        fill_zero(y, rows)        # of no elements any finite number will do: their sum is 0
    else:
        fold(<Max*>NULL, x, <const floating*>NULL, y, rows, n, 1, 0, 1)


cdef void row_sums(const floating* x, floating* y, Py_ssize_t rows,
                   Py_ssize_t n) noexcept nogil:
    if n == 0:
        fill_zero(y, rows)
    else:
        fold(<Sum*>NULL, x, <const floating*>NULL, y, rows, n, 1, 0, 1)


cdef void fill_zero(floating* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = 0


cdef void exp_sums(const floating* x, const floating* shift, floating* sums,
                   Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """sums[r] := sum of exp(x[r, i] - shift[r]), over rows taken together"""
    cdef floating exps[TILE]
    cdef floating part
    cdef double total = 0
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t i, r, size
    if n <= TILE:
        for r in range(rows):
            for i in range(n):
                exps[r * n + i] = x[r * n + i] - shift[r]
        for i in range(rows * n):
            exps[i] = exp_below(exps[i])
        row_sums(exps, sums, rows, n)
        return
    while begin < n:
        size = min(<Py_ssize_t>TILE, n - begin)
        for i in range(size):
            exps[i] = exp_below(x[begin + i] - shift[0])
        row_sums(exps, &part, 1, size)
        total += part
        begin += size
    sums[0] = <floating>total


cdef void dot_products(const floating* a, const floating* b, floating* sums,
                       Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """sums[r] := sum of a[r, i] * b[r, i], over rows taken together"""
    cdef floating products[TILE]
    cdef floating part
    cdef double total = 0
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t i, size
    if n <= TILE:
        for i in range(rows * n):
            products[i] = a[i] * b[i]
        row_sums(products, sums, rows, n)
        return
    while begin < n:
        size = min(<Py_ssize_t>TILE, n - begin)
        for i in range(size):
            products[i] = a[begin + i] * b[begin + i]
        row_sums(products, &part, 1, size)
        total += part
        begin += size
    sums[0] = <floating>total


cdef void softmax(const floating* x, floating* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := exp_below(x - max x) / sum of exp(x - max x)"""
    cdef floating shift[TILE]
    cdef floating sums[TILE]
    cdef Py_ssize_t i, r, together
    while rows > 0:
        together = rows_together(rows, n)
        row_maxima(x, shift, together, n)
        for r in range(together):
            for i in range(n):
                y[r * n + i] = x[r * n + i] - shift[r]
        for i in range(together * n):
            y[i] = exp_below(y[i])
        row_sums(y, sums, together, n)
        for r in range(together):
            for i in range(n):
                y[r * n + i] /= sums[r]
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
    cdef Py_ssize_t i, r, together, begin, size
    while rows > 0:
        together = rows_together(rows, n)
        row_sums(g, sums, together, n)
        begin = 0
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
    return [
        ("softmax", ("float32",), "float32", <size_t>&softmax[float]),
        ("softmax", ("float64",), "float64", <size_t>&softmax[double]),
        ("log_softmax", ("float32",), "float32", <size_t>&log_softmax[float]),
        ("log_softmax", ("float64",), "float64", <size_t>&log_softmax[double]),
        ("logsumexp", ("float32",), "float32", <size_t>&logsumexp[float]),
        ("logsumexp", ("float64",), "float64", <size_t>&logsumexp[double]),
        ("softmax_backward", ("float32", "float32"), "float32",
         <size_t>&softmax_backward[float]),
        ("softmax_backward", ("float64", "float64"), "float64",
         <size_t>&softmax_backward[double]),
        ("log_softmax_backward", ("float32", "float32"), "float32",
         <size_t>&log_softmax_backward[float]),
        ("log_softmax_backward", ("float64", "float64"), "float64",
         <size_t>&log_softmax_backward[double]),
    ]
