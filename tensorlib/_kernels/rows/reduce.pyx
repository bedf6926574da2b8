"""Sums and products of memory seen as (outer, n, inner) to (outer, inner), over n.

`tensorlib._core.reduce.schedule` calls these, on parts of an array, from any number of threads. A
row of `table()` is (kind, input dtypes, output dtype, address). The kinds sum, nansum, prod and
squares (the sum of (x - c)**2), like those of extremes.pyx, have the signature

    void fold(void* tag, const T* x, const T* c, T* y, Py_ssize_t outer, Py_ssize_t n,
              Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t slice_step,
              Py_ssize_t step)

x[o, i, j] is at o * slice_step + i * step + j: slices may have gaps between them, and so may the
rows of a slice, if these are at least LANE_BYTES long. Of each outer slice the columns [begin, end)
of inner are reduced. n is at least 1. `tag` only tells the compiler which operation to specialise;
NULL is passed. `c` has the shape of y and may be NULL for the kinds that do not use it. The loops
on half types give float32; they are for rows of 16 elements or more, and as many columns.

gapped_sum, gapped_nansum and gapped_prod reduce elements that lie in rows with gaps between them to
one result:

    void fold(void* tag, const T* x, T* y, Py_ssize_t at, Py_ssize_t n, Py_ssize_t row,
              Py_ssize_t down, Py_ssize_t step)
"""

from libc.stdint cimport uint16_t, uint64_t

from tensorlib._kernels.types.half_types cimport brain, half, short_float
from tensorlib._kernels.rows.moments cimport sum_of_squares
from tensorlib._kernels.rows.sum_folds cimport (
    LANE_BYTES, NanSum, Product, Squares, Sum, fold_columns, fold_lines, fold_short_rows)
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, HALVES, rows_for

cdef extern from "rows/row_fold.h" nogil:
    void row_sums_float(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t step)
    void row_sums_double(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n,
                         Py_ssize_t step)
    void row_nansum_float(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t step)
    void row_nansum_double(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n,
                          Py_ssize_t step)
    void row_products_float(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n,
                            Py_ssize_t step)
    void row_products_double(const double* x, double* y, Py_ssize_t rows, Py_ssize_t n,
                             Py_ssize_t step)
    ctypedef struct gaps:
        Py_ssize_t row, down, step
    # of n elements from `at` on, four registers and more
    void gapped_sums_float(const float* x, float* y, Py_ssize_t at, Py_ssize_t n, const gaps* of)
    void gapped_sums_double(const double* x, double* y, Py_ssize_t at, Py_ssize_t n, const gaps* of)
    void gapped_nansum_float(const float* x, float* y, Py_ssize_t at, Py_ssize_t n, const gaps* of)
    void gapped_nansum_double(const double* x, double* y, Py_ssize_t at, Py_ssize_t n,
                             const gaps* of)
    void gapped_products_float(const float* x, float* y, Py_ssize_t at, Py_ssize_t n,
                               const gaps* of)
    void gapped_products_double(const double* x, double* y, Py_ssize_t at, Py_ssize_t n,
                                const gaps* of)
    void row_gather_float(const float* x, Py_ssize_t at, Py_ssize_t n, const gaps* of, float* room)
    void row_gather_double(const double* x, Py_ssize_t at, Py_ssize_t n, const gaps* of,
                           double* room)
    const Py_ssize_t REGISTER

cdef extern from "rows/half_fold.h" nogil:
    void row_brain_sums_float(const uint16_t* x, float* y, Py_ssize_t rows, Py_ssize_t n,
                              Py_ssize_t step)
    void row_half_sums_float(const uint16_t* x, float* y, Py_ssize_t rows, Py_ssize_t n,
                             Py_ssize_t step)
    void column_brain_sums(const uint16_t* x, float* y, Py_ssize_t n, Py_ssize_t stride,
                           Py_ssize_t begin, Py_ssize_t end)
    void column_half_sums(const uint16_t* x, float* y, Py_ssize_t n, Py_ssize_t stride,
                          Py_ssize_t begin, Py_ssize_t end)


ctypedef fused Folded:
    Sum
    NanSum
    Product


cdef inline void long_rows(Folded* op, const floating* x, floating* y, Py_ssize_t rows,
                           Py_ssize_t n, Py_ssize_t step) noexcept nogil:
    """Rows of a register of elements and more, `step` apart, by a loop of their own."""
    if Folded is Sum:
        if floating is float:
            row_sums_float(x, y, rows, n, step)
        else:
            row_sums_double(x, y, rows, n, step)
    elif Folded is NanSum:
        if floating is float:
            row_nansum_float(x, y, rows, n, step)
        else:
            row_nansum_double(x, y, rows, n, step)
    elif floating is float:
        row_products_float(x, y, rows, n, step)
    else:
        row_products_double(x, y, rows, n, step)


cdef void folded(Folded* op, const floating* x, const floating* c, floating* y, Py_ssize_t outer,
                 Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                 Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """The fold, but rows by `long_rows`."""
    if inner != 1:
        fold_columns(op, x, c, y, outer, n, inner, begin, end, slice_step, step)
    elif n * <Py_ssize_t>sizeof(floating) >= REGISTER:
        long_rows(op, x, y, outer, n, slice_step)
    else:
        fold_short_rows(op, x, c, y, outer, n, slice_step)


cdef void half_sums(short_float* tag, const uint16_t* x, const void* c, float* y,
                    Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                    Py_ssize_t end, Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """Sums of half types in float32, of rows or columns of a register of float32 and more."""
    cdef Py_ssize_t o
    if inner == 1:
        if short_float is half:
            row_half_sums_float(x, y, outer, n, slice_step)
        else:
            row_brain_sums_float(x, y, outer, n, slice_step)
        return
    for o in range(outer):
        if short_float is half:
            column_half_sums(x, y, n, step, begin, end)
        else:
            column_brain_sums(x, y, n, step, begin, end)
        x += slice_step
        y += inner


cdef void squares(Squares* op, const floating* x, const floating* c, floating* y, Py_ssize_t outer,
                  Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                  Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """The fold of squares, but rows by the loop that norms have."""
    cdef Py_ssize_t o
    if inner != 1:
        fold_columns(op, x, c, y, outer, n, inner, begin, end, slice_step, step)
    elif n * <Py_ssize_t>sizeof(floating) > LANE_BYTES:
        for o in range(outer):
            y[o] = <floating>sum_of_squares(x + o * slice_step, c[o], n)
    else:
        fold_short_rows(op, x, c, y, outer, n, slice_step)


cdef void whole_sums(Sum* op, const uint64_t* x, const uint64_t* c, uint64_t* y, Py_ssize_t outer,
                     Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                     Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """The fold of sums of integers, which are the same in any order: rows by the plain loop."""
    cdef uint64_t total
    cdef Py_ssize_t o, i
    if inner != 1:
        fold_columns(op, x, c, y, outer, n, inner, begin, end, slice_step, step)
        return
    for o in range(outer):
        total = 0
        for i in range(n):
            total += x[o * slice_step + i]
        y[o] = total


cdef void whole_products(Product* op, const uint64_t* x, const uint64_t* c, uint64_t* y,
                         Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                         Py_ssize_t end, Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """The fold of products of integers"""
    if inner == 1:
        fold_lines(op, x, c, y, outer, n, slice_step)
    else:
        fold_columns(op, x, c, y, outer, n, inner, begin, end, slice_step, step)


cdef enum:
    MOST_ROOM = 64           # elements of four of the widest registers, at most


cdef void gapped(Folded* op, const floating* x, floating* y, Py_ssize_t at, Py_ssize_t n,
                 Py_ssize_t row, Py_ssize_t down, Py_ssize_t step) noexcept nogil:
    """The fold of n elements from `at` on to one: they lie `step` apart in rows, which lie `down`
    apart."""
    cdef floating room[MOST_ROOM]
    cdef gaps of
    of.row, of.down, of.step = row, down, step
    if n * <Py_ssize_t>sizeof(floating) < 4 * REGISTER:
        if floating is float:
            row_gather_float(x, at, n, &of, room)
        else:
            row_gather_double(x, at, n, &of, room)
        folded(op, <const floating*>room, NULL, y, 1, n, 1, 0, 1, n, 1)
    elif Folded is Sum:
        if floating is float:
            gapped_sums_float(x, y, at, n, &of)
        else:
            gapped_sums_double(x, y, at, n, &of)
    elif Folded is NanSum:
        if floating is float:
            gapped_nansum_float(x, y, at, n, &of)
        else:
            gapped_nansum_double(x, y, at, n, &of)
    elif floating is float:
        gapped_products_float(x, y, at, n, &of)
    else:
        gapped_products_double(x, y, at, n, &of)


def short_row():
    """Bytes from which on rows have a loop of their own; in shorter ones, as in columns of as few,
    one element is folded after the other"""
    return REGISTER


def table():
    return rows_for(("int64", *FLOATS), [
        # Integer sums wrap around, which only unsigned arithmetic may do in C.
        ("sum", <size_t>&whole_sums, <size_t>&folded[Sum, float], <size_t>&folded[Sum, double]),
        ("prod", <size_t>&whole_products, <size_t>&folded[Product, float],
         <size_t>&folded[Product, double]),
    ]) + rows_for(FLOATS, [
        ("nansum", <size_t>&folded[NanSum, float], <size_t>&folded[NanSum, double]),
        ("squares", <size_t>&squares[float], <size_t>&squares[double]),
        ("gapped_sum", <size_t>&gapped[Sum, float], <size_t>&gapped[Sum, double]),
        ("gapped_nansum", <size_t>&gapped[NanSum, float], <size_t>&gapped[NanSum, double]),
        ("gapped_prod", <size_t>&gapped[Product, float], <size_t>&gapped[Product, double]),
    ]) + rows_for(HALVES, [
        ("sum", <size_t>&half_sums[half], <size_t>&half_sums[brain]),
    ], output="float32")
