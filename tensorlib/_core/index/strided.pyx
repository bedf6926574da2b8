"""Moves of elements between strided memory of one dtype: copies, gathers and scatters.

`move` does them all. It visits positions in x (given by indices, by a mask, or in order) and for
each of them the remaining dims, and moves an element or a contiguous run either way. Its callers
have checked the arguments, and hold them where nobody else can write to them.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tensorlib._core.base.blocks cimport copy_run
from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, ITEMSIZE,
)
from tensorlib._core.base.items cimport complex128_t, item, number
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.base.work cimport share
from tensorlib._core.tensor.tensor cimport Tensor, new_view
from tensorlib._core.tiles.loops cimport find_gather, find_scatter

from tensorlib._core.base.pool import get_num_threads

cdef enum:
    CHUNK = 4096                     # positions whose byte offsets are kept at once: 32 KiB
    RELEASE_GIL = 1 << 16            # bytes from which on the GIL is released
    GRAIN = 1 << 16                  # bytes that a thread takes at once: 5 to 10 us
    LEAST_RUN = 8                    # bytes: moving a shorter run takes as long as one of so many
    LEAST_LINE = 8                   # items of the shortest line that is worth a call of its own
    NEAR = 1024                      # bytes of the buffer between two lines with gaps

# Moves n runs of a walk between x, at the byte offsets, and y, where they are `y_step` apart.
ctypedef void (*mover)(void* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                       const Walk* walk) noexcept nogil


# ---- movers --------------------------------------------------------------------------------------

cdef void take_items(item* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                     const Walk* walk) noexcept nogil:
    """y[i] := x[offsets[i]]"""
    cdef Py_ssize_t i, y_step = walk.y_step
    for i in range(n):     # memcpy of a constant size is one move, aligned or not
        memcpy(y + i * y_step, <char*>x + offsets[i], sizeof(item))


cdef void put_items(item* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                    const Walk* walk) noexcept nogil:
    """x[offsets[i]] := y[i]"""
    cdef Py_ssize_t i, y_step = walk.y_step
    for i in range(n):
        memcpy(<char*>x + offsets[i], y + i * y_step, sizeof(item))


cdef void take_runs(void* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                    const Walk* walk) noexcept nogil:
    cdef Py_ssize_t i, y_step = walk.y_step
    for i in range(n):
        copy_run(<char*>x + offsets[i], y + i * y_step, walk.run)


cdef void put_runs(void* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                   const Walk* walk) noexcept nogil:
    cdef Py_ssize_t i, y_step = walk.y_step
    for i in range(n):
        copy_run(y + i * y_step, <char*>x + offsets[i], walk.run)


cdef inline void copy_line(const char* x, Py_ssize_t x_step, char* y, Py_ssize_t y_step,
                           const Walk* walk) noexcept nogil:
    """y := x, a line of items; if neither is contiguous, by way of a buffer"""
    cdef char near[NEAR]
    cdef Py_ssize_t size = ITEMSIZE[walk.dtype], done = 0, n
    if y_step == size:
        find_gather(walk.dtype)(x, x_step, y, walk.line)
        return
    if x_step == size:
        find_scatter(walk.dtype)(x, y, y_step, walk.line)
        return
    while done < walk.line:
        n = min(NEAR // size, walk.line - done)
        find_gather(walk.dtype)(x + done * x_step, x_step, near, n)
        find_scatter(walk.dtype)(near, y + done * y_step, y_step, n)
        done += n


cdef void take_lines(void* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                     const Walk* walk) noexcept nogil:
    """y[i] := the line of items at x[offsets[i]]"""
    cdef Py_ssize_t i
    for i in range(n):
        copy_line(<char*>x + offsets[i], walk.line_step, y + i * walk.y_step, walk.y_line_step,
                  walk)


cdef void put_lines(void* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                    const Walk* walk) noexcept nogil:
    """the line of items at x[offsets[i]] := y[i]"""
    cdef Py_ssize_t i
    for i in range(n):
        copy_line(y + i * walk.y_step, walk.y_line_step, <char*>x + offsets[i], walk.line_step,
                  walk)


cdef void add_runs(number* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                   const Walk* walk) noexcept nogil:
    """x[offsets[i]] += y[i], in the order of i"""
    cdef Py_ssize_t i, j, y_step = walk.y_step, run = walk.run
    cdef number* target
    cdef number* values
    for i in range(n):
        target = <number*>(<char*>x + offsets[i])
        values = <number*>(y + i * y_step)
        for j in range(run // <Py_ssize_t>sizeof(number)):
            target[j] += values[j]


cdef void or_runs(char* x, const Py_ssize_t* offsets, char* y, Py_ssize_t n,
                  const Walk* walk) noexcept nogil:
    cdef Py_ssize_t i, j, y_step = walk.y_step, run = walk.run
    for i in range(n):
        for j in range(run):
            x[offsets[i] + j] |= y[i * y_step + j]


cdef mover mover_of(Move kind, Py_ssize_t run, int dtype) noexcept:
    """The loop of a move. Half types have no sums: callers cast them."""
    if kind == TAKE:
        if run == 1: return <mover>take_items[uint8_t]
        if run == 2: return <mover>take_items[uint16_t]
        if run == 4: return <mover>take_items[uint32_t]
        if run == 8: return <mover>take_items[uint64_t]
        if run == 16: return <mover>take_items[complex128_t]
        return take_runs
    if kind == PUT:
        if run == 1: return <mover>put_items[uint8_t]
        if run == 2: return <mover>put_items[uint16_t]
        if run == 4: return <mover>put_items[uint32_t]
        if run == 8: return <mover>put_items[uint64_t]
        if run == 16: return <mover>put_items[complex128_t]
        return put_runs
    if dtype == BOOL: return <mover>or_runs
    if dtype == FLOAT32: return <mover>add_runs[float]
    if dtype == FLOAT64: return <mover>add_runs[double]
    if dtype == COMPLEX64: return <mover>add_runs[float]          # real and imaginary parts alike
    if dtype == COMPLEX128: return <mover>add_runs[double]
    if ITEMSIZE[dtype] == 1: return <mover>add_runs[uint8_t]
    if ITEMSIZE[dtype] == 2: return <mover>add_runs[uint16_t]
    if ITEMSIZE[dtype] == 4: return <mover>add_runs[uint32_t]
    return <mover>add_runs[uint64_t]


# ---- the walk over positions and dims ------------------------------------------------------------

cdef void start(Walk* walk, char* x, char* y) noexcept:
    """A walk with one position and no dims yet."""
    walk.x = x
    walk.y = y
    walk.n = 1
    walk.y_step = 0
    walk.n_indices = 0
    walk.mask = NULL
    walk.x_step = 0
    walk.ndim = 0


cdef void add_dim(Walk* walk, Py_ssize_t size, Py_ssize_t x_step, Py_ssize_t y_step) noexcept:
    """Adds an inner dim, which is merged with the last one where the steps of both sides allow."""
    cdef int last = walk.ndim - 1
    if size == 1:
        return
    if last >= 0 and (walk.x_steps[last] == x_step * size and walk.y_steps[last] == y_step * size):
        walk.dims[last] *= size
        walk.x_steps[last] = x_step
        walk.y_steps[last] = y_step
        return
    walk.dims[walk.ndim] = size
    walk.x_steps[walk.ndim] = x_step
    walk.y_steps[walk.ndim] = y_step
    walk.ndim += 1


cdef struct Job:
    const Walk* walk
    mover loop


cdef bint spans_cache_lines(const Walk* walk, int d) noexcept:
    """Whether the items of a line along `d` are all in different cache lines, on both sides."""
    return magnitude(walk.x_steps[d]) >= LINE and magnitude(walk.y_steps[d]) >= LINE


cdef inline Py_ssize_t magnitude(Py_ssize_t x) noexcept:
    return -x if x < 0 else x


cdef int move(Walk* walk, Move kind, int dtype) except -1:
    """Moves all elements of a walk. Large work releases the GIL.

    Threads share reads only: several positions may name one element, whose writes keep their order.
    """
    cdef Py_ssize_t itemsize = ITEMSIZE[dtype], total = walk.n, each, grain, threads
    cdef int d, last = walk.ndim - 1
    cdef Job job
    for d in range(walk.ndim):
        total = times(total, walk.dims[d])
    if total == 0:
        return 0
    walk.run = itemsize
    if last >= 0 and walk.x_steps[last] == itemsize and walk.y_steps[last] == itemsize:
        walk.run *= walk.dims[last]
        walk.ndim -= 1
        last -= 1
    if walk.n_indices == 0 and walk.mask == NULL and last >= 0:
        # without indices or a mask the innermost dim left gives the positions
        walk.n = walk.dims[last]
        walk.x_step = walk.x_steps[last]
        walk.y_step = walk.y_steps[last]
        walk.ndim -= 1
        last -= 1
    job.walk, job.loop = walk, mover_of(kind, walk.run, dtype)
    if kind != ADD and last >= 0 and walk.run == itemsize and walk.dims[last] >= LEAST_LINE and (
            walk.y_steps[last] == itemsize or walk.n_indices or walk.mask != NULL) and not (
            walk.y_step == itemsize and walk.n >= LEAST_LINE and spans_cache_lines(walk, last)):
        # for each position, one call moves a line along the innermost dim
        job.loop = take_lines if kind == TAKE else put_lines
        walk.line, walk.line_step, walk.dtype = walk.dims[last], walk.x_steps[last], dtype
        walk.y_line_step = walk.y_steps[last]
        walk.ndim -= 1
    each = total * itemsize // walk.n
    each = max(each, each // walk.run * LEAST_RUN)
    grain = 1 + GRAIN // each
    if kind != TAKE or walk.mask != NULL:
        grain = walk.n
    elif walk.ndim and walk.y_step == walk.run:      # the rows of y are contiguous: keep them long
        threads = get_num_threads()
        grain = max(grain, (walk.n + threads - 1) // threads)
    return share(run, &job, walk.x, walk.n, grain, times(total, itemsize) < RELEASE_GIL)


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Moves the elements at positions [begin, end); with a mask these are always all of them."""
    cdef const Walk* walk = (<Job*>context).walk
    cdef mover loop = (<Job*>context).loop
    cdef Py_ssize_t offsets[CHUNK]
    cdef Py_ssize_t counter[MAX_NDIM]
    cdef Py_ssize_t done = begin, n, scanned = 0
    cdef char* x
    cdef char* y
    cdef int d
    while done < end:
        n = min(<Py_ssize_t>CHUNK, end - done)
        if walk.mask != NULL:
            scanned = true_offsets(walk.mask, scanned, walk.x_step, offsets, n)
        else:
            index_offsets(walk, done, n, offsets)
        x = walk.x
        y = walk.y + done * walk.y_step
        for d in range(walk.ndim):
            counter[d] = 0
        while True:
            loop(x, offsets, y, n, walk)
            d = walk.ndim - 1
            while d >= 0:
                x += walk.x_steps[d]
                y += walk.y_steps[d]
                counter[d] += 1
                if counter[d] < walk.dims[d]:
                    break
                x -= walk.dims[d] * walk.x_steps[d]
                y -= walk.dims[d] * walk.y_steps[d]
                counter[d] = 0
                d -= 1
            if d < 0:
                break
        done += n


cdef void index_offsets(const Walk* walk, Py_ssize_t begin, Py_ssize_t n,
                        Py_ssize_t* offsets) noexcept nogil:
    """offsets := sum over k of indices[k] * index_steps[k], or positions in order"""
    cdef Py_ssize_t i, step
    cdef const int64_t* index
    cdef int k
    if walk.n_indices == 0:
        for i in range(n):
            offsets[i] = (begin + i) * walk.x_step
        return
    index, step = walk.indices[0] + begin, walk.index_steps[0]
    for i in range(n):
        offsets[i] = index[i] * step
    for k in range(1, walk.n_indices):
        index, step = walk.indices[k] + begin, walk.index_steps[k]
        for i in range(n):
            offsets[i] += index[i] * step


cdef Py_ssize_t true_offsets(const char* mask, Py_ssize_t at, Py_ssize_t step,
                             Py_ssize_t* offsets, Py_ssize_t n) noexcept nogil:
    """Writes the byte offsets of the next n true bytes. Returns the place after the last one."""
    cdef Py_ssize_t found = 0
    while found < n:
        offsets[found] = at * step
        found += mask[at]      # no branch, as one that depends on a mask is hard to predict
        at += 1
    return at


# ---- whole tensors -------------------------------------------------------------------------------

cdef Tensor expanded(Tensor x, int ndim, const Py_ssize_t* dims):
    """A view of `x` broadcast to a shape, or None if it does not broadcast to it.

    Leading dims of size 1 that the shape lacks are dropped, as in an assignment.
    """
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, own
    for d in range(x.ndim_ - ndim):
        if x.dims[d] != 1:
            return None
    for d in range(ndim):
        own = d - ndim + x.ndim_
        if own < 0 or x.dims[own] == 1:
            steps[d] = 0
        elif x.dims[own] == dims[d]:
            steps[d] = x.steps[own]
        else:
            return None
    return new_view(x, ndim, dims, steps, x.data_pointer)


cdef int require_writable(Tensor x) except -1:
    """Raises: RuntimeError for a tensor over read-only memory."""
    if not x.storage.writable:
        raise RuntimeError(
            "setitem: the tensor shares read-only memory; write to x.clone() instead")
    return 0


# ---- the order of what is picked -----------------------------------------------------------------

cdef inline bint lies_within(Py_ssize_t a, Py_ssize_t b, Py_ssize_t size_a,
                             Py_ssize_t size_b) noexcept:
    """Whether a dim of step a must lie within one of step b. Step 0 says nothing about order."""
    return 0 < a < b or a == b > 0 and size_b > size_a


cdef void order_as_read(int ndim, const Py_ssize_t* dims, int first, int count,
                        Py_ssize_t* steps) noexcept:
    """PyTorch's insertion sort of dims by step, in which pairs without an order do not move: the
    dims of positions, whose step is 0, keep their order, and stay where they are beside others."""
    cdef int order[MAX_NDIM]             # from the innermost outwards
    cdef int d, k, at, a, b
    cdef Py_ssize_t span = 1
    for d in range(ndim):
        order[d] = ndim - 1 - d
    for d in range(1, ndim):
        at = d
        for k in range(d - 1, -1, -1):
            a, b = order[at], order[k]
            if lies_within(steps[a], steps[b], dims[a], dims[b]):
                order[at], order[k] = b, a
                at = k
            elif lies_within(steps[b], steps[a], 0, 0) or (
                    first <= min(a, b) and max(a, b) < first + count):
                break
    for d in range(ndim):
        steps[order[d]] = span
        span *= dims[order[d]]
