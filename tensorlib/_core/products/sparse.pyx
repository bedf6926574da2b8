"""Products of a sparse matrix, given by its entries, and dense ones: one pass over the entries.

And products of two sparse matrices, row by row (Gustavson, "Two fast algorithms for sparse
matrices", ACM Transactions on Mathematical Software 4(3), 1978).
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    COMPLEX128, COMPLEX_KIND, FLOAT32, FLOAT64, FLOAT_KIND, INT64, KIND,
)
from tensorlib._core.base.items cimport complex128_t
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.work cimport run_once
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._kernels.products.entries cimport Entries

cdef extern from *:
    int __builtin_ctzll(unsigned long long) nogil

ctypedef void (*entries_fn)(Entries* of, const char* a, const char* x, char* y) noexcept nogil

cdef struct Job:
    Entries of
    void* loop
    const char* left
    const char* right
    char* out

cdef void* loops[2][2]          # of sums and of dots; float32 and float64
find_pairs("entries", ("add_entries", "entry_dots"), loops[0])


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Job* job = <Job*>context
    (<entries_fn>job.loop)(&job.of, job.left, job.right, job.out)


cdef Py_ssize_t check(str name, Tensor x, Tensor y, Tensor rows, Tensor columns) except -1:
    """The number of entries. Raises: RuntimeError for shapes or dtypes that do not fit together."""
    if x.type != y.type or x.type != FLOAT32 and x.type != FLOAT64:
        raise RuntimeError(f"{name}: takes tensors of one dtype, float32 or float64, got "
                           f"{x.dtype} and {y.dtype}")
    if (rows.type != INT64 or columns.type != INT64 or rows.ndim_ != 1 or columns.ndim_ != 1
            or rows.numel_ != columns.numel_):
        raise RuntimeError(f"{name}: takes two vectors of int64 positions of one size, got shapes "
                           f"{tuple(rows.shape)} and {tuple(columns.shape)}")
    return rows.numel_


cdef Tensor made(str name, Tensor x, Tensor y, Tensor rows, Tensor columns, Tensor out,
                 Py_ssize_t n, bint of_dots):
    """`out`, written by a pass over the entries. Raises: IndexError."""
    cdef Tensor r = packed(rows), c = packed(columns)
    cdef Job job
    x, y = packed(x), packed(y)
    zero(out)
    job.left, job.right, job.out = x.data_pointer, y.data_pointer, out.data_pointer
    job.of.rows, job.of.columns = <const int64_t*>r.data_pointer, <const int64_t*>c.data_pointer
    job.of.count, job.of.width, job.of.n, job.of.m = r.numel_, y.dims[1], n, y.dims[0]
    job.of.refused, job.loop = 0, loops[of_dots][x.type == FLOAT64]
    run_once(run, &job, job.out, job.of.count * job.of.width < 16384)
    if job.of.refused:
        raise IndexError(f"{name}: a position is outside of ({n}, {y.dims[0]})")
    return out


def sparse_product(Tensor values, Tensor dense, Tensor rows, Tensor columns, Py_ssize_t size):
    """(size, K): row i is the sum of values[e] * dense[columns[e]] over the e with rows[e] = i."""
    cdef Py_ssize_t dims[2]
    if check("sparse_product", values, dense, rows, columns) != values.numel_ or (
            values.ndim_ != 1 or dense.ndim_ != 2 or size < 0):
        raise RuntimeError(f"sparse_product: expected a value for each of {rows.numel_} entries "
                           f"and a matrix, got shapes {tuple(values.shape)} and "
                           f"{tuple(dense.shape)}")
    dims[0], dims[1] = size, dense.dims[1]
    return made("sparse_product", values, dense, rows, columns,
                new_tensor(values.type, 2, dims), size, False)


def sampled_product(Tensor left, Tensor right, Tensor rows, Tensor columns):
    """A value for each entry e: left[rows[e]] . right[columns[e]]."""
    cdef Py_ssize_t count = check("sampled_product", left, right, rows, columns)
    if left.ndim_ != 2 or right.ndim_ != 2 or left.dims[1] != right.dims[1]:
        raise RuntimeError("sampled_product: expected two matrices with as many columns, got "
                           f"shapes {tuple(left.shape)} and {tuple(right.shape)}")
    return made("sampled_product", left, right, rows, columns,
                new_tensor(left.type, 1, &count), left.dims[0], True)


# ---- products of two sparse matrices -------------------------------------------------------------

# Another thread may write to the positions. So each is read once, and the number that is checked is
# the number that is used.

cdef struct Pattern:
    const volatile int64_t* rows_a   # the positions of both, in order of rows
    const volatile int64_t* columns_a
    const volatile int64_t* rows_b
    const volatile int64_t* columns_b
    int64_t* begins                  # (k + 1), zeroed: where the entries of a row of b begin
    Py_ssize_t count_a, count_b, m, k, n
    bint refused

cdef struct Meetings:
    Pattern of
    int64_t* seen                    # (n): the place of a column in the result
    uint8_t* marks                   # (n), zeroed, in whole words: whether a column is met
    int64_t* columns                 # of the result, in `room`
    int64_t* counts                  # (m), zeroed: of its rows
    int64_t* positions               # (2, size)
    Py_ssize_t total, room, size


cdef void find_begins(Pattern* of) noexcept nogil:
    """Where the rows of b begin"""
    cdef Py_ssize_t i
    cdef int64_t row
    for i in range(of.count_b):
        row = of.rows_b[i]
        if not 0 <= row < of.k:
            of.refused = True
            return
        of.begins[row + 1] += 1
    for i in range(of.k):
        of.begins[i + 1] += of.begins[i]


cdef inline bint find_row(Pattern* of, Py_ssize_t e, Py_ssize_t* first,
                          Py_ssize_t* last) noexcept nogil:
    """The entries of b that entry e of a meets; False where it is outside."""
    cdef int64_t column = of.columns_a[e]
    if not 0 <= column < of.k:
        of.refused = True
        return False
    first[0], last[0] = of.begins[column], of.begins[column + 1]
    return True


cdef void count_meetings(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """How often an entry of a meets one of b"""
    cdef Meetings* job = <Meetings*>context
    cdef Py_ssize_t e, first = 0, last = 0
    find_begins(&job.of)
    for e in range(job.of.count_a):
        if job.of.refused or not find_row(&job.of, e, &first, &last):
            return
        job.total += last - first


cdef void sort(int64_t* x, Py_ssize_t n) noexcept nogil:
    """Shell's sort, for the few columns of a row"""
    cdef Py_ssize_t gap = 1, i, j
    cdef int64_t at
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            at, j = x[i], i
            while j >= gap and x[j - gap] > at:
                x[j] = x[j - gap]
                j -= gap
            x[j] = at
        gap //= 3


cdef inline bint add_column(Meetings* job, int64_t column) noexcept nogil:
    """Lists a column of the result; False where there is no room."""
    if job.size == job.room:
        job.of.refused = True
        return False
    job.columns[job.size] = column
    job.size += 1
    return True


cdef bint list_few(Meetings* job, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The columns that the entries [begin, end) of a row meet, each once and in order: few"""
    cdef Py_ssize_t start = job.size, e, p, first = 0, last = 0
    cdef int64_t column
    for e in range(begin, end):
        if not find_row(&job.of, e, &first, &last):
            return False
        for p in range(first, last):
            column = job.of.columns_b[p]
            if not 0 <= column < job.of.n:
                job.of.refused = True
                return False
            if job.seen[column] < start:
                job.seen[column] = job.size
                if not add_column(job, column):
                    return False
    sort(job.columns + start, job.size - start)
    return True


cdef bint list_many(Meetings* job, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The same by marks, which are found in order"""
    cdef Py_ssize_t e, p, i, first = 0, last = 0, size = job.size
    cdef uint64_t column, word, n = <uint64_t>job.of.n
    cdef const volatile int64_t* columns = job.of.columns_b
    cdef uint64_t* words = <uint64_t*>job.marks
    for e in range(begin, end):
        if not find_row(&job.of, e, &first, &last):
            return False
        for p in range(first, last):
            column = <uint64_t>columns[p]
            if column >= n:
                job.of.refused = True
                return False
            job.marks[column] = 1
    for i in range((job.of.n >> 6) + 1):
        word = 0
        for p in range(8):           # a product moves the marks of eight bytes into the last one
            word |= (words[8 * i + p] * <uint64_t>0x0102040810204080 >> 56) << 8 * p
            words[8 * i + p] = 0
        if word and size + 64 > job.room:
            job.of.refused = True
            return False
        while word:
            job.columns[size] = 64 * i + __builtin_ctzll(word)
            size += 1
            word &= word - 1
    job.size = size
    return True


cdef void list_columns(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Row by row: the columns that are met"""
    cdef Meetings* job = <Meetings*>context
    cdef Pattern* of = &job.of
    cdef Py_ssize_t e = 0, start, met, size, first = 0, last = 0, i
    cdef int64_t row
    cdef bint is_right
    for i in range(of.n):
        job.seen[i] = -1
    while e < of.count_a:
        row, start, met, size = of.rows_a[e], e, 0, job.size
        if not 0 <= row < of.m:
            of.refused = True
            return
        while e < of.count_a and of.rows_a[e] == row:
            if not find_row(of, e, &first, &last):
                return
            met += last - first
            e += 1
        is_right = list_few(job, start, e) if of.n // 512 > met else list_many(job, start, e)
        if not is_right or e == start:
            of.refused = True
            return
        job.counts[row] += job.size - size


cdef void write_positions(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The rows, and the columns beside them"""
    cdef Meetings* job = <Meetings*>context
    cdef Py_ssize_t i, j, e = 0
    for i in range(job.of.m):
        for j in range(job.counts[i]):
            job.positions[e] = i
            e += 1
    memcpy(job.positions + job.size, job.columns, job.size * sizeof(int64_t))


cdef Tensor set_pattern(str name, Pattern* of, Tensor a, Tensor b, Py_ssize_t k, Py_ssize_t n):
    """Fills a pattern; returns what holds its memory. Raises: RuntimeError."""
    cdef Py_ssize_t lines = k + 1
    if (a.type != INT64 or b.type != INT64 or a.ndim_ != 2 or b.ndim_ != 2 or a.dims[0] != 2
            or b.dims[0] != 2 or min(k, n) < 0):
        raise RuntimeError(f"{name}: takes two (2, entries) tensors of int64, got shapes "
                           f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}")
    cdef Tensor begins = new_tensor(INT64, 1, &lines)
    zero(begins)
    of.begins, of.count_a, of.count_b = <int64_t*>begins.data_pointer, a.dims[1], b.dims[1]
    of.k, of.n, of.refused = k, n, False
    of.rows_a, of.rows_b = <const int64_t*>a.data_pointer, <const int64_t*>b.data_pointer
    of.columns_a, of.columns_b = of.rows_a + of.count_a, of.rows_b + of.count_b
    return begins


def meetings(Tensor a, Tensor b, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n):
    """The positions (2, size) of the product of an (m, k) and a (k, n) matrix, from the positions
    (2, entries) of both; all in order of rows, and those of the result in order of columns too.

    Raises: RuntimeError for other shapes and dtypes, IndexError for positions outside.
    """
    cdef Meetings job
    cdef Tensor begins, seen, marks, counts, columns, found
    cdef Py_ssize_t[2] dims
    if m < 0:
        raise RuntimeError(f"meetings: takes a number of rows, got {m}")
    a, b = packed(a), packed(b)
    begins = set_pattern("meetings", &job.of, a, b, k, n)
    seen = new_tensor(INT64, 1, &n)
    dims[0], dims[1] = 2, 8 * ((n >> 6) + 1)
    marks = new_tensor(INT64, 1, dims + 1)
    zero(marks)
    job.marks, job.seen = <uint8_t*>marks.data_pointer, <int64_t*>seen.data_pointer
    job.of.m, job.total, job.size = m, 0, 0
    run_once(count_meetings, &job, begins.data_pointer, job.of.count_a + job.of.count_b < 16384)
    job.room = job.total + 64                        # as words of marks are written
    columns, counts = new_tensor(INT64, 1, &job.room), new_tensor(INT64, 1, &m)
    zero(counts)
    job.columns, job.counts = <int64_t*>columns.data_pointer, <int64_t*>counts.data_pointer
    if not job.of.refused:
        run_once(list_columns, &job, columns.data_pointer, job.total < 16384)
    if job.of.refused:
        raise IndexError(f"meetings: a position is outside of ({m}, {k}) or ({k}, {n})")
    dims[1] = job.size
    found = new_tensor(INT64, 2, dims)
    job.positions = <int64_t*>found.data_pointer
    run_once(write_positions, &job, found.data_pointer, job.size < 16384)
    return found


ctypedef fused summed:
    int64_t                          # of all integers, whose sums wrap
    float
    double
    complex128_t

cdef enum Part:
    OF_LEFT, OF_RIGHT, OF_PRODUCT    # whose values are found, from those of the other two

cdef struct Sums:
    Pattern of
    const volatile int64_t* rows     # of the product, in order
    const volatile int64_t* columns
    Py_ssize_t count
    char* a                          # values of the left, the right and the product
    char* b
    char* c
    char* row                        # (n), zeroed: the product's row, with its zeros
    Part part
    int type


cdef inline bint add_row(Sums* job, Py_ssize_t e, summed* a, summed* b, summed* row,
                         Part part) noexcept nogil:
    """Adds the products that entry e of the left has a part in; False for a position outside."""
    cdef Py_ssize_t p, first = 0, last = 0
    cdef uint64_t column, n = <uint64_t>job.of.n
    cdef const volatile int64_t* columns = job.of.columns_b
    cdef summed x = a[e], total = 0
    if not find_row(&job.of, e, &first, &last):
        return False
    for p in range(first, last):
        column = <uint64_t>columns[p]
        if column >= n:
            job.of.refused = True
            return False
        if part == OF_PRODUCT:
            row[column] = row[column] + x * b[p]
        elif part == OF_RIGHT:
            b[p] = b[p] + x * row[column]
        else:
            total = total + row[column] * b[p]
    if part == OF_LEFT:
        a[e] = total
    return True


cdef inline bint add_rows(Sums* job, Py_ssize_t first, Py_ssize_t last, summed* a, summed* b,
                          summed* row, Part part) noexcept nogil:
    """The same for the entries [first, last): a loop of its own for each part"""
    cdef Py_ssize_t e
    for e in range(first, last):
        if not add_row(job, e, a, b, row, part):
            return False
    return True


cdef inline bint spread(Sums* job, Py_ssize_t first, Py_ssize_t last, summed* c,
                        summed* row) noexcept nogil:
    """Writes the entries [first, last) of the product to its row; False for a position outside."""
    cdef Py_ssize_t t
    cdef uint64_t column
    for t in range(first, last):
        column = <uint64_t>job.columns[t]
        if column >= <uint64_t>job.of.n:
            job.of.refused = True
            return False
        row[column] = c[t]
    return True


cdef inline bint collect(Sums* job, Py_ssize_t first, Py_ssize_t last, summed* c,
                         summed* row) noexcept nogil:
    """Moves the entries [first, last) from the row, and leaves zeros."""
    cdef Py_ssize_t t
    cdef uint64_t column, n = <uint64_t>job.of.n
    cdef const volatile int64_t* columns = job.columns
    for t in range(first, last):
        column = <uint64_t>columns[t]
        if column >= n:
            job.of.refused = True
            return False
        c[t] = row[column]
        row[column] = 0
    return True


cdef void sum_rows(Sums* job, summed* a, summed* b, summed* c, summed* row) noexcept nogil:
    """Row by row of the product, which is spread out in `row` while entries of a meet those of b"""
    cdef Py_ssize_t e = 0, start, begin, end = 0
    cdef int64_t line
    cdef bint is_right
    find_begins(&job.of)
    while e < job.of.count_a and not job.of.refused:
        line, begin, start = job.of.rows_a[e], end, e
        while end < job.count and job.rows[end] == line:
            end += 1
        e += 1
        while e < job.of.count_a and job.of.rows_a[e] == line:
            e += 1
        if job.part == OF_PRODUCT:
            is_right = add_rows(job, start, e, a, b, row, OF_PRODUCT)
        elif not spread(job, begin, end, c, row):
            return
        elif job.part == OF_RIGHT:
            is_right = add_rows(job, start, e, a, b, row, OF_RIGHT)
        else:
            is_right = add_rows(job, start, e, a, b, row, OF_LEFT)
        if not is_right or not collect(job, begin, end, c, row):
            return


cdef void sum_meetings(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Sums* of = <Sums*>context
    if of.type == INT64:
        sum_rows(of, <int64_t*>of.a, <int64_t*>of.b, <int64_t*>of.c, <int64_t*>of.row)
    elif of.type == FLOAT32:
        sum_rows(of, <float*>of.a, <float*>of.b, <float*>of.c, <float*>of.row)
    elif of.type == FLOAT64:
        sum_rows(of, <double*>of.a, <double*>of.b, <double*>of.c, <double*>of.row)
    else:
        sum_rows(of, <complex128_t*>of.a, <complex128_t*>of.b, <complex128_t*>of.c,
                 <complex128_t*>of.row)


cdef int summed_type(int dtype) noexcept:
    """The dtype that numbers are added in: integers wrap alike in all widths."""
    if KIND[dtype] == COMPLEX_KIND:
        return COMPLEX128
    if KIND[dtype] == FLOAT_KIND:
        return FLOAT64 if dtype == FLOAT64 else FLOAT32
    return INT64


def met_sums(Tensor left, Tensor right, Tensor a, Tensor b, Tensor c, Py_ssize_t k, Py_ssize_t n,
             Part part):
    """The values of c = a @ b, or those of a or b from c's gradient and the other, as `left` and
    `right` in this order: for positions (2, entries) the sums of the products in which they have a
    part.

    Raises: RuntimeError for dtypes and shapes that do not fit, IndexError for positions outside.
    """
    cdef Sums job
    cdef Tensor begins, row, out, x, y
    cdef Py_ssize_t counts[3]
    cdef char* values[3]
    cdef int dtype = summed_type(left.type)
    a, b, c = packed(a), packed(b), packed(c)
    begins = set_pattern("met_sums", &job.of, a, b, k, n)
    if c.type != INT64 or c.ndim_ != 2 or c.dims[0] != 2:
        raise RuntimeError(f"met_sums: takes (2, entries) tensors of int64, got shape "
                           f"{tuple(c.shape)} of {c.dtype}")
    counts[<int>OF_LEFT], counts[<int>OF_RIGHT] = a.dims[1], b.dims[1]
    counts[<int>OF_PRODUCT] = c.dims[1]
    cdef int first = 1 if part == OF_LEFT else 0, second = 1 if part == OF_PRODUCT else 2
    if left.type != right.type or left.ndim_ != 1 or right.ndim_ != 1 or (
            left.numel_ != counts[first] or right.numel_ != counts[second]):
        raise RuntimeError(f"met_sums: expected values of one dtype for {counts[first]} and "
                           f"{counts[second]} entries, got {left.numel_} of {left.dtype} and "
                           f"{right.numel_} of {right.dtype}")
    x, y = packed(cast(left, dtype)), packed(cast(right, dtype))
    out, row = new_tensor(dtype, 1, counts + <int>part), new_tensor(dtype, 1, &n)
    zero(out)
    zero(row)
    values[first], values[second] = x.data_pointer, y.data_pointer
    values[<int>part] = out.data_pointer
    job.a, job.b, job.c, job.row = values[0], values[1], values[2], row.data_pointer
    job.rows, job.count = <const int64_t*>c.data_pointer, c.dims[1]
    job.columns, job.part, job.type = job.rows + job.count, part, dtype
    run_once(sum_meetings, &job, out.data_pointer, job.count < 16384)
    if job.of.refused:
        raise IndexError(f"met_sums: a position is outside of {k} rows or {n} columns")
    return cast(out, left.type)
