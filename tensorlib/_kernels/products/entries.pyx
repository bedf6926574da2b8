"""Products of a sparse matrix, given by its entries, and dense ones.

    void add_entries(Entries* of, const T* values, const T* x, T* y)
    void entry_dots(Entries* of, const T* a, const T* x, T* y)

And sums and means of bags of rows of a table, which begin at offsets, with their gradients:

    void bags(Bags* of, Py_ssize_t begin, Py_ssize_t end)
"""

from libc.stdint cimport int64_t

from tensorlib._kernels.products.entries cimport Bags, Entries
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for

cdef enum:
    AHEAD = 8            # how many rows ahead memory is prefetched
    TOGETHER = 4         # rows that are added at once: fewer roundings, less memory traffic
    MOST_AT_ONCE = 64    # entries of a row that are processed together
    NEAR = 1 << 19       # bytes: smaller tables stay in the L2 cache, and are not prefetched

cdef extern from * nogil:
    """
    /* y[j] += values[0] * x[at[0] + j] + ... + values[n - 1] * x[at[n - 1] + j], one after the
       other, with the sums of BLOCKS vectors in registers: in memory each waits for the last */
    #define ADD_BLOCKS(T, V, BLOCKS)                                                             \
        for (; j + BLOCKS * sizeof(V) / sizeof(T) <= width; j += BLOCKS * sizeof(V) / sizeof(T)) \
        {                                                                                        \
            V sums[BLOCKS];                                                                      \
            for (int k = 0; k < BLOCKS; k++) sums[k] = ((V *)(y + j))[k];                        \
            for (Py_ssize_t i = 0; i < n; i++)                                                   \
                for (int k = 0; k < BLOCKS; k++)                                                 \
                    sums[k] += values[i] * ((const V *)(x + at[i] + j))[k];                      \
            for (int k = 0; k < BLOCKS; k++) ((V *)(y + j))[k] = sums[k];                        \
        }
    #define ADD_ENTRIES(T)                                                                       \
        static void add_entries_##T(const T *values, const T *x, const Py_ssize_t *at,           \
                                    Py_ssize_t n, T *y, size_t width) {                          \
            typedef T wide __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));      \
            typedef T half __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));      \
            size_t j = 0;                                                                        \
            ADD_BLOCKS(T, wide, 4)                                                               \
            ADD_BLOCKS(T, wide, 1)                                                               \
            ADD_BLOCKS(T, half, 1)                                                               \
            ADD_BLOCKS(T, T, 1)                                                                  \
        }
    ADD_ENTRIES(float)
    ADD_ENTRIES(double)
    /* a . b, with the sums of a vector in a register */
    #define ENTRY_DOT(T)                                                                         \
        static T entry_dot_##T(const T *a, const T *b, size_t n) {                               \
            typedef T wide __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));      \
            enum { LANES = 32 / sizeof(T) };                                                     \
            wide sums = {0};                                                                     \
            T total = 0;                                                                         \
            size_t j = 0;                                                                        \
            for (; j + LANES <= n; j += LANES)                                                   \
                sums += *(const wide *)(a + j) * *(const wide *)(b + j);                         \
            for (int k = 0; k < LANES; k++) total += sums[k];                                    \
            for (; j < n; j++) total += a[j] * b[j];                                             \
            return total;                                                                        \
        }
    ENTRY_DOT(float)
    ENTRY_DOT(double)
    """
    float entry_dot_float(const float* a, const float* b, Py_ssize_t n)
    double entry_dot_double(const double* a, const double* b, Py_ssize_t n)
    void add_entries_float(const float* values, const float* x, const Py_ssize_t* at, Py_ssize_t n,
                           float* y, Py_ssize_t width)
    void add_entries_double(const double* values, const double* x, const Py_ssize_t* at,
                            Py_ssize_t n, double* y, Py_ssize_t width)
    void __builtin_prefetch(const void* address)


# Another thread may write to the positions. So each is read once, and the number that is checked is
# the number that is used.

cdef inline void fetch(const volatile int64_t* places, Py_ssize_t i, Py_ssize_t count,
                       const floating* table, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """Prefetches a row of the table that is needed soon, as rows are in no order."""
    cdef int64_t place = places[i] if i < count else -1
    cdef Py_ssize_t j
    if 0 <= place < rows:
        for j in range(0, n, 16):              # a line of memory, or two
            __builtin_prefetch(table + place * n + j)


cdef inline void add_numbers(Entries* of, const floating* values, const floating* x,
                             floating* y) noexcept nogil:
    """The same of a vector x, with the sum of a row in two registers: each waits for itself"""
    cdef Py_ssize_t e = 0
    cdef const volatile int64_t* rows = of.rows
    cdef const volatile int64_t* columns = of.columns
    cdef int64_t row, column
    cdef floating total, other
    while e < of.count:
        row, other = rows[e], 0
        if not 0 <= row < of.n:
            of.refused = 1
            return
        total = y[row]
        while True:
            column = columns[e]
            if not 0 <= column < of.m:
                of.refused = 1
                return
            total, other = other, total + values[e] * x[column]
            e += 1
            if e == of.count or rows[e] != row:
                break
        y[row] = total + other


cdef void add_entries(Entries* of, const floating* values, const floating* x,
                      floating* y) noexcept nogil:
    """y[rows[e]] += values[e] * x[columns[e]], for as many entries at once as share a row"""
    cdef Py_ssize_t[MOST_AT_ONCE] at
    cdef Py_ssize_t e = 0, n, width = of.width
    cdef const volatile int64_t* rows = of.rows
    cdef const volatile int64_t* columns = of.columns
    cdef int64_t row, column
    cdef bint far = of.m * width * <Py_ssize_t>sizeof(floating) > NEAR
    if width == 1:
        add_numbers(of, values, x, y)
        return
    while e < of.count:
        row, n = rows[e], 0
        while True:
            if far:
                fetch(columns, e + n + AHEAD, of.count, x, of.m, width)
            column = columns[e + n]
            if not (0 <= row < of.n and 0 <= column < of.m):
                of.refused = 1
                return
            at[n] = column * width
            n += 1
            if n == MOST_AT_ONCE or e + n == of.count or rows[e + n] != row:
                break
        if floating is float:
            add_entries_float(values + e, x, at, n, y + row * width, width)
        else:
            add_entries_double(values + e, x, at, n, y + row * width, width)
        e += n


cdef void entry_dots(Entries* of, const floating* a, const floating* x,
                     floating* y) noexcept nogil:
    """y[e] := a[rows[e]] . x[columns[e]]"""
    cdef Py_ssize_t e, width = of.width
    cdef const volatile int64_t* rows = of.rows
    cdef const volatile int64_t* columns = of.columns
    cdef int64_t row, column
    for e in range(of.count):
        row, column = rows[e], columns[e]
        if not (0 <= row < of.n and 0 <= column < of.m):
            of.refused = 1
            return
        if floating is float:
            y[e] = entry_dot_float(a + row * width, x + column * width, width)
        else:
            y[e] = entry_dot_double(a + row * width, x + column * width, width)


# ---- bags ----------------------------------------------------------------------------------------

cdef inline bint find_bag(Bags* of, Py_ssize_t bag, int64_t* begin, int64_t* end) noexcept nogil:
    """Finds where a bag begins and ends; False for invalid offsets, which other threads may
    write."""
    cdef const volatile int64_t* offsets = of.offsets
    begin[0] = offsets[bag]
    end[0] = offsets[bag + 1] if of.has_end or bag + 1 < of.count else of.given
    if 0 <= begin[0] <= end[0] <= of.given and (bag > 0 or begin[0] == 0):
        return True
    of.wrong_bag = bag
    return False


cdef inline Py_ssize_t row_at(Bags* of, Py_ssize_t i) noexcept nogil:
    """The offset of the row of a place, or -1"""
    cdef int64_t place = (<const volatile int64_t*>of.places)[i]
    if 0 <= place < of.rows:
        return place * of.n
    of.wrong_place, of.is_wrong = place, True
    return -1


cdef inline bint add_bag(Bags* of, const floating* table, floating* y, int64_t begin,
                         int64_t end) noexcept nogil:
    """y := the sum or mean of the rows at the places [begin, end)"""
    cdef Py_ssize_t[TOGETHER] at
    cdef Py_ssize_t i = begin, j, k
    cdef floating scale = <floating>max(<int64_t>1, end - begin)
    cdef bint far = of.rows * of.n * <Py_ssize_t>sizeof(floating) > NEAR
    for j in range(of.n):
        y[j] = 0
    while i < end:
        for k in range(min(<Py_ssize_t>TOGETHER, end - i)):
            if far:
                fetch(of.places, i + k + AHEAD, of.given, table, of.rows, of.n)
            at[k] = row_at(of, i + k)
            if at[k] < 0:
                return False
        if end - i >= TOGETHER:
            for j in range(of.n):
                y[j] += ((table + at[0])[j] + (table + at[1])[j]) + (
                    (table + at[2])[j] + (table + at[3])[j])
        else:
            for k in range(end - i):
                for j in range(of.n):
                    y[j] += (table + at[k])[j]
        i += TOGETHER
    if of.mean:
        for j in range(of.n):
            y[j] /= scale
    return True


cdef inline bint add_back(Bags* of, const floating* g, floating* y, int64_t begin,
                          int64_t end) noexcept nogil:
    """Rows of y at the places [begin, end) += the gradient of their bag"""
    cdef floating scale = <floating>(end - begin if of.mean else 1)
    cdef Py_ssize_t i, j, at
    for i in range(begin, end):
        at = row_at(of, i)
        if at < 0:
            return False
        if of.mean:
            for j in range(of.n):
                (y + at)[j] += g[j] / scale
        else:
            for j in range(of.n):
                (y + at)[j] += g[j]
    return True


cdef void bags(Bags* of, const floating* table, floating* y, Py_ssize_t begin,
               Py_ssize_t end) noexcept nogil:
    """Computes the bags [begin, end), up to the first with an invalid offset or place."""
    cdef int64_t first = 0, last = 0
    cdef Py_ssize_t bag
    cdef bint is_right = True
    for bag in range(begin, end):
        if not (is_right and find_bag(of, bag, &first, &last)):
            return
        if of.back:
            is_right = add_back(of, table + bag * of.n, y, first, last)
        else:
            is_right = add_bag(of, table, y + bag * of.n, first, last)


cdef void bags_of_floats(Bags* of, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    bags(of, <const float*>of.table, <float*>of.y, begin, end)


cdef void bags_of_doubles(Bags* of, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    bags(of, <const double*>of.table, <double*>of.y, begin, end)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("add_entries", <size_t>&add_entries[float], <size_t>&add_entries[double]),
        ("entry_dots", <size_t>&entry_dots[float], <size_t>&entry_dots[double]),
        ("bags", <size_t>&bags_of_floats, <size_t>&bags_of_doubles),
    ])
