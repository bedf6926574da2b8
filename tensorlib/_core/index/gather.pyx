"""Elements picked along one dim, as `gather` does, and added back: raw, outside the graph.

The index has the dims of the tensor; in all but one of them it may be smaller. Each element of the
index names a position in that dim and means its own position in the others.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, INT16, INT32, INT64, INT8, ITEMSIZE, UINT8,
)
from tensorlib._core.base.items cimport item, number
from tensorlib._core.base.shape cimport MAX_NDIM, parse_shape
from tensorlib._core.base.storage cimport work_begins, work_ends
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport packed_copy, zero

cdef enum:
    RELEASE_GIL = 16384      # elements from which on the GIL is released

cdef str WRITTEN = "gather: a position is out of bounds; the index was written after it was checked"

# One line of the walk: places[i] names one of `size` positions `along` bytes apart in x; x itself
# goes on by `x_step`, `y` by `y_step` bytes. False, and no further, at a position that is not
# there: others may write at any time where the places lie, so each is read once (volatile), and
# what is checked is what is used.
ctypedef bint (*line)(char* x, const volatile int64_t* places, Py_ssize_t place_step,
                      Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                      Py_ssize_t y_step, Py_ssize_t n) noexcept nogil


cdef bint pick(item* x, const volatile int64_t* places, Py_ssize_t place_step, Py_ssize_t size,
               Py_ssize_t along, Py_ssize_t x_step, char* y, Py_ssize_t y_step,
               Py_ssize_t n) noexcept nogil:
    """y[i] := x[places[i], i]"""
    cdef Py_ssize_t i, place
    if place_step == 1 and y_step == sizeof(item):       # known steps save a third of the time
        for i in range(n):
            place = places[i]
            if not 0 <= place < size:
                return False
            (<item*>y)[i] = (<item*>(<char*>x + place * along + i * x_step))[0]
        return True
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        (<item*>(y + i * y_step))[0] = (<item*>(<char*>x + place * along + i * x_step))[0]
    return True


cdef bint add(number* x, const volatile int64_t* places, Py_ssize_t place_step, Py_ssize_t size,
              Py_ssize_t along, Py_ssize_t x_step, char* y, Py_ssize_t y_step,
              Py_ssize_t n) noexcept nogil:
    """x[places[i], i] += y[i], in the order of i"""
    cdef Py_ssize_t i, place
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        (<number*>(<char*>x + place * along + i * x_step))[0] += (<number*>(y + i * y_step))[0]
    return True


cdef bint add_bools(char* x, const volatile int64_t* places, Py_ssize_t place_step,
                    Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                    Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, place
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        x[place * along + i * x_step] |= y[i * y_step]
    return True


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


# All that a walk along lines needs to know: it runs without the GIL and looks at no tensor.
cdef struct Lines:
    line run
    char* x
    char* y
    const int64_t* places
    Py_ssize_t size, along           # positions, and the bytes from one to the next in x
    int ndim, inner                  # dims, and which of them the lines are
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t place_steps[MAX_NDIM]     # elements
    Py_ssize_t x_steps[MAX_NDIM]         # bytes
    Py_ssize_t y_steps[MAX_NDIM]         # bytes


cdef bint walk(line run, Tensor x, int dim, Tensor places, Tensor y) except -1:
    """Runs along all lines of the positions; False, with part of it done, if one is not there."""
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type], n = places.numel_
    cdef Lines lines
    cdef int d, era
    cdef bint inside
    require_places(x, dim, places, y)
    if n == 0:
        return True
    lines.run, lines.x, lines.y = run, x.data_pointer, y.data_pointer
    lines.places = <const int64_t*>places.data_pointer
    lines.size, lines.along = x.dims[dim], x.steps[dim] * itemsize
    lines.ndim, lines.inner = places.ndim_, places.ndim_ - 1
    for d in range(places.ndim_):
        lines.dims[d] = places.dims[d]
        lines.place_steps[d] = places.steps[d]
        lines.x_steps[d] = 0 if d == dim else x.steps[d] * itemsize
        lines.y_steps[d] = y.steps[d] * itemsize
    if lines.dims[lines.inner] < 16:         # short lines cost a call each
        for d in range(lines.ndim):
            if lines.dims[d] > lines.dims[lines.inner]:
                lines.inner = d
    if n < RELEASE_GIL:
        inside = walk_lines(&lines)
    else:
        era = work_begins()
        with nogil:
            inside = walk_lines(&lines)
        work_ends(era)
    return inside


cdef int require_places(Tensor x, int dim, Tensor places, Tensor y) except -1:
    """Raises RuntimeError unless the positions are int64 and have places in `x` and in `y`."""
    cdef bint fits = (places.type == INT64 and x.type == y.type and places.ndim_ == x.ndim_
                      and 0 <= dim < x.ndim_ and same_shape(places, y))
    cdef int d
    for d in range(x.ndim_ if fits else 0):
        fits &= d == dim or places.dims[d] <= x.dims[d]
    if not fits:
        raise RuntimeError(
            f"gather: positions {list(places.shape)} of {places.dtype} along dim {dim} don't fit "
            f"the shapes {list(x.shape)} and {list(y.shape)}")
    return 0


cdef bint walk_lines(const Lines* lines) noexcept nogil:
    """Runs along all lines; False at a position that is not there."""
    cdef Py_ssize_t counter[MAX_NDIM]
    cdef char* x = lines.x
    cdef char* y = lines.y
    cdef const int64_t* at = lines.places
    cdef int inner = lines.inner, d
    for d in range(lines.ndim):
        counter[d] = 0
    while True:
        if not lines.run(x, at, lines.place_steps[inner], lines.size, lines.along,
                         lines.x_steps[inner], y, lines.y_steps[inner], lines.dims[inner]):
            return False
        d = lines.ndim - 1
        while d >= 0:
            if d != inner:
                at += lines.place_steps[d]
                x += lines.x_steps[d]
                y += lines.y_steps[d]
                counter[d] += 1
                if counter[d] < lines.dims[d]:
                    break
                at -= lines.dims[d] * lines.place_steps[d]
                x -= lines.dims[d] * lines.x_steps[d]
                y -= lines.dims[d] * lines.y_steps[d]
                counter[d] = 0
            d -= 1
        if d < 0:
            return True


cdef bint in_range(Tensor positions, Py_ssize_t size) noexcept:
    """Whether all of these packed int64 are in [0, size)."""
    cdef const int64_t* values = <const int64_t*>positions.data_pointer
    cdef int64_t signs = 0
    cdef Py_ssize_t i
    for i in range(positions.numel_):        # a sign bit where one is not
        signs |= values[i] | (size - 1 - values[i])
    return signs >= 0


cdef Tensor wrapped(Tensor x, Py_ssize_t size, Py_ssize_t dim):
    """A copy of the positions counted from the front. Raises IndexError."""
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
            f"index {low if low < -size else high} is out of bounds for dimension {dim} "
            f"with size {size}")
    for i in range(out.numel_):
        values[i] += size if values[i] < 0 else 0
    return out


def positions(Tensor x, int dim, Tensor index, bint copy=True):
    """A packed copy of the index, counted from the front. Raises IndexError, RuntimeError.

    Without `copy` the index itself if it is packed, its positions neither counted nor checked.
    """
    cdef int d
    if index.ndim_ != x.ndim_:
        raise RuntimeError(
            "gather: index must have the same number of dimensions as input, got "
            f"{index.ndim_} and {x.ndim_}")
    for d in range(x.ndim_):
        if d != dim and index.dims[d] > x.dims[d]:
            raise RuntimeError(
                f"gather: size of index {list(index.shape)} exceeds input {list(x.shape)} apart "
                f"from dimension {dim}")
    if not copy and index.packed and index.type == INT64:
        return index                         # `take_along` looks whether all are in range
    return wrapped(index, x.dims[dim], dim)


def take_along(Tensor x, int dim, Tensor places):
    """The elements of `x` at positions along a dim (wrapped). Raises: IndexError.

    That positions count from the front is seen on the way; where one does not, they are wrapped.
    """
    cdef Tensor out = new_tensor(x.type, places.ndim_, places.dims)
    cdef line run = picking(x.type)
    if not walk(run, x, dim, places, out) and not walk(
            run, x, dim, wrapped(places, x.dims[dim], dim), out):
        raise IndexError(WRITTEN)
    return out


def add_along(Tensor values, shape, int dim, Tensor places):
    """Zeros of sizes `shape` with the values added at positions along a dim."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("gather", shape, dims)
    cdef int given = values.type
    cdef bint half = given == FLOAT16 or given == BFLOAT16
    cdef int dtype = FLOAT32 if half else given              # halves are rounded once, at the end
    cdef Tensor out = new_tensor(dtype, ndim, dims)
    zero(out)
    if half:
        values = packed_copy(values, FLOAT32)
    if not walk(adding(dtype), out, dim, places, values):
        zero(out)
        if not walk(adding(dtype), out, dim, wrapped(places, dims[dim], dim), values):
            raise IndexError(WRITTEN)
    return packed_copy(out, given) if half else out
