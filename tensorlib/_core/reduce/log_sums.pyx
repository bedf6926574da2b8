"""Logarithms of running sums of exponentials, for `logcumsumexp`.

For a block of rows the greatest exponent of each column is subtracted first, so that loops over the
whole block can compute the exponentials and the logarithms. Where the exponents of a column lie too
far apart for that, or one is not finite, the block is computed element by element.
"""

from libc.math cimport INFINITY, exp, log1p

from tensorlib._core.base.dtypes cimport FLOAT64
from tensorlib._core.tiles.loops cimport find_loop, loop1, loop_id

cdef enum:
    BLOCK = 512              # elements of a block
    LANES = 8                # extremes that are found side by side in a row

cdef double FARTHEST = 600.0         # e**-FARTHEST is still a normal double
cdef int EXP = loop_id("exp"), LOG = loop_id("log")


cdef inline bint extremes_of(const double* x, Py_ssize_t n, double* least,
                             double* most) noexcept nogil:
    """Finds the least and the greatest of n numbers, -infinity left out of the least. Returns False
    if one is NaN."""
    cdef double low[LANES]
    cdef double high[LANES]
    cdef Py_ssize_t i, k
    cdef int unknown = 0
    for k in range(LANES):
        low[k], high[k] = INFINITY, -INFINITY
    for i in range(0, n - n % LANES, 8):              # LANES, as a literal: the sign must be known
        for k in range(LANES):
            high[k] = x[i + k] if x[i + k] > high[k] else high[k]
            low[k] = x[i + k] if -INFINITY < x[i + k] < low[k] else low[k]
            unknown |= x[i + k] != x[i + k]
    for i in range(n - n % LANES, n):
        high[0] = x[i] if x[i] > high[0] else high[0]
        low[0] = x[i] if -INFINITY < x[i] < low[0] else low[0]
        unknown |= x[i] != x[i]
    for k in range(LANES):
        least[0], most[0] = min(least[0], low[k]), max(most[0], high[k])
    return not unknown


cdef bint shifts_of(const double* x, Py_ssize_t rows, Py_ssize_t width,
                    double* shifts) noexcept nogil:
    """Finds the greatest exponent of each column. Returns False if a column's exponents lie too far
    apart to subtract it."""
    cdef double low[WIDTH]
    cdef Py_ssize_t i, j
    cdef int unknown = 0
    for j in range(width):
        shifts[j], low[j] = -INFINITY, INFINITY
    if width == 1:
        if not extremes_of(x, rows, low, shifts):
            return False
    else:
        for i in range(rows):
            for j in range(width):
                shifts[j] = x[j] if x[j] > shifts[j] else shifts[j]
                low[j] = x[j] if -INFINITY < x[j] < low[j] else low[j]
                unknown |= x[j] != x[j]
            x += width
    for j in range(width):
        if not (-INFINITY < shifts[j] < INFINITY and shifts[j] - low[j] <= FARTHEST):
            return False
    return not unknown


cdef bint by_block(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t width,
                   double* totals) noexcept nogil:
    """y[i] := log(exp(totals) + exp(x[0]) + ... + exp(x[i])); totals := the last of these

    Returns False, with nothing written, where the block has to be computed by element.
    """
    cdef double e[BLOCK + WIDTH]                     # the totals are its first row
    cdef double shifts[WIDTH]
    cdef double total
    cdef Py_ssize_t i, j, count = (n + 1) * width
    for j in range(width):
        e[j] = totals[j]
    for i in range(n):
        for j in range(width):
            e[(i + 1) * width + j] = x[i * step + j]
    if not shifts_of(e, n + 1, width, shifts):
        return False
    for i in range(n + 1):
        for j in range(width):
            e[i * width + j] -= shifts[j]
    (<loop1>find_loop(EXP, FLOAT64).run)(e, e, count)
    if width == 1:
        total = e[0]
        for i in range(1, n + 1):
            total += e[i]
            e[i] = total
    else:
        for i in range(width, count):
            e[i] += e[i - width]
    (<loop1>find_loop(LOG, FLOAT64).run)(e + width, e + width, count - width)
    for i in range(n):
        for j in range(width):
            e[(i + 1) * width + j] += shifts[j]
            y[i * step + j] = <floating>e[(i + 1) * width + j]
    for j in range(width):
        totals[j] = e[n * width + j]
    return True


cdef void by_element(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t step,
                     Py_ssize_t width, double* totals) noexcept nogil:
    """The same, for any numbers."""
    cdef double low, high
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(width):
            low, high = x[i * step + j], totals[j]
            if low > high or low != low:
                low, high = high, low
            # not the difference, which is NaN for equal infinities
            totals[j] = high + log1p(exp(low - high)) if low != high else (
                high + 0.6931471805599453)
            y[i * step + j] = <floating>totals[j]


cdef void log_sums(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t step,
                   Py_ssize_t width) noexcept nogil:
    """y[i] := log(exp(x[0]) + ... + exp(x[i])), of columns of n elements, `step` apart"""
    cdef double totals[WIDTH]
    cdef Py_ssize_t j, rows
    for j in range(width):
        totals[j] = -INFINITY
    while n > 0:
        rows = min(n, max(<Py_ssize_t>BLOCK // width, <Py_ssize_t>1))
        if not by_block(x, y, rows, step, width, totals):
            by_element(x, y, rows, step, width, totals)
        x += rows * step
        y += rows * step
        n -= rows
