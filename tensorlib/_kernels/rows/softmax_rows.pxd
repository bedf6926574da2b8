"""What the kernels of rows share: extremes, sums and exponentials of contiguous rows (rows, n)."""

from tensorlib._kernels.rows.fold_tags cimport Max, Sum
from tensorlib._kernels.rows.row_folds cimport fold_lines, fold_short_rows
from tensorlib._kernels.vecmath.basics cimport floating, power_of_two
from tensorlib._kernels.vecmath.exp cimport exp_reduce, exp_series

cdef extern from "rows/row_moments.h" nogil:
    float row_max_float(const float* x, Py_ssize_t n)
    double row_max_double(const double* x, Py_ssize_t n)
    double moments_sum_float(const float* x, Py_ssize_t n)
    double moments_sum_double(const double* x, Py_ssize_t n)

cdef enum:
    LONG = 32           # elements from which on each row has registers of its own
    # Short rows are processed together up to so many elements, to fill the vector registers;
    # longer rows are processed in blocks of it.
    TILE = 2048


cdef inline floating exp_below(floating x) noexcept nogil:
    """e**x for x <= 0, or 0 instead of a subnormal number, in two thirds of the time of exp"""
    cdef floating n, tail, r, y
    cdef floating one = 1
    cdef floating limit = -87.3 if floating is float else -708.3
    r = exp_reduce(x, &n, &tail)
    y = (one + (r + r * r * exp_series(r))) * power_of_two(n)
    return 0 if x < limit else y


cdef inline Py_ssize_t rows_together(Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    return min(rows, max(1, TILE // max(1, n)))


cdef inline floating row_max(const floating* x, Py_ssize_t n) noexcept nogil:
    """The greatest element, NaN where there is one, -inf of none"""
    if floating is float:
        return row_max_float(x, n)
    else:
        return row_max_double(x, n)


cdef inline double row_sum(const floating* x, Py_ssize_t n) noexcept nogil:
    if floating is float:
        return moments_sum_float(x, n)
    else:
        return moments_sum_double(x, n)


cdef inline void row_maxima(const floating* x, floating* y, Py_ssize_t rows,
                     Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t r
    if n == 0:
        fill_zero(y, rows)        # of no elements any finite number will do: their sum is 0
    elif n >= LONG:
        for r in range(rows):
            y[r] = row_max(x + r * n, n)
    else:
        fold_short_rows(<Max*>NULL, x, <const floating*>NULL, y, rows, n, n)


cdef inline void row_sums(const floating* x, floating* y, Py_ssize_t rows,
                   Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t r
    if n == 0:
        fill_zero(y, rows)
    elif rows == 1 or n >= LONG:
        for r in range(rows):
            y[r] = <floating>row_sum(x + r * n, n)
    else:
        fold_lines(<Sum*>NULL, x, <const floating*>NULL, y, rows, n, n)


cdef inline void exps_of(const floating* x, const floating* shift, floating* y, Py_ssize_t rows,
                         Py_ssize_t n) noexcept nogil:
    """y[r, i] := exp(x[r, i] - shift[r]); y may be x"""
    cdef Py_ssize_t i, r
    cdef floating least
    if n >= LONG:
        for r in range(rows):
            least = shift[r]
            for i in range(n):
                y[r * n + i] = exp_below(x[r * n + i] - least)
        return
    for r in range(rows):
        for i in range(n):
            y[r * n + i] = x[r * n + i] - shift[r]
    for i in range(rows * n):
        y[i] = exp_below(y[i])


cdef inline void fill_zero(floating* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = 0


cdef inline void exp_sums(const floating* x, const floating* shift, floating* sums,
                   Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """sums[r] := sum of exp(x[r, i] - shift[r]), over rows taken together"""
    cdef floating exps[TILE]
    cdef double total = 0
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t size
    if n <= TILE:
        exps_of(x, shift, exps, rows, n)
        row_sums(exps, sums, rows, n)
        return
    while begin < n:
        size = min(<Py_ssize_t>TILE, n - begin)
        exps_of(x + begin, shift, exps, 1, size)
        total += row_sum(exps, size)
        begin += size
    sums[0] = <floating>total


cdef inline void dot_products(const floating* a, const floating* b, floating* sums,
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
