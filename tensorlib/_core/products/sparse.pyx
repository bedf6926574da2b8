"""Products of a sparse matrix, given by its entries, and dense ones: one pass over the entries.

And which entries of two sparse matrices meet in their product.
"""

from libc.stdint cimport int64_t, uint64_t

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64, INT64
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.work cimport run_once
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport packed, zero
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

cdef struct Meetings:
    const int64_t* rows_a            # the positions of both, in order of rows
    const int64_t* columns_a
    const int64_t* rows_b
    const int64_t* columns_b
    int64_t* begins                  # (k + 1): where the entries of a row of b begin
    int64_t* seen                    # (n): the place of a column in the result
    uint64_t* bits                   # (n / 64), of no column
    int64_t* entries                 # for each meeting the entry of a,
    int64_t* places                  # that of b,
    int64_t* targets                 # and that of the result,
    int64_t* rows                    # of which these are the positions
    int64_t* columns
    Py_ssize_t count_a, count_b, m, k, n, total, size
    bint refused


cdef void count_meetings(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where the rows of b begin, and how often an entry of a meets one of b."""
    cdef Meetings* of = <Meetings*>context
    cdef Py_ssize_t i
    cdef int64_t row
    for i in range(of.count_b):
        row = of.rows_b[i]
        if not (0 <= row < of.k and 0 <= of.columns_b[i] < of.n):
            of.refused = True
            return
        of.begins[row + 1] += 1
    for i in range(of.k):
        of.begins[i + 1] += of.begins[i]
    for i in range(of.count_a):
        if not (0 <= of.rows_a[i] < of.m and 0 <= of.columns_a[i] < of.k):
            of.refused = True
            return
        of.total += of.begins[of.columns_a[i] + 1] - of.begins[of.columns_a[i]]


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


cdef void order(Meetings* of, int64_t* columns, Py_ssize_t count) noexcept nogil:
    """Sorts different columns: as bits, unless there are few among very many."""
    cdef Py_ssize_t i, k = 0
    cdef uint64_t word
    if of.n // 512 > count:
        sort(columns, count)
        return
    for i in range(count):
        of.bits[columns[i] >> 6] |= <uint64_t>1 << (columns[i] & 63)
    for i in range((of.n >> 6) + 1):
        word, of.bits[i] = of.bits[i], 0
        while word:
            columns[k] = 64 * i + __builtin_ctzll(word)
            word &= word - 1
            k += 1


cdef void list_meetings(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Row by row: the columns that are met, each once and in order, and who meets there."""
    cdef Meetings* of = <Meetings*>context
    cdef Py_ssize_t e = 0, first, t = 0, met, start, p, i
    cdef int64_t row, column
    for i in range(of.n):
        of.seen[i] = -1
    while e < of.count_a:
        row, first, met, start = of.rows_a[e], e, t, of.size
        while e < of.count_a and of.rows_a[e] == row:
            for p in range(of.begins[of.columns_a[e]], of.begins[of.columns_a[e] + 1]):
                column = of.columns_b[p]
                of.entries[t], of.places[t] = e, p
                t += 1
                if of.seen[column] < start:
                    of.seen[column] = of.size
                    of.columns[of.size] = column
                    of.size += 1
            e += 1
        order(of, of.columns + start, of.size - start)
        for i in range(start, of.size):
            of.rows[i], of.seen[of.columns[i]] = row, i
        for i in range(met, t):
            of.targets[i] = of.seen[of.columns_b[of.places[i]]]


def meetings(Tensor a, Tensor b, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n):
    """What the product of an (m, k) and a (k, n) matrix adds up, from the positions (2, entries) of
    both, in order of rows: the positions (2, size) of the result, and for each term the entry of a,
    that of b and that of the result.

    Raises: RuntimeError for other shapes and dtypes, IndexError for positions outside.
    """
    cdef Meetings job
    cdef Tensor begins, seen, bits, terms, positions
    cdef Py_ssize_t[2] dims
    if (a.type != INT64 or b.type != INT64 or a.ndim_ != 2 or b.ndim_ != 2 or a.dims[0] != 2
            or b.dims[0] != 2 or min(m, k, n) < 0):
        raise RuntimeError("meetings: takes two (2, entries) tensors of int64, got shapes "
                           f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}")
    a, b = packed(a), packed(b)
    dims[0], dims[1] = k + 1, n
    begins, seen = new_tensor(INT64, 1, dims), new_tensor(INT64, 1, dims + 1)
    dims[1] = (n >> 6) + 1
    bits = new_tensor(INT64, 1, dims + 1)
    zero(begins)
    zero(bits)
    job.bits = <uint64_t*>bits.data_pointer
    job.count_a, job.count_b, job.m, job.k, job.n = a.dims[1], b.dims[1], m, k, n
    job.rows_a, job.columns_a = <const int64_t*>a.data_pointer, (
        <const int64_t*>a.data_pointer + job.count_a)
    job.rows_b, job.columns_b = <const int64_t*>b.data_pointer, (
        <const int64_t*>b.data_pointer + job.count_b)
    job.begins, job.seen = <int64_t*>begins.data_pointer, <int64_t*>seen.data_pointer
    job.total, job.size, job.refused = 0, 0, False
    run_once(count_meetings, &job, begins.data_pointer, job.count_a + job.count_b < 16384)
    if job.refused:
        raise IndexError(f"meetings: a position is outside of ({m}, {k}) or ({k}, {n})")
    dims[0], dims[1] = 3, job.total
    terms = new_tensor(INT64, 2, dims)
    dims[0] = 2
    positions = new_tensor(INT64, 2, dims)
    job.entries = <int64_t*>terms.data_pointer
    job.places, job.targets = job.entries + job.total, job.entries + 2 * job.total
    job.rows = <int64_t*>positions.data_pointer
    job.columns = job.rows + job.total
    run_once(list_meetings, &job, positions.data_pointer, job.total < 16384)
    return positions[:, :job.size], terms[0], terms[1], terms[2]
