"""Writes at positions along a dim, over the elements of the tensor itself or of a copy. Outside of
autograd."""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport BFLOAT16, FLOAT16, FLOAT32, INT64, ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, reach
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.index.gather cimport (
    adding, as_vector, check_index, in_range, laying, line, walk, wrapped,
)
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport may_meet, packed, packed_copy


cdef Tensor counted(Tensor index, Tensor x, int dim, Py_ssize_t size, str name):
    """The positions, all in range and counted from the front, that a write into `x` leaves alone.
    Those of expanded dims are looked at once. Raises: IndexError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Tensor once
    cdef int d
    for d in range(index.ndim_):
        dims[d], steps[d] = index.dims[d], index.steps[d]
        if dims[d] > 1 and steps[d] == 0:
            dims[d] = 1
    once = new_view(index, index.ndim_, dims, steps, index.data_pointer)
    if index.type == INT64 and once.packed and not may_meet(index, x) and in_range(once, size):
        return index
    once = wrapped(once, size, dim, name)
    for d in range(index.ndim_):
        steps[d] = once.steps[d] if dims[d] == index.dims[d] else 0
    return new_view(once, index.ndim_, index.dims, steps, once.data_pointer)


cdef int walk_over(line run, Tensor x, Tensor values, int dim, Tensor index) except -1:
    """Runs along all lines of positions, which are checked before, over the elements of `x` itself.

    Raises: IndexError, RuntimeError.
    """
    cdef Tensor places
    cdef Py_ssize_t size = as_vector(x).dims[dim]
    if values.type != x.type or not same_shape(values, index):
        raise RuntimeError("scatter: values and positions differ")
    check_index("scatter", x, dim, index)
    places = counted(index, x, dim, size, "scatter")
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if not walk(run, as_vector(x), dim, as_vector(places), as_vector(values), True):
        raise IndexError("scatter: the index was written after it was checked")
    return 0


def write_along(Tensor x, Tensor values, int dim, Tensor index, bint adds):
    """Writes values over, or adds them to, the elements of `x` itself at positions along a dim.

    The positions are checked before. Raises: as `written_along`.
    """
    walk_over(adding(x.type) if adds else laying(x.type), x, values, dim, index)


def write_slices(Tensor x, str name, Tensor values, int dim, Tensor index, bint adds):
    """Writes slices, or a number, over those of `x` itself at the positions of a vector along a
    dim, or adds them to these; half types are not added.

    Raises: IndexError for positions out of range, which names `name`, RuntimeError.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t none[MAX_NDIM]
    cdef Tensor places
    cdef int d
    if not 0 <= dim < x.ndim_ or index.ndim_ != 1 or values.type != x.type or adds and (
            x.type == FLOAT16 or x.type == BFLOAT16):
        raise RuntimeError("write_slices: no slices that can be written")
    check_index(name, index, 0, index)
    places = counted(index, x, dim, x.dims[dim], name)
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    for d in range(x.ndim_):
        dims[d] = index.dims[0] if d == dim else x.dims[d]
        steps[d], none[d] = 1 if d == dim else 0, 0
    places = new_view(places, x.ndim_, dims, steps, places.data_pointer)
    if values.ndim_ == 0:
        values = new_view(values, x.ndim_, dims, none, values.data_pointer)
    if not walk(adding(x.type) if adds else laying(x.type), x, dim, places, values, True):
        raise IndexError(f"{name}: the index was written after it was checked")


# ---- at positions in all elements ----------------------------------------------------------------

cdef struct Steps:
    const volatile int64_t* places
    int64_t* offsets
    const Py_ssize_t* dims
    const Py_ssize_t* steps
    int ndim
    Py_ssize_t first, numel
    bint failed


cdef void look_up_offsets(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where in memory the elements lie that positions count row by row."""
    cdef Steps* of = <Steps*>context
    cdef Py_ssize_t i, offset, first = of.first
    cdef const volatile int64_t* places = of.places
    cdef int64_t* offsets = of.offsets
    cdef size_t place, rows, numel = <size_t>of.numel
    cdef int d, last = of.ndim - 1
    for i in range(begin, end):
        place = <size_t>places[i]
        if place >= numel:
            of.failed = True
            return
        offset = first
        for d in range(last, 0, -1):
            rows = place // <size_t>of.dims[d]
            offset += <Py_ssize_t>(place - rows * <size_t>of.dims[d]) * of.steps[d]
            place = rows
        offsets[i] = offset + <Py_ssize_t>place * of.steps[0]


cdef Tensor vector_of(Tensor x):
    """The elements of `x`, row by row, as a vector, which may be a copy."""
    cdef Py_ssize_t one = 1
    x = packed(x)
    return new_view(x, 1, &x.numel_, &one, x.data_pointer)


cdef bint fits_flat(Tensor x, index, source, accumulate) except -1:
    """Whether `put_flat` takes these arguments of `put`; it rounds no sums of half types."""
    return (isinstance(index, Tensor) and isinstance(source, Tensor)
            and isinstance(accumulate, bool) and (<Tensor>index).type == INT64
            and (<Tensor>index).numel_ == (<Tensor>source).numel_
            and (<Tensor>source).type == x.type
            and not (accumulate and (x.type == FLOAT16 or x.type == BFLOAT16)))


cdef int put_flat(Tensor x, Tensor index, Tensor values, bint adds) except -1:
    """Writes values over, or adds them to, the elements of `x` at positions that count all of its
    elements row by row, where `fits_flat`. Raises: IndexError."""
    cdef Py_ssize_t low = 0, high = 0, size = x.numel_, one = 1
    cdef Tensor places = counted(vector_of(index), x, 0, size, "put"), line_of_x, offsets
    cdef Steps steps
    cdef int d
    if places.numel_ == 0:
        return 0
    values = vector_of(packed_copy(values, values.type) if may_meet(values, x) else values)
    if not x.packed:
        for d in range(x.ndim_):
            reach(&low, &high, x.dims[d], x.steps[d])
        offsets = new_tensor(INT64, 1, &places.numel_)
        steps.places, steps.offsets = <int64_t*>places.data_pointer, <int64_t*>offsets.data_pointer
        steps.dims, steps.steps, steps.ndim = x.dims, x.steps, x.ndim_
        steps.first, steps.numel, steps.failed = -low, size, False
        run_alone(look_up_offsets, &steps, x.data_pointer, places.numel_)
        if steps.failed:
            raise IndexError("put: the index was written after it was checked")
        places, size = offsets, high - low + 1
    line_of_x = new_view(x, 1, &size, &one, x.data_pointer + low * ITEMSIZE[x.type])
    if not walk(adding(x.type) if adds else laying(x.type), line_of_x, 0, places, values, True):
        raise IndexError("put: the index was written after it was checked")
    return 0


def put_in_copy(Tensor x, index, source, accumulate):
    """A copy of `x`, row by row, with the source put, or added, there; None for what is to be
    converted, refused or rounded. Raises: IndexError."""
    cdef Tensor out
    if not fits_flat(x, index, source, accumulate):
        return None
    out = packed_copy(x, x.type)
    put_flat(out, index, source, accumulate)
    return out


# ---- in a copy -----------------------------------------------------------------------------------

def written_along(Tensor input, Tensor values, int dim, Tensor index, bint adds):
    """A copy of `input` with values put, or added, at positions along a dim.

    The positions may be those of an expanded tensor. Raises: IndexError, RuntimeError.
    """
    cdef int given = input.type
    cdef bint half = adds and (given == FLOAT16 or given == BFLOAT16)
    cdef int dtype = FLOAT32 if half else given              # halves are rounded once, at the end
    cdef Tensor out
    if values.type != given or not same_shape(values, index):
        check_index("scatter", input, dim, index)
        raise RuntimeError(f"scatter: values of shape {tuple(values.shape)} and {values.dtype} "
                           f"can't go to positions of shape {tuple(index.shape)} in {input.dtype}")
    if half:
        input, values = packed_copy(input, FLOAT32), packed_copy(values, FLOAT32)
    out = written(adding(dtype) if adds else laying(dtype), input, values, dim, index)
    return packed_copy(out, given) if half else out


cdef Tensor written(line run, Tensor x, Tensor values, int dim, Tensor index):
    """A copy of `x` that a walk along the positions has written to. Raises as `written_along`."""
    cdef Tensor out = packed_copy(x, x.type), like = as_vector(out), y = as_vector(values)
    cdef Tensor places = index
    check_index("scatter", x, dim, index)
    if index.type != INT64:
        places = packed_copy(index, INT64)
    if not walk(run, like, dim, as_vector(places), y, True):
        out = packed_copy(x, x.type)                         # again, with positions from the front
        places = wrapped(index, like.dims[dim], dim, "scatter")
        if not walk(run, as_vector(out), dim, as_vector(places), y, True):
            raise IndexError("scatter: the index was written after it was checked")
    return out
