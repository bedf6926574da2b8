"""Running sums of contiguous memory seen as (outer, n, inner), along n.

`tensorlib._core.reduce.schedule` calls these, on parts of an array, from any number of threads. A
row of `table()` is (kind, input dtypes, output dtype, address); the signature is

    void scan(const T* x, T* y, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
              Py_ssize_t begin, Py_ssize_t end)

Of each outer slice the columns [begin, end) of inner, all if these are few, are summed. n is at
least 1. `y` is `x` or does not overlap it.

The sums of a column depend on its elements alone: every loop adds them in their order, with the
same arithmetic. float32 is summed in float64. float64 is summed with the error of each addition,
which is known exactly, carried beside the sum: the results are as exact as if computed in twice the
digits and rounded.

Source: Ogita, Rump and Oishi, "Accurate Sum and Dot Product", SIAM Journal on Scientific Computing
26(6), 2005, algorithm Sum2; the error of an addition is Knuth's.
"""

from libc.stdint cimport uint64_t

from tensorlib._kernels.vecmath.basics cimport floating

cdef extern from * nogil:
    """
    typedef double four_doubles __attribute__((vector_size(32)));
    typedef long long four_masks __attribute__((vector_size(32)));

    /* `scan_four` of float64, each operation as `running` does it, for all four at once: by itself
       GCC adds one after the other, which takes three times as long. */
    static inline void scan_four_doubles(const double *x, double *y, Py_ssize_t a, Py_ssize_t b,
                                         Py_ssize_t c, Py_ssize_t d, Py_ssize_t n,
                                         Py_ssize_t step) {
        four_doubles total = {0}, error = {0};
        for (Py_ssize_t i = 0; i < n; i++) {
            Py_ssize_t at = i * step;
            four_doubles added = {x[a + at], x[b + at], x[c + at], x[d + at]};
            four_doubles sum = total + added, part = sum - total;
            four_doubles lost = (total - (sum - part)) + (added - part);
            error += (four_doubles)((four_masks)lost & (lost == lost));
            total = sum;
            four_doubles result = total + error;
            y[a + at] = result[0];
            y[b + at] = result[1];
            y[c + at] = result[2];
            y[d + at] = result[3];
        }
    }

    typedef double two_doubles __attribute__((vector_size(16)));
    typedef long long two_masks __attribute__((vector_size(16)));
    typedef float two_floats __attribute__((vector_size(8), aligned(4), may_alias));

    /* `scan_one` of float64: `lost` is masked without a branch or a move to a general register */
    static inline void scan_one_double(const double *x, double *y, Py_ssize_t n,
                                       Py_ssize_t step) {
        two_doubles total = {0}, error = {0};
        for (Py_ssize_t i = 0; i < n; i++) {
            two_doubles added = {x[i * step]};
            two_doubles sum = total + added, part = sum - total;
            two_doubles lost = (total - (sum - part)) + (added - part);
            error += (two_doubles)((two_masks)lost & (lost == lost));
            total = sum;
            y[i * step] = total[0] + error[0];
        }
    }

    /* Two columns of float64 beside each other, as the parts of complex128 are */
    typedef double two_unaligned __attribute__((vector_size(16), aligned(8), may_alias));
    static inline void scan_two_doubles(const double *x, double *y, Py_ssize_t n,
                                        Py_ssize_t step) {
        two_doubles total = {0}, error = {0};
        for (Py_ssize_t i = 0; i < n; i++) {
            two_doubles added = *(const two_unaligned *)(x + i * step);
            two_doubles sum = total + added, part = sum - total;
            two_doubles lost = (total - (sum - part)) + (added - part);
            error += (two_doubles)((two_masks)lost & (lost == lost));
            total = sum;
            *(two_unaligned *)(y + i * step) = total + error;
        }
    }

    /* Two columns of float32 beside each other: GCC by itself converts one after the other */
    static inline void scan_two_floats(const float *x, float *y, Py_ssize_t n, Py_ssize_t step) {
        two_doubles total = {0};
        for (Py_ssize_t i = 0; i < n; i++) {
            total += __builtin_convertvector(*(const two_floats *)(x + i * step), two_doubles);
            *(two_floats *)(y + i * step) = __builtin_convertvector(total, two_floats);
        }
    }

    typedef unsigned long long four_wholes
        __attribute__((vector_size(32), aligned(8), may_alias));

    /* y[i] := x[0] + ... + x[i], four at a time: only the sum of all before waits for the last */
    static inline void scan_wholes(const uint64_t *x, uint64_t *y, Py_ssize_t n) {
        const four_wholes none = {0}, by_one = {7, 0, 1, 2}, by_two = {7, 6, 0, 1};
        const four_wholes last = {3, 3, 3, 3};
        four_wholes before = {0};
        Py_ssize_t i = 0;
        for (; i + 4 <= n; i += 4) {
            four_wholes sums = *(const four_wholes *)(x + i);
            sums += __builtin_shuffle(sums, none, by_one);
            sums += __builtin_shuffle(sums, none, by_two);
            *(four_wholes *)(y + i) = sums + before;
            before += __builtin_shuffle(sums, last);
        }
        uint64_t total = before[0];
        for (; i < n; i++) y[i] = total += x[i];
    }
    """
    void scan_wholes(const uint64_t* x, uint64_t* y, Py_ssize_t n)
    void scan_one_double(const double* x, double* y, Py_ssize_t n, Py_ssize_t step)
    void scan_two_doubles(const double* x, double* y, Py_ssize_t n, Py_ssize_t step)
    void scan_two_floats(const float* x, float* y, Py_ssize_t n, Py_ssize_t step)
    void scan_four_doubles(const double* x, double* y, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c,
                           Py_ssize_t d, Py_ssize_t n, Py_ssize_t step)

cdef enum:
    # Columns summed together. Their sums fit the first-level cache; with fewer, rows that are far
    # apart cost a page each for little: 512 took half as long again for 4000 x 5000 float32.
    TILE = 2048
    NARROW = 8       # columns of a slice below which sums in memory wait for each other


cdef inline double addition_error(double a, double b, double s) noexcept nogil:
    """a + b - s for s = a + b rounded; 0 where s is infinite or NaN"""
    cdef double part = s - a
    cdef double error = (a - (s - part)) + (b - part)
    return error if error == error else 0.0


cdef inline floating running(floating x, double* total, double* error) noexcept nogil:
    """total + error += x; float has no need of `error`"""
    cdef double before = total[0]
    total[0] = before + x
    if floating is float:
        return <float>total[0]
    else:
        error[0] += addition_error(before, x, total[0])
        return total[0] + error[0]


cdef void scan_one(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t step) noexcept nogil:
    """A column whose elements are `step` apart."""
    cdef Py_ssize_t i
    cdef double total = 0
    if floating is double:
        scan_one_double(x, y, n, step)
    else:
        for i in range(n):
            y[i * step] = running(x[i * step], &total, NULL)


cdef void scan_four(const floating* x, floating* y, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c,
                    Py_ssize_t d, Py_ssize_t n, Py_ssize_t step) noexcept nogil:
    """The columns that begin at a, b, c and d: one alone waits for each addition's result"""
    cdef Py_ssize_t i
    cdef double total_a = 0, total_b = 0, total_c = 0, total_d = 0
    if floating is double:
        scan_four_doubles(x, y, a, b, c, d, n, step)
    else:
        for i in range(n):
            y[a] = running(x[a], &total_a, NULL)
            y[b] = running(x[b], &total_b, NULL)
            y[c] = running(x[c], &total_c, NULL)
            y[d] = running(x[d], &total_d, NULL)
            a += step
            b += step
            c += step
            d += step


cdef inline Py_ssize_t begin_of(Py_ssize_t column, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """Where a column begins, counted over all slices."""
    return column // inner * n * inner + column % inner


cdef void scan_narrow(const floating* x, floating* y, Py_ssize_t outer, Py_ssize_t n,
                      Py_ssize_t inner) noexcept nogil:
    """All columns of all slices, four at a time, or where a slice has two or three of float32 those
    that are beside each other.

    Of two or three that are left the last is given repeatedly, since one alone takes as long as
    four do in vectors; those of float32 have no vectors, and took longer so.
    """
    cdef Py_ssize_t column = 0, at, columns = outer * inner, last = columns - 1
    cdef Py_ssize_t fewest = 2 if floating is double else 4
    if floating is float and 1 < inner < 4:
        while column < columns:
            at = begin_of(column, n, inner)
            if column % inner + 1 < inner:
                scan_two_floats(x + at, y + at, n, inner)
                column += 2
            else:
                scan_one(x + at, y + at, n, inner)
                column += 1
        return
    if floating is double and columns == inner == 2:
        scan_two_doubles(x, y, n, 2)
        return
    while column + fewest <= columns:
        scan_four(x, y, begin_of(column, n, inner), begin_of(column + 1, n, inner),
                  begin_of(min(column + 2, last), n, inner),
                  begin_of(min(column + 3, last), n, inner), n, inner)
        column += 4
    while column < columns:
        at = begin_of(column, n, inner)
        scan_one(x + at, y + at, n, inner)
        column += 1


cdef void scan_columns(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t inner,
                       Py_ssize_t width) noexcept nogil:
    """The first `width` columns, at most TILE."""
    cdef Py_ssize_t i, j
    cdef double totals[TILE]
    cdef double errors[TILE]
    for j in range(width):
        totals[j] = errors[j] = 0
    for i in range(n):
        for j in range(width):
            y[j] = running(x[j], totals + j, errors + j)
        x += inner
        y += inner


cdef void scan(const floating* x, floating* y, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
               Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y[o, i, j] := x[o, 0, j] + ... + x[o, i, j], begin <= j < end"""
    cdef Py_ssize_t o, j
    if inner < NARROW:
        scan_narrow(x, y, outer, n, inner)
        return
    for o in range(outer):
        j = begin
        while j < end:
            scan_columns(x + j, y + j, n, inner, min(<Py_ssize_t>TILE, end - j))
            j += TILE
        x += n * inner
        y += n * inner


cdef void whole_scan(const uint64_t* x, uint64_t* y, Py_ssize_t outer, Py_ssize_t n,
                     Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The scan of integers, which is exact; sums wrap, as only unsigned ones may in C."""
    cdef Py_ssize_t o, i, j
    for o in range(outer):
        if inner == 1:
            scan_wholes(x, y, n)
        else:
            for j in range(begin, end):
                y[j] = x[j]
            for i in range(1, n):
                for j in range(begin, end):
                    y[i * inner + j] = x[i * inner + j] + y[(i - 1) * inner + j]
        x += n * inner
        y += n * inner


def table():
    return [
        ("cumsum", ("int64",), "int64", <size_t>&whole_scan),
        ("cumsum", ("float32",), "float32", <size_t>&scan[float]),
        ("cumsum", ("float64",), "float64", <size_t>&scan[double]),
    ]
