"""Sums and means of bags of rows of a table, and their gradients. Outside autograd.

A vector of places (rows of the table) is cut into bags, which begin at the offsets.
"""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, INT64, ITEMSIZE, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport count, times
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._core.tiles.loops cimport cast_loop, find_cast
from tensorlib._kernels.products.entries cimport Bags

from tensorlib._core.base.error_names import IndexOutOfRange

ctypedef void (*bags_fn)(Bags* of, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work

cdef bags_fn loops[2]           # float32 and float64
find_pairs("entries", ("bags",), <void**>loops)


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    loops[not (<Bags*>context).is_single](<Bags*>context, begin, end)


cdef void run_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the gradients of all bags on one thread, as they may share rows."""
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
        raise RuntimeError("embedding_bag: offsets must begin with 0 and not fall, up to the "
                           f"number of indices, got {bounds}")
    if of.is_wrong:
        raise IndexOutOfRange(f"embedding_bag: index out of range in self: {of.wrong_place}")
    return 0


ctypedef struct WideRows:
    const char* table                # rows of a half type
    const int64_t* places
    char* y                          # float32: the row at each place
    int64_t* numbers                 # where it is in y, or the place if that is out of range
    Py_ssize_t rows, n
    cast_loop widen


cdef void widen_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef WideRows* of = <WideRows*>context
    cdef int64_t place
    cdef Py_ssize_t i
    for i in range(begin, end):
        place = (<const volatile int64_t*>of.places)[i]          # threads may write to it
        of.numbers[i] = i
        if 0 <= place < of.rows:
            of.widen(of.table + place * of.n * 2, of.y + i * of.n * sizeof(float), of.n)
        else:
            of.numbers[i] = place


cdef tuple rows_at(Tensor weight, Tensor at):
    """The rows in the dtype of the computation, and where each place finds its own: of a half type
    with more rows than places only those that are needed."""
    cdef WideRows of
    cdef Tensor table, numbers
    cdef Py_ssize_t[2] dims
    if ITEMSIZE[weight.type] != 2 or weight.ndim_ != 2 or at.ndim_ != 1 or (
            weight.dims[0] <= at.numel_):
        return packed(cast(weight, compute_dtype(weight.type))), at
    weight = packed(weight)
    dims[0], dims[1] = at.numel_, weight.dims[1]
    table, numbers = new_tensor(FLOAT32, 2, dims), new_tensor(INT64, 1, dims)
    of.table, of.places, of.y = weight.data_pointer, <int64_t*>at.data_pointer, table.data_pointer
    of.numbers, of.rows, of.n = <int64_t*>numbers.data_pointer, weight.dims[0], weight.dims[1]
    of.widen = find_cast(weight.type, FLOAT32)
    share(widen_rows, &of, of.y, at.numel_, 1 + PIECE // (1 + of.n), table.numel_ < RELEASE_GIL)
    return table, numbers


def bag_sums(Tensor weight, Tensor places, Tensor offsets, bint mean, bint has_end):
    """(V, D), (N,), (B,) -> (B, D): the sums or means of the rows at the places of each bag.

    has_end: one more offset is the end of the last bag. Raises: ValueError, IndexError,
    RuntimeError.
    """
    cdef Bags of
    cdef Tensor at = packed(cast(places, INT64)), bounds = packed(cast(offsets, INT64)), y
    cdef Tensor table
    cdef Py_ssize_t[2] dims
    table, at = rows_at(weight, at)
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
