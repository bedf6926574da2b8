"""The work of sliding windows, divided by planes or rows of windows; of half types a part at a time
becomes float32 in scratch memory, so that no whole tensor is copied. See `windows.pyx`."""

from libc.string cimport memset

from tensorlib._core.base.dtypes cimport FLOAT32, ITEMSIZE
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tiles.copies cimport laid, packed
from tensorlib._core.tiles.loops cimport find_cast
from tensorlib._kernels.layers.windows cimport area

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    TILE = 1 << 12       # elements of half types that are widened together, at least a plane or row
    LARGEST = 1 << 20    # elements of the largest plane, or row of windows, that is


cdef int run(Work* work, range_fn fn, Py_ssize_t planes, Py_ssize_t cost) except -1:
    """Runs `fn` on the planes. cost: the number of operations for a plane."""
    if planes == 0:
        return 0
    return share(fn, work, work.y, planes, 1 + PIECE // max(<Py_ssize_t>1, cost),
                 times(planes, cost) < RELEASE_GIL)


cdef Tensor taken(Work* work, Tensor x, const Window* w, bint lanes, bint back):
    """Of half types that are widened part by part the planes as they are, else in the dtype of the
    computation"""
    cdef Py_ssize_t most
    work.lanes = lanes_of_planes(x, lanes)
    work.planes, work.widen, work.narrow, work.adds, work.failed = NULL, NULL, NULL, back, False
    x = x if work.lanes else packed(x)
    if ITEMSIZE[x.type] != 2:
        return x
    if work.lanes and not back:
        most = row_room(w, work.lanes) if w.size[0] == w.out[0] == 1 else LARGEST + 1
    else:
        most = times(max(<Py_ssize_t>1, work.lanes), area(w.size) + area(w.out))
    if most > <Py_ssize_t>LARGEST:
        return laid(x, FLOAT32, work.lanes > 0)
    work.widen, work.narrow = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
    return x


cdef int run_parts(Work* work, range_fn fn, bint by_rows, Py_ssize_t planes,
                   Py_ssize_t cost) except -1:
    """`run`, part by part where half types are widened so. Raises: MemoryError."""
    if work.widen == NULL:
        return run(work, fn, planes, cost)
    work.planes = fn
    run(work, run_half_rows if by_rows else run_half_planes, planes, cost)
    if work.failed:
        raise MemoryError("pool: no memory for a plane")
    return 0


cdef void run_half_planes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Planes [begin, end) of a half type, of which some become float32 in scratch memory"""
    cdef Work* work = <Work*>context
    cdef Work part = work[0]
    cdef Py_ssize_t size = work.x_plane // 4, out = work.y_plane // 4, here
    cdef Py_ssize_t together = min(end - begin, max(1, TILE // max(size, out)))
    cdef size_t nbytes = together * (work.x_plane + work.y_plane)
    cdef char* x = take_scratch(nbytes)
    cdef char* y = x + together * work.x_plane
    if x == NULL:
        work.failed = True
        return
    part.x, part.y = x, y
    while begin < end:
        here = min(together, end - begin)
        work.widen(work.x + 2 * begin * size, x, here * size)
        if work.adds:
            memset(y, 0, here * work.y_plane)
        if work.at != NULL:
            part.at = work.at + begin * work.n
        work.planes(&part, 0, here)
        work.narrow(y, work.y + 2 * begin * out, here * out)
        begin += here
    give_scratch(x, nbytes)


cdef inline Py_ssize_t first_seen(const Window* w, Py_ssize_t row) noexcept nogil:
    """The first row of a plane of two dims that a row of windows sees"""
    if w.adaptive:
        return row * w.size[1] // w.out[1]
    return max(<Py_ssize_t>0, min(row * w.stride[1] - w.pad[1], w.size[1]))


cdef inline Py_ssize_t last_seen(const Window* w, Py_ssize_t row) noexcept nogil:
    """The row after the last"""
    if w.adaptive:
        return ((row + 1) * w.size[1] + w.out[1] - 1) // w.out[1]
    row = row * w.stride[1] - w.pad[1] + (w.kernel[1] - 1) * w.dilation[1] + 1
    return max(<Py_ssize_t>0, min(row, w.size[1]))


cdef inline Py_ssize_t row_room(const Window* w, Py_ssize_t lanes) noexcept nogil:
    """The elements that a row of windows over channels-last planes of two dims may see and give"""
    cdef Py_ssize_t seen = (w.kernel[1] - 1) * w.dilation[1] + 1
    return times(times(min(seen, w.size[1]), w.size[2]) + w.out[2], lanes)


cdef void run_half_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows [begin, end) of windows over channels-last planes of a half type, of which some become
    float32, with what they see"""
    cdef Work* work = <Work*>context
    cdef const Window* w = work.w
    cdef Work part = work[0]
    cdef Py_ssize_t line = w.size[2] * work.lanes, out = w.out[2] * work.lanes
    cdef Py_ssize_t room = max(<Py_ssize_t>TILE, row_room(w, work.lanes)), here, row, first, last
    cdef char* x = take_scratch(room * sizeof(float))
    cdef char* y
    if x == NULL:
        work.failed = True
        return
    while begin < end:
        row, here = begin % w.out[1], 1
        first, last = first_seen(w, row), last_seen(w, row)
        while begin + here < end and row + here < w.out[1] and (
                (last_seen(w, row + here) - first) * line + (here + 1) * out <= room):
            last = max(last, last_seen(w, row + here))
            here += 1
        last = max(first, last)
        y = x + (last - first) * line * sizeof(float)
        first += begin // w.out[1] * w.size[1]           # counted over all planes, as the loop does
        last += begin // w.out[1] * w.size[1]
        work.widen(work.x + 2 * first * line, x, (last - first) * line)
        part.x = x - first * line * <Py_ssize_t>sizeof(float)
        part.y = y - begin * out * <Py_ssize_t>sizeof(float)
        work.planes(&part, begin, begin + here)
        work.narrow(y, work.y + 2 * begin * out, here * out)
        begin += here
    give_scratch(x, room * sizeof(float))
