"""Elements picked along one dim, as `gather` does, and added back: raw, outside the graph.

The index has the dims of the tensor; in all but one of them it may be smaller. Each element of the
index names a position in that dim and means its own position in the others. A 0-d tensor counts as
a vector of one element, and so does a 0-d index.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, INT16, INT32, INT64, INT8, INTEGER_KIND, ITEMSIZE, KIND,
    UINT8, dtype_id, dtype_object,
)
from tensorlib._core.base.items cimport item, number
from tensorlib._core.base.shape cimport MAX_NDIM, parse_shape
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport packed_copy, zero

cdef enum:
    RELEASE_GIL = 16384      # elements from which on the GIL is released

# One line of the walk: places[i] names a position `along` bytes apart in x; x itself goes on by
# `x_step`, `y` by `y_step` bytes.
ctypedef void (*line)(char* x, const int64_t* places, Py_ssize_t place_step, Py_ssize_t along,
                      Py_ssize_t x_step, char* y, Py_ssize_t y_step, Py_ssize_t n) noexcept nogil


cdef void pick(item* x, const int64_t* places, Py_ssize_t place_step, Py_ssize_t along,
               Py_ssize_t x_step, char* y, Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    """y[i] := x[places[i], i]"""
    cdef Py_ssize_t i
    if place_step == 1 and y_step == sizeof(item):       # known steps save a third of the time
        for i in range(n):
            (<item*>y)[i] = (<item*>(<char*>x + places[i] * along + i * x_step))[0]
        return
    for i in range(n):
        (<item*>(y + i * y_step))[0] = (
            <item*>(<char*>x + places[i * place_step] * along + i * x_step))[0]


cdef void add(number* x, const int64_t* places, Py_ssize_t place_step, Py_ssize_t along,
              Py_ssize_t x_step, char* y, Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    """x[places[i], i] += y[i], in the order of i"""
    cdef Py_ssize_t i
    for i in range(n):
        (<number*>(<char*>x + places[i * place_step] * along + i * x_step))[0] += (
            <number*>(y + i * y_step))[0]


cdef void add_bools(char* x, const int64_t* places, Py_ssize_t place_step, Py_ssize_t along,
                    Py_ssize_t x_step, char* y, Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[places[i * place_step] * along + i * x_step] |= y[i * y_step]


cdef line picking(int dtype) noexcept:
    if ITEMSIZE[dtype] == 1: return <line>pick[uint8_t]
    if ITEMSIZE[dtype] == 2: return <line>pick[uint16_t]
    if ITEMSIZE[dtype] == 4: return <line>pick[uint32_t]
    return <line>pick[uint64_t]


cdef line adding(int dtype) noexcept:
    """Half types are added by the caller in float32: they have none here."""
    if dtype == BOOL: return <line>add_bools
    if dtype == UINT8: return <line>add[uint8_t]
    if dtype == INT8: return <line>add[int8_t]
    if dtype == INT16: return <line>add[int16_t]
    if dtype == INT32: return <line>add[int32_t]
    if dtype == INT64: return <line>add[int64_t]
    if dtype == FLOAT32: return <line>add[float]
    return <line>add[double]


cdef int walk(line run, Tensor x, int dim, Tensor places, Tensor y) except -1:
    """Runs along all lines of the positions, which are packed and of the shape of `y`."""
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type]
    cdef Py_ssize_t counter[MAX_NDIM]
    cdef Py_ssize_t x_steps[MAX_NDIM]
    cdef int inner = places.ndim_ - 1, d
    if places.numel_ == 0:
        return 0
    if places.dims[inner] < 16:              # short lines cost a call each
        for d in range(places.ndim_):
            if places.dims[d] > places.dims[inner]:
                inner = d
    for d in range(places.ndim_):
        counter[d] = 0
        x_steps[d] = 0 if d == dim else x.steps[d] * itemsize
    if places.numel_ < RELEASE_GIL:
        walk_lines(run, x.data_pointer, x.steps[dim] * itemsize, x_steps, places, y, inner, counter)
    else:
        with nogil:
            walk_lines(run, x.data_pointer, x.steps[dim] * itemsize, x_steps, places, y, inner,
                       counter)
    return 0


cdef void walk_lines(line run, char* x, Py_ssize_t along, const Py_ssize_t* x_steps, Tensor places,
                     Tensor out, int inner, Py_ssize_t* counter) noexcept nogil:
    cdef const int64_t* at = <const int64_t*>places.data_pointer
    cdef char* y = out.data_pointer
    cdef Py_ssize_t itemsize = ITEMSIZE[out.type], n = places.dims[inner]
    cdef int d
    while True:
        run(x, at, places.steps[inner], along, x_steps[inner], y, out.steps[inner] * itemsize, n)
        d = places.ndim_ - 1
        while d >= 0:
            if d != inner:
                at += places.steps[d]
                x += x_steps[d]
                y += out.steps[d] * itemsize
                counter[d] += 1
                if counter[d] < places.dims[d]:
                    break
                at -= places.dims[d] * places.steps[d]
                x -= places.dims[d] * x_steps[d]
                y -= places.dims[d] * out.steps[d] * itemsize
                counter[d] = 0
            d -= 1
        if d < 0:
            return


cdef bint in_range(Tensor positions, Py_ssize_t size) noexcept:
    """Whether all of these packed int64 are in [0, size)."""
    cdef const int64_t* values = <const int64_t*>positions.data_pointer
    cdef int64_t signs = 0
    cdef Py_ssize_t i
    for i in range(positions.numel_):        # a sign bit where one is not
        signs |= values[i] | (size - 1 - values[i])
    return signs >= 0


cdef Tensor wrapped(Tensor x, Py_ssize_t size, Py_ssize_t dim, str name=None):
    """A copy of the positions counted from the front. Raises IndexError, which names `name`."""
    cdef Tensor out = packed_copy(x, INT64)
    cdef int64_t* values = <int64_t*>out.data_pointer
    cdef int64_t low = 0, high = -1
    cdef Py_ssize_t i
    if in_range(out, size):
        return out
    for i in range(out.numel_):
        low = min(low, values[i])
        high = max(high, values[i])
    if low < -size or high >= size:
        raise IndexError(
            f"{name + ': ' if name else ''}index {low if low < -size else high} is out of bounds "
            f"for dimension {dim} with size {size}")
    for i in range(out.numel_):
        values[i] += size if values[i] < 0 else 0
    return out


cdef int check_sizes(tuple sizes, Tensor x) except -1:
    """Raises IndexError unless the tensor has the sizes that a key was parsed for. -1: any."""
    cdef Py_ssize_t size
    cdef int d
    cdef bint same = len(sizes) == x.ndim_
    for d in range(x.ndim_ if same else 0):
        size = sizes[d]
        same = same and (size < 0 or size == x.dims[d])
    if not same:
        raise IndexError(f"index: the key was parsed for a tensor of sizes {sizes}, got one of "
                         f"{tuple(x.shape)}")
    return 0


cpdef int check_positions(str name, index) except -1:
    """Raises RuntimeError unless `index`, or what it stands for, has a dtype for positions."""
    cdef int dtype = (<Tensor>index).type if isinstance(index, Tensor) else dtype_id(index.dtype)
    if KIND[dtype] != INTEGER_KIND or dtype == UINT8:
        raise RuntimeError(f"{name}: index must be int64, or of a smaller signed integer dtype, "
                           f"got {dtype_object(dtype)}")
    return 0


def positions(str name, Tensor x, int dim, Tensor index, bint copy=True):
    """A packed copy of the index, counted from the front. Raises IndexError, RuntimeError.

    Without `copy` the index itself where it is just that.
    """
    cdef Tensor like = as_vector(x)
    check_index(name, x, dim, index)
    if not copy and index.packed and index.type == INT64 and in_range(index, like.dims[dim]):
        return index
    return wrapped(index, like.dims[dim], dim, name)


cdef Tensor as_vector(Tensor x):
    """`x`, or the one element of a 0-d tensor as a vector."""
    cdef Py_ssize_t one = 1
    return x if x.ndim_ else new_view(x, 1, &one, &one, x.data_pointer)


cdef int check_index(str name, Tensor x, int dim, Tensor index) except -1:
    """Raises unless the index has the dims of the tensor, none but `dim` longer than its."""
    cdef Tensor like = as_vector(x), places = as_vector(index)
    cdef int d
    if not 0 <= dim < like.ndim_:
        raise IndexError(f"{name}: dim {dim} is not one of {like.ndim_}, counted from the front")
    if index.numel_:                         # an empty one may have any dtype, as in PyTorch
        check_positions(name, index)
    if like.ndim_ != places.ndim_:
        raise RuntimeError(
            f"{name}: index must have the same number of dimensions as input, got "
            f"{index.ndim_} and {x.ndim_}")
    for d in range(like.ndim_):
        if d != dim and places.dims[d] > like.dims[d]:
            raise RuntimeError(
                f"{name}: size of index {list(index.shape)} exceeds input {list(x.shape)} apart "
                f"from dimension {dim}")
    return 0


def take_along(Tensor x, int dim, Tensor index):
    """The elements of `x` at positions along a dim. Raises IndexError, RuntimeError."""
    cdef Tensor places = positions("gather", x, dim, index, False)
    cdef Tensor out = new_tensor(x.type, places.ndim_, places.dims)
    walk(picking(x.type), as_vector(x), dim, as_vector(places), as_vector(out))
    return out


def add_along(Tensor values, shape, int dim, Tensor index):
    """Zeros of sizes `shape` with the values, one for each position, added along a dim.

    Raises: IndexError, RuntimeError.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("gather", shape, dims)
    cdef bint half = values.type == FLOAT16 or values.type == BFLOAT16
    cdef int dtype = FLOAT32 if half else values.type        # halves are rounded once, at the end
    cdef Tensor out = new_tensor(dtype, ndim, dims), places
    places = positions("gather", out, dim, index, False)
    if not same_shape(values, places):
        raise RuntimeError(f"gather: values of shape {tuple(values.shape)} can't be added at "
                           f"positions of shape {tuple(places.shape)}")
    zero(out)
    walk(adding(dtype), as_vector(out), dim, as_vector(places),
         as_vector(packed_copy(values, FLOAT32) if half else values))
    return packed_copy(out, values.type) if half else out
