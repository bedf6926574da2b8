"""Cross entropy: the negative log-likelihood of a class for each row of logits.

A row of `table()` is (kind, input dtypes, output dtype, address), with the signatures

    Py_ssize_t run(const T* x, const int64_t* target, int64_t ignored, T* y, begin, end, n, inner)
    Py_ssize_t run(const T* g, const T* x, const int64_t* target, int64_t ignored, T* y,
                   begin, end, n, inner)

for the rows [begin, end). The logits are (outer, n, inner), so that the elements of a row lie
`inner` apart, and row r is that of r // inner and r % inner.

Each returns the first row whose target is neither a class nor `ignored`, at which it stops, or -1.
Ignored rows have a loss and a gradient of 0. Each target is read once, as another thread may write
to it.
"""

from libc.stdint cimport int64_t

from tensorlib._kernels.rows.softmax_rows cimport exp_below, exp_sums, row_max, row_sum
from tensorlib._kernels.vecmath.basics cimport floating
from tensorlib._kernels.vecmath.log cimport log

from tensorlib._kernels import FLOATS, rows_for

ctypedef const volatile int64_t changing

cdef enum:
    SHORT = 32          # elements of rows that are computed side by side, one in each lane
    SIDE_BY_SIDE = 32   # rows
    BLOCK = 1024        # the elements of these


# ---- rows side by side: short ones, and those whose elements have gaps ---------------------------

cdef inline void take(const floating* x, floating* block, Py_ssize_t count, Py_ssize_t n,
                      Py_ssize_t inner) noexcept nogil:
    """block[i, r] := element i of row r; what is past the last row is that one"""
    cdef Py_ssize_t i, r
    if inner > 1 and count == SIDE_BY_SIDE:
        for i in range(n):
            for r in range(SIDE_BY_SIDE):
                block[i * SIDE_BY_SIDE + r] = x[i * inner + r]
        return
    cdef Py_ssize_t row = 1 if inner > 1 else n, column = inner
    for r in range(SIDE_BY_SIDE):
        for i in range(n):
            block[i * SIDE_BY_SIDE + r] = x[i * column + min(r, count - 1) * row]


cdef inline void exps_of_block(floating* block, const floating* shift, Py_ssize_t n) noexcept nogil:
    """block := exp(block - shift); a row gives the same bits in every lane"""
    cdef Py_ssize_t i, r
    cdef floating* column
    for i in range(n):
        column = block + i * SIDE_BY_SIDE
        for r in range(SIDE_BY_SIDE):
            column[r] = exp_below(column[r] - shift[r])


cdef inline void exps_of_rows(const floating* x, floating* block, floating* shift, floating* total,
                              Py_ssize_t count, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """shift: the greatest elements of rows; total: the sums of exp(x - shift), in the block if all
    of them have room there"""
    cdef Py_ssize_t i, r, first
    cdef floating* column
    for first in range(0, n, 32):     # SHORT
        take(x + first * inner, block, count, min(<Py_ssize_t>SHORT, n - first), inner)
        if first == 0:
            for r in range(SIDE_BY_SIDE):
                shift[r], total[r] = block[r], 0
        for i in range(min(<Py_ssize_t>SHORT, n - first)):
            column = block + i * SIDE_BY_SIDE
            for r in range(SIDE_BY_SIDE):
                shift[r] = column[r] if column[r] > shift[r] else shift[r]
    for first in range(0, n, 32):
        if n > SHORT:
            take(x + first * inner, block, count, min(<Py_ssize_t>SHORT, n - first), inner)
        exps_of_block(block, shift, min(<Py_ssize_t>SHORT, n - first))
        for i in range(min(<Py_ssize_t>SHORT, n - first)):
            column = block + i * SIDE_BY_SIDE
            for r in range(SIDE_BY_SIDE):        # a NaN among the elements gets into the sum here
                total[r] += column[r]


ctypedef struct Lanes:
    Py_ssize_t row, count    # the rows that are taken together
    Py_ssize_t at, left      # their offset, and how many rows are left in the inner dim
    Py_ssize_t step          # from one to the next


cdef inline void first_lanes(Lanes* rows, Py_ssize_t begin, Py_ssize_t n,
                             Py_ssize_t inner) noexcept nogil:
    rows.row, rows.count = begin, 0
    rows.step = n if inner == 1 else 1
    rows.at = begin // inner * n * inner + begin % inner
    rows.left = inner - begin % inner


cdef inline bint next_lanes(Lanes* rows, Py_ssize_t end, Py_ssize_t n,
                            Py_ssize_t inner) noexcept nogil:
    """Moves on to the next rows, if there are any."""
    rows.row += rows.count
    rows.at += rows.count * rows.step
    rows.left -= rows.count
    rows.count = min(<Py_ssize_t>SIDE_BY_SIDE, end - rows.row)
    if inner > 1:
        if rows.left == 0:
            rows.left, rows.at = inner, rows.at + (n - 1) * inner
        rows.count = min(rows.count, rows.left)
    return rows.count > 0


cdef Py_ssize_t nll_lanes(const floating* x, changing* target, int64_t ignored, floating* y,
                          Py_ssize_t begin, Py_ssize_t end, Py_ssize_t n,
                          Py_ssize_t inner) noexcept nogil:
    """`nll` of rows side by side"""
    cdef floating block[BLOCK]
    cdef floating shift[SIDE_BY_SIDE]
    cdef floating total[SIDE_BY_SIDE]
    cdef Lanes rows
    cdef int64_t place
    cdef Py_ssize_t r
    first_lanes(&rows, begin, n, inner)
    while next_lanes(&rows, end, n, inner):
        exps_of_rows(x + rows.at, block, shift, total, rows.count, n, inner)
        for r in range(SIDE_BY_SIDE):
            total[r] = log(total[r])
        for r in range(rows.count):
            place = target[rows.row + r]
            if place == ignored:
                y[rows.row + r] = 0
            elif 0 <= place < n:
                y[rows.row + r] = total[r] + (shift[r] - x[rows.at + place * inner
                                                           + r * rows.step])
            else:
                return rows.row + r
    return -1


cdef Py_ssize_t nll_backward_lanes(const floating* g, const floating* x, changing* target,
                                   int64_t ignored, floating* y, Py_ssize_t begin, Py_ssize_t end,
                                   Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """`nll_backward` of rows side by side"""
    cdef floating block[BLOCK]
    cdef floating shift[SIDE_BY_SIDE]
    cdef floating total[SIDE_BY_SIDE]
    cdef floating scale[SIDE_BY_SIDE]
    cdef floating less[SIDE_BY_SIDE]
    cdef int64_t place[SIDE_BY_SIDE]
    cdef floating* out
    cdef Lanes rows
    cdef Py_ssize_t r, i, first, size
    first_lanes(&rows, begin, n, inner)
    while next_lanes(&rows, end, n, inner):
        exps_of_rows(x + rows.at, block, shift, total, rows.count, n, inner)
        for r in range(SIDE_BY_SIDE):
            scale[r] = 0
        for r in range(rows.count):
            place[r] = target[rows.row + r]
            if place[r] == ignored:
                place[r], less[r] = 0, 0
                continue
            if not 0 <= place[r] < n:
                return rows.row + r
            less[r] = g[rows.row + r]
            scale[r] = less[r] / total[r] if less[r] != 0 else 0
        for first in range(0, n, 32):            # SHORT
            size, out = min(<Py_ssize_t>SHORT, n - first), y + rows.at + first * inner
            if n > SHORT:
                take(x + rows.at + first * inner, block, rows.count, size, inner)
                exps_of_block(block, shift, size)
            if inner > 1 and rows.count == SIDE_BY_SIDE:
                for i in range(size):
                    for r in range(SIDE_BY_SIDE):
                        out[i * inner + r] = scaled(block[i * SIDE_BY_SIDE + r], scale[r])
            else:
                for r in range(rows.count):
                    for i in range(size):
                        out[i * inner + r * rows.step] = scaled(block[i * SIDE_BY_SIDE + r],
                                                                scale[r])
        for r in range(rows.count):
            y[rows.at + place[r] * inner + r * rows.step] -= less[r]
    return -1


cdef inline floating scaled(floating x, floating by) noexcept nogil:
    """0 for a scale of 0, also of NaN"""
    return x * by if by != 0 else 0


# ---- long rows -----------------------------------------------------------------------------------

cdef Py_ssize_t nll(const floating* x, changing* target, int64_t ignored, floating* y,
                    Py_ssize_t begin, Py_ssize_t end, Py_ssize_t n,
                    Py_ssize_t inner) noexcept nogil:
    """y[r] := log(sum of exp(x[r])) - x[r, target[r]]"""
    cdef floating shift, total
    cdef int64_t place
    cdef Py_ssize_t r
    if n and (n <= SHORT or inner > 1):
        return nll_lanes(x, target, ignored, y, begin, end, n, inner)
    for r in range(begin, end):
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
                             int64_t ignored, floating* y, Py_ssize_t begin, Py_ssize_t end,
                             Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """y[r] := g[r] * (softmax(x[r]) - 1 at the target)"""
    cdef floating shift, scale
    cdef int64_t place
    cdef Py_ssize_t r, i
    cdef const floating* row
    cdef floating* out
    if n and (n <= SHORT or inner > 1):
        return nll_backward_lanes(g, x, target, ignored, y, begin, end, n, inner)
    for r in range(begin, end):
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
    return rows_for(FLOATS, [
        ("nll", <size_t>&nll[float], <size_t>&nll[double]),
        ("nll_backward", <size_t>&nll_backward[float], <size_t>&nll_backward[double]),
    ])
