"""Sums and means of bags of rows of a table, and their gradients. Outside autograd.

The bags are parts of a vector of places, which begin at offsets.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, INT64, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.shape cimport count, times
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    AHEAD = 8            # rows that are loaded before they are needed
    TOGETHER = 4         # rows that are added at once: fewer roundings, and less traffic

cdef extern from * nogil:
    void __builtin_prefetch(const void* address)

ctypedef fused floating:
    float
    double

cdef struct Bags:
    const char* table        # (rows, n), or the gradient of the bags
    char* y                  # (count, n), or the gradient of the table
    const int64_t* places    # (given,)
    const int64_t* offsets   # (count,), and one more for the end, where that is given
    Py_ssize_t rows, n, given, count
    bint mean, has_end, is_single, back
    Py_ssize_t wrong_bag     # whose offsets are none, or -1
    int64_t wrong_place      # what is no place, where there is one
    bint is_wrong


cdef inline bint find_bag(Bags* of, Py_ssize_t bag, int64_t* begin, int64_t* end) noexcept nogil:
    """Where a bag lies; False for offsets that are none. Others may write where they are."""
    cdef const volatile int64_t* offsets = of.offsets
    begin[0] = offsets[bag]
    end[0] = offsets[bag + 1] if of.has_end or bag + 1 < of.count else of.given
    if 0 <= begin[0] <= end[0] <= of.given and (bag > 0 or begin[0] == 0):
        return True
    of.wrong_bag = bag
    return False


cdef inline Py_ssize_t row_at(Bags* of, Py_ssize_t i) noexcept nogil:
    """Where the row of a place begins, or -1"""
    cdef int64_t place = (<const volatile int64_t*>of.places)[i]
    if 0 <= place < of.rows:
        return place * of.n
    of.wrong_place, of.is_wrong = place, True
    return -1


cdef inline void fetch(Bags* of, const floating* table, Py_ssize_t i) noexcept nogil:
    """Has a row of the table loaded that is needed soon; they lie anywhere"""
    cdef int64_t place = (<const volatile int64_t*>of.places)[i] if i < of.given else -1
    cdef Py_ssize_t j
    if 0 <= place < of.rows:
        for j in range(0, of.n, 16):           # a line of memory, or two
            __builtin_prefetch(table + place * of.n + j)


cdef inline bint add_bag(Bags* of, const floating* table, floating* y, int64_t begin,
                         int64_t end) noexcept nogil:
    """y := the sum or mean of the rows at the places [begin, end)"""
    cdef Py_ssize_t[TOGETHER] at
    cdef Py_ssize_t i = begin, j, k
    cdef floating scale = <floating>max(<int64_t>1, end - begin)
    memset(y, 0, of.n * sizeof(floating))
    while i < end:
        for k in range(min(<Py_ssize_t>TOGETHER, end - i)):
            fetch(of, table, i + k + AHEAD)
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


cdef inline bint go(Bags* of, const floating* table, floating* y, Py_ssize_t bag) noexcept nogil:
    cdef int64_t begin = 0, end = 0
    if not find_bag(of, bag, &begin, &end):
        return False
    if of.back:
        return add_back(of, table + bag * of.n, y, begin, end)
    return add_bag(of, table, y + bag * of.n, begin, end)


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Bags* of = <Bags*>context
    cdef Py_ssize_t bag
    for bag in range(begin, end):
        if not (go(of, <const float*>of.table, <float*>of.y, bag) if of.is_single
                else go(of, <const double*>of.table, <double*>of.y, bag)):
            return


cdef void run_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """All bags in one piece, as they may have the same rows"""
    run(context, 0, (<Bags*>context).count)


cdef int begin(Bags* of, Tensor table, Tensor places, Tensor offsets, bint mean,
               bint has_end) except -1:
    if KIND[table.type] != FLOAT_KIND or table.ndim_ != 2 or places.ndim_ != 1 or (
            offsets.ndim_ != 1):
        raise RuntimeError("embedding_bag: expects a matrix of a floating dtype and vectors of "
                           f"indices and offsets, got {dtype_object(table.type)} of shape "
                           f"{tuple(table.shape)}, {tuple(places.shape)} and "
                           f"{tuple(offsets.shape)}")
    of.places, of.offsets = <int64_t*>places.data_pointer, <int64_t*>offsets.data_pointer
    of.n, of.given, of.is_single = table.dims[1], places.dims[0], table.type == FLOAT32
    of.count = max(<Py_ssize_t>0, offsets.dims[0] - has_end)
    of.mean, of.has_end, of.is_wrong, of.wrong_bag = mean, has_end, False, -1
    return 0


cdef int check(Bags* of, Tensor offsets) except -1:
    if of.wrong_bag >= 0:
        bounds = offsets.tolist() if of.has_end else [*offsets.tolist(), of.given]
        raise ValueError("embedding_bag: offsets must begin with 0 and not fall, up to the number "
                         f"of indices, got {bounds}")
    if of.is_wrong:
        raise IndexError(f"embedding_bag: index out of range in self: {of.wrong_place}")
    return 0


def bag_sums(Tensor weight, Tensor places, Tensor offsets, bint mean, bint has_end):
    """(V, D), (N,), (B,) -> (B, D): the sums or means of the rows at the places of each bag. An
    offset more is the end, if it `has_end`. Raises: ValueError, IndexError, RuntimeError."""
    cdef Bags of
    cdef Tensor table = packed(cast(weight, compute_dtype(weight.type)))
    cdef Tensor at = packed(cast(places, INT64)), bounds = packed(cast(offsets, INT64)), y
    cdef Py_ssize_t[2] dims
    begin(&of, table, at, bounds, mean, has_end)
    dims[0], dims[1] = of.count, of.n
    count("embedding_bag", 2, dims)
    y = new_tensor(table.type, 2, dims)
    of.table, of.y, of.rows, of.back = table.data_pointer, y.data_pointer, table.dims[0], False
    share(run, &of, of.y, of.count,
          1 + PIECE // (1 + times(of.n, of.given // max(<Py_ssize_t>1, of.count))),
          times(of.n, of.given) < RELEASE_GIL)
    check(&of, bounds)
    return cast(y, weight.type)


def bag_sums_backward(Tensor grad, Tensor places, Tensor offsets, Py_ssize_t rows, bint mean,
                      bint has_end):
    """The gradient of `bag_sums` for a table of so many rows."""
    cdef Bags of
    cdef Tensor g = packed(cast(grad, compute_dtype(grad.type)))
    cdef Tensor at = packed(cast(places, INT64)), bounds = packed(cast(offsets, INT64)), y
    cdef Py_ssize_t[2] dims
    begin(&of, g, at, bounds, mean, has_end)
    if g.dims[0] != of.count or rows < 0:
        raise RuntimeError(f"embedding_bag: a gradient of shape {tuple(grad.shape)} for "
                           f"{of.count} bags")
    dims[0], dims[1] = rows, of.n
    count("embedding_bag", 2, dims)
    y = new_tensor(g.type, 2, dims)
    zero(y)
    of.table, of.y, of.rows, of.back = g.data_pointer, y.data_pointer, rows, True
    run_once(run_back, &of, of.y, times(of.n, of.given) < RELEASE_GIL)
    check(&of, bounds)
    return cast(y, grad.type)
