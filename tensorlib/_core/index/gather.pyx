"""`gather` along one dim, and its adjoint, which adds: outside autograd.

The index has the dims of the tensor; in all but one of them it may be smaller. Each element of the
index names a position in that dim and means its own position in the others. A 0-d tensor counts as
a vector of one element, and so does a 0-d index.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, COMPLEX128, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT64, INTEGER_KIND,
    ITEMSIZE, KIND, dtype_id, dtype_object, is_unsigned,
)
from tensorlib._core.base.items cimport complex128_t, complex64_t, item, number
from tensorlib._core.base.shape cimport MAX_NDIM, parse_shape
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport packed_copy, zero

from tensorlib._core.base.error_names import IndexOutOfRange
from tensorlib._core.base.pool import get_num_threads

cdef enum:
    RELEASE_GIL = 16384      # elements from which on the GIL is released
    SHORT = 16               # elements: with fewer in the innermost dim, lines run along another
    PIECE = 128              # elements of such lines at once, as neighbours share cache lines

cdef str CHANGED = "gather: a position is out of bounds; the index was written after it was checked"

cdef inline bint gather_row(const item* x, const volatile int64_t* places, size_t size, item* y,
                            Py_ssize_t n) noexcept nogil:
    """y[i] := x[places[i]], checked by fours; as unsigned numbers, negative ones are too large"""
    cdef Py_ssize_t i = 0
    cdef size_t a, b, c, d
    while i + 4 <= n:
        a, b, c, d = <size_t>places[i], <size_t>places[i + 1], <size_t>places[i + 2], (
            <size_t>places[i + 3])
        if (a >= size) | (b >= size) | (c >= size) | (d >= size):
            return False
        y[i], y[i + 1], y[i + 2], y[i + 3] = x[a], x[b], x[c], x[d]
        i += 4
    while i < n:
        a = <size_t>places[i]
        if a >= size:
            return False
        y[i] = x[a]
        i += 1
    return True


cdef bint gather_line(item* x, const volatile int64_t* places, Py_ssize_t place_step,
                      Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                      Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    """y[i] := x[places[i], i]"""
    cdef Py_ssize_t i, place
    if place_step == 0 and x_step == sizeof(item) and y_step == sizeof(item) and n > 0:
        place = places[0]                    # the line is a contiguous slice at one position
        if not 0 <= place < size:
            return False
        memcpy(y, <char*>x + place * along, n * sizeof(item))
        return True
    if place_step == 1 and y_step == sizeof(item) and x_step == 0 and along == sizeof(item):
        return gather_row(x, places, <size_t>size, <item*>y, n)
    if place_step == 1 and y_step == sizeof(item):       # constant steps save a third of the time
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


cdef inline bint scatter_add_row(number* x, const volatile int64_t* places, size_t size,
                                 const number* y, Py_ssize_t n) noexcept nogil:
    """x[places[i]] += y[i], in the order of i

    Four values that go to one position are added in a register: to read an element back that was
    only just written takes three times as long.
    """
    cdef Py_ssize_t i = 0
    cdef size_t a, b, c, d
    while i + 4 <= n:
        a, b, c, d = <size_t>places[i], <size_t>places[i + 1], <size_t>places[i + 2], (
            <size_t>places[i + 3])
        if (a >= size) | (b >= size) | (c >= size) | (d >= size):
            return False
        if (a == b) & (b == c) & (c == d):
            x[a] = x[a] + y[i] + y[i + 1] + y[i + 2] + y[i + 3]
        else:
            x[a] += y[i]
            x[b] += y[i + 1]
            x[c] += y[i + 2]
            x[d] += y[i + 3]
        i += 4
    while i < n:
        a = <size_t>places[i]
        if a >= size:
            return False
        x[a] += y[i]
        i += 1
    return True


cdef bint scatter_add_line(number* x, const volatile int64_t* places, Py_ssize_t place_step,
                           Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                           Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    """x[places[i], i] += y[i], in the order of i"""
    cdef Py_ssize_t i, place
    cdef number* run
    if place_step == 0 and x_step == sizeof(number) and y_step == sizeof(number) and n > 0:
        place = places[0]                    # the line is a contiguous slice at one position
        if not 0 <= place < size:
            return False
        run = <number*>(<char*>x + place * along)
        for i in range(n):
            run[i] += (<number*>y)[i]
        return True
    if place_step == 1 and y_step == sizeof(number) and x_step == 0 and along == sizeof(number):
        return scatter_add_row(x, places, <size_t>size, <number*>y, n)
    if place_step == 1 and y_step == sizeof(number):
        for i in range(n):
            place = places[i]
            if not 0 <= place < size:
                return False
            (<number*>(<char*>x + place * along + i * x_step))[0] += (<number*>y)[i]
        return True
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        (<number*>(<char*>x + place * along + i * x_step))[0] += (<number*>(y + i * y_step))[0]
    return True


cdef bint scatter_add_bools(char* x, const volatile int64_t* places, Py_ssize_t place_step,
                            Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                            Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, place
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        x[place * along + i * x_step] |= y[i * y_step]
    return True


cdef bint scatter_line(item* x, const volatile int64_t* places, Py_ssize_t place_step,
                       Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                       Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    """x[places[i], i] := y[i], in the order of i"""
    cdef Py_ssize_t i, place
    if place_step == 0 and x_step == sizeof(item) and y_step == sizeof(item) and n > 0:
        place = places[0]                    # the line is a contiguous slice at one position
        if not 0 <= place < size:
            return False
        memcpy(<char*>x + place * along, y, n * sizeof(item))
        return True
    if place_step == 1 and y_step == sizeof(item) and x_step == 0 and along == sizeof(item):
        for i in range(n):
            place = places[i]
            if <size_t>place >= <size_t>size:
                return False
            x[place] = (<item*>y)[i]
        return True
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        (<item*>(<char*>x + place * along + i * x_step))[0] = (<item*>(y + i * y_step))[0]
    return True


cdef line_loop line_of_gather(int dtype) noexcept:
    """The loop that reads along a line."""
    if ITEMSIZE[dtype] == 1: return <line_loop>gather_line[uint8_t]
    if ITEMSIZE[dtype] == 2: return <line_loop>gather_line[uint16_t]
    if ITEMSIZE[dtype] == 4: return <line_loop>gather_line[uint32_t]
    if ITEMSIZE[dtype] == 16: return <line_loop>gather_line[complex128_t]
    return <line_loop>gather_line[uint64_t]


cdef line_loop line_of_scatter(int dtype, bint adds) noexcept:
    """The loop that writes, or adds, along a line. Half types have no sums: callers cast them."""
    if adds and dtype == BOOL: return <line_loop>scatter_add_bools
    if adds and dtype == FLOAT32: return <line_loop>scatter_add_line[float]
    if adds and dtype == FLOAT64: return <line_loop>scatter_add_line[double]
    if adds and dtype == COMPLEX64: return <line_loop>scatter_add_line[complex64_t]
    if adds and dtype == COMPLEX128: return <line_loop>scatter_add_line[complex128_t]
    if ITEMSIZE[dtype] == 1: return <line_loop>(
        scatter_add_line[uint8_t] if adds else scatter_line[uint8_t])
    if ITEMSIZE[dtype] == 2: return <line_loop>(
        scatter_add_line[uint16_t] if adds else scatter_line[uint16_t])
    if ITEMSIZE[dtype] == 4: return <line_loop>(
        scatter_add_line[uint32_t] if adds else scatter_line[uint32_t])
    if ITEMSIZE[dtype] == 16: return <line_loop>scatter_line[complex128_t]
    return <line_loop>(scatter_add_line[uint64_t] if adds else scatter_line[uint64_t])


# All that a walk along lines reads, so that it needs no tensor and no GIL.
cdef struct Lines:
    line_loop run
    char* x
    char* y
    const int64_t* places
    Py_ssize_t size, along           # elements of x along the dim, and the bytes between two
    int ndim, inner                  # the number of dims, and the one along which the lines run
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t place_steps[MAX_NDIM]     # elements
    Py_ssize_t x_steps[MAX_NDIM]         # bytes
    Py_ssize_t y_steps[MAX_NDIM]         # bytes


# A walk that several threads share, each taking part of one dim. A walk that writes to `x` does not
# share the indexed dim, so that no two threads write to the same element.
cdef struct Sharing:
    const Lines* lines
    int dim                          # the shared dim, or -1
    Py_ssize_t failed                # 1 once a position was out of range


cdef bint walk(line_loop run, Tensor x, int dim, Tensor places, Tensor y, bint writes) except -1:
    """Runs a loop along all lines; False, with part of the work done, at a position out of range,
    as negative ones are. writes: whether the loop writes to `x`."""
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type], n = places.numel_, parts, grain, threads
    cdef Lines lines
    cdef Sharing sharing
    cdef int d
    if n == 0:
        return True
    require_places(x, dim, places, y)
    lines.run, lines.x, lines.y = run, x.data_pointer, y.data_pointer
    lines.places = <const int64_t*>places.data_pointer
    lines.size, lines.along = x.dims[dim], x.steps[dim] * itemsize
    lines.ndim, lines.inner = places.ndim_, places.ndim_ - 1
    for d in range(places.ndim_):
        lines.dims[d] = places.dims[d]
        lines.place_steps[d] = places.steps[d]
        lines.x_steps[d] = 0 if d == dim else x.steps[d] * itemsize
        lines.y_steps[d] = y.steps[d] * itemsize
    if lines.dims[lines.inner] < SHORT:
        for d in range(lines.ndim):
            if lines.dims[d] > lines.dims[lines.inner]:
                lines.inner = d
    sharing.lines, sharing.failed = &lines, 0
    sharing.dim = dim_to_share(&lines, dim if writes else -1) if n >= RELEASE_GIL else -1
    parts = lines.dims[sharing.dim] if sharing.dim >= 0 else 1
    grain = 1 + GRAIN // (n // parts)
    if sharing.dim == lines.inner:               # long lines are faster: a piece for each thread
        threads = get_num_threads()
        grain = max(grain, (parts + threads - 1) // threads)
    share(walk_share, &sharing, lines.x, parts, grain, n < RELEASE_GIL)
    return not sharing.failed


cdef int dim_to_share(const Lines* lines, int but) noexcept:
    """The dim that threads share: the first whose size is at least half the largest.

    Never dim `but`; -1 if there is no other.
    """
    cdef Py_ssize_t most = 0
    cdef int d
    for d in range(lines.ndim):
        if d != but:
            most = max(most, lines.dims[d])
    for d in range(lines.ndim):
        if d != but and 2 * lines.dims[d] >= most:
            return d
    return -1


cdef void walk_share(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Runs along the lines at [begin, end) of the shared dim, or along all if there is none."""
    cdef Sharing* sharing = <Sharing*>context
    cdef Lines part = sharing.lines[0]
    if sharing.dim >= 0:
        part.dims[sharing.dim] = end - begin
        part.places += begin * part.place_steps[sharing.dim]
        part.x += begin * part.x_steps[sharing.dim]
        part.y += begin * part.y_steps[sharing.dim]
    if not walk_pieces(&part):
        sharing.failed = 1


cdef bint walk_pieces(const Lines* lines) noexcept nogil:
    """As `walk_lines`, but lines along an outer dim are cut: first pieces of all, then the next."""
    cdef Lines part
    cdef int inner = lines.inner
    cdef Py_ssize_t left = lines.dims[inner]
    if inner == lines.ndim - 1:
        return walk_lines(lines)
    part = lines[0]
    while left > 0:
        part.dims[inner] = min(left, <Py_ssize_t>PIECE)
        if not walk_lines(&part):
            return False
        part.places += PIECE * part.place_steps[inner]
        part.x += PIECE * part.x_steps[inner]
        part.y += PIECE * part.y_steps[inner]
        left -= PIECE
    return True


cdef int require_places(Tensor x, int dim, Tensor places, Tensor y) except -1:
    """Raises: RuntimeError unless the positions are int64 and fit the shapes of `x` and `y`."""
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
    """Runs along all lines; False at a position out of range."""
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
    """Whether all positions, packed int64, are in [0, size)."""
    cdef Bounds bounds
    bounds.values, bounds.size = <const int64_t*>positions.data_pointer, size
    bounds.signs = 0
    run_alone(find_signs, &bounds, bounds.values, positions.numel_)
    return bounds.signs >= 0


cdef struct Bounds:
    const int64_t* values
    Py_ssize_t size
    int64_t signs


cdef void find_signs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """signs := a negative number if a position is not in [0, size)"""
    cdef Bounds* bounds = <Bounds*>context
    cdef const int64_t* values = bounds.values
    cdef int64_t signs = 0
    cdef Py_ssize_t i, size = bounds.size
    for i in range(begin, end):
        signs |= values[i] | <int64_t>(<uint64_t>(size - 1) - <uint64_t>values[i])
    bounds.signs = signs


cdef Tensor wrapped_positions(Tensor x, Py_ssize_t size, Py_ssize_t dim, str name=None):
    """A packed int64 copy of positions, with negative ones counted from the front.

    name: the operation that the message names. Raises: IndexOutOfRange.
    """
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
        raise IndexOutOfRange(
            f"{name + ': ' if name else ''}index {low if low < -size else high} is out of bounds "
            f"for dimension {dim} with size {size}")
    for i in range(out.numel_):
        values[i] += size if values[i] < 0 else 0
    return out


cpdef int check_positions(str name, index) except -1:
    """Raises RuntimeError unless `index`, a tensor or a proxy, has a dtype for positions."""
    cdef int dtype = (<Tensor>index).type if isinstance(index, Tensor) else dtype_id(index.dtype)
    if KIND[dtype] != INTEGER_KIND or is_unsigned(dtype):
        raise RuntimeError(f"{name}: index must be int64, or of a smaller signed integer dtype, "
                           f"got {dtype_object(dtype)}")
    return 0


def positions(str name, Tensor x, int dim, Tensor index, bint copy=True):
    """A packed copy of the index, with all positions in range and counted from the front.

    Without `copy` an int64 index is returned as it is, its positions unchecked.
    Raises: IndexError, RuntimeError.
    """
    cdef Tensor like = as_vector(x)
    check_index(name, x, dim, index)
    if not copy and index.type == INT64:
        return index                         # `walk_positions` checks their range
    return wrapped_positions(index, like.dims[dim], dim, name)


cdef Tensor as_vector(Tensor x):
    """`x`, or the one element of a 0-d tensor as a vector."""
    cdef Py_ssize_t one = 1
    return x if x.ndim_ else new_view(x, 1, &one, &one, x.data_pointer)


cdef int check_index(str name, Tensor x, int dim, Tensor index) except -1:
    """Raises: IndexError, RuntimeError unless the index has the dims of the tensor, of which only
    `dim` may be longer."""
    cdef Tensor like = as_vector(x), places = as_vector(index)
    cdef int d
    if not 0 <= dim < like.ndim_:
        raise IndexError(f"{name}: dim {dim} is not one of {like.ndim_}, counted from the front")
    if index.numel_ == 0:                # of any dtype and shape, as in PyTorch
        return 0
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


cdef int walk_positions(line_loop run, Tensor x, int dim, Tensor places, Tensor y,
                        bint adds) except -1:
    """Runs a loop along all lines, at positions that count from either end. Raises: IndexError.

    The first walk stops at a negative position. Then all positions are counted from the front, and
    the walk begins again; `adds`: on zeros.
    """
    if walk(run, x, dim, places, y, adds):
        return 0
    if adds:
        zero(x)
    if not walk(run, x, dim, wrapped_positions(places, x.dims[dim], dim, "gather"), y, adds):
        raise IndexError(CHANGED)
    return 0


def take_along(Tensor x, int dim, Tensor index):
    """The elements of `x` at positions along a dim. Raises IndexError, RuntimeError."""
    cdef Tensor places = positions("gather", x, dim, index, False)
    cdef Tensor out = new_tensor(x.type, places.ndim_, places.dims)
    walk_positions(line_of_gather(x.type), as_vector(x), dim, as_vector(places), as_vector(out),
                   False)
    return out


def add_along(Tensor values, shape, int dim, Tensor index):
    """Zeros of sizes `shape` with the values, one for each position, added along a dim.

    Raises: IndexError, RuntimeError.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("gather", shape, dims)
    cdef int given = values.type
    cdef bint half = given == FLOAT16 or given == BFLOAT16
    cdef int dtype = FLOAT32 if half else given              # so that sums are rounded once
    cdef Tensor out = new_tensor(dtype, ndim, dims), places
    places = positions("gather", out, dim, index, False)
    if not same_shape(values, places):
        raise RuntimeError(f"gather: values of shape {tuple(values.shape)} can't be added at "
                           f"positions of shape {tuple(places.shape)}")
    zero(out)
    walk_positions(line_of_scatter(dtype, True), as_vector(out), dim, as_vector(places),
                   as_vector(packed_copy(values, FLOAT32) if half else values), True)
    return packed_copy(out, given) if half else out
