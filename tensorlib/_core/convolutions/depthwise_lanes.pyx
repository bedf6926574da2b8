"""Depthwise convolutions of channels-last images: the channels of a place are a vector, which is
multiplied by a vector of the weight.

Outside autograd. Nothing is copied, and the elements of windows (taps) outside of an image are left
out. So a row of places is cut into segments in which all windows have the same taps: mostly one
for each place near the ends, and one between them. In the adjoint for the input with a stride of s,
every s-th place has the same taps.
"""

from libc.string cimport memset

from tensorlib._core.base.dtypes cimport FLOAT32
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport run_once
from tensorlib._core.convolutions.depthwise cimport (
    ADJOINT_OF_INPUT, ADJOINT_OF_WEIGHT, all_finite,
)
from tensorlib._core.convolutions.strips cimport area
from tensorlib._kernels.layers.windows cimport Window

cdef enum:
    PIECE = 1 << 18      # products in a piece of work
    LANES = 16           # elements of a vector, at most
    BLOCK = 64           # channels whose gradients of the weight are computed together
    LEAF = 256           # places that are summed in float32; their sums are added in double
    HEAD = 3             # numbers of a segment: its first place, its places, its taps

ctypedef void (*products_fn)(const char* x, Py_ssize_t x_step, const Py_ssize_t* taps,
                             const char* w, const Py_ssize_t* order, Py_ssize_t n_taps, char* y,
                             Py_ssize_t y_step, Py_ssize_t places,
                             Py_ssize_t channels) noexcept nogil
ctypedef void (*dots_fn)(const char* g, const char* x, Py_ssize_t x_step, const Py_ssize_t* taps,
                         const Py_ssize_t* order, Py_ssize_t n_taps, float* totals,
                         Py_ssize_t g_step, Py_ssize_t places, Py_ssize_t channels) noexcept nogil

ctypedef struct Sums:
    double* totals
    float* leaf
    Py_ssize_t n, seen

cdef products_fn products = <products_fn>find_function("depthwise", "lane_products", "float32")
cdef dots_fn dots = <dots_fn>find_function("depthwise", "lane_dots", "float32")


cdef bint lanes_fit(int dtype, Py_ssize_t channels) noexcept:
    return dtype == FLOAT32 and channels >= LANES


# ---- places --------------------------------------------------------------------------------------

cdef inline bint is_back(const Lanes* d) noexcept nogil:
    return d.kind == ADJOINT_OF_INPUT


cdef inline const Py_ssize_t* given(const Lanes* d) noexcept nogil:
    """The sizes of the images that are read."""
    return &d.window.out[0] if is_back(d) else &d.window.size[0]


cdef inline const Py_ssize_t* wanted(const Lanes* d) noexcept nogil:
    """The sizes of what is computed; for the gradient of the weight those of `g`."""
    return &d.window.size[0] if is_back(d) else &d.window.out[0]


cdef inline Py_ssize_t place(const Lanes* d, int dim, Py_ssize_t at, Py_ssize_t tap) noexcept nogil:
    """The place along a dim that a tap of the window at `at` reads; -1 if it is outside."""
    cdef const Window* w = d.window
    if is_back(d):
        at += w.pad[dim] - tap * w.dilation[dim]
        if at < 0 or at % w.stride[dim]:
            return -1
        at //= w.stride[dim]
        return at if at < w.out[dim] else -1
    at = at * w.stride[dim] - w.pad[dim] + tap * w.dilation[dim]
    return at if 0 <= at < w.size[dim] else -1


cdef inline Py_ssize_t phases(const Lanes* d) noexcept nogil:
    """The distance to the next place that has the same taps."""
    return d.window.stride[2] if is_back(d) else 1


cdef void plan_row(Lanes* d) noexcept nogil:
    """d.plan := for each segment of a row HEAD numbers, and then for each of its taps the index of
    the tap and the first place that it reads"""
    cdef Py_ssize_t phase, at, tap, n, met
    cdef Py_ssize_t move = 1 if is_back(d) else d.window.stride[2]
    cdef Py_ssize_t* now = d.plan
    cdef Py_ssize_t* before
    cdef bint same
    d.segments = 0
    for phase in range(phases(d)):
        before = NULL
        at = phase
        while at < wanted(d)[2]:
            n = 0
            same = before != NULL
            for tap in range(d.window.kernel[2]):
                met = place(d, 2, at, tap)
                if met < 0:
                    continue
                same = same and n < before[2] and before[HEAD + 2 * n] == tap and (
                    before[HEAD + 2 * n + 1] + before[1] * move == met)
                now[HEAD + 2 * n], now[HEAD + 2 * n + 1] = tap, met
                n += 1
            if same and n == before[2]:
                before[1] += 1
            else:
                now[0], now[1], now[2] = at, 1, n
                before = now
                now += HEAD + 2 * n
                d.segments += 1
            at += phases(d)


cdef Py_ssize_t row_taps(const Lanes* d, Py_ssize_t i, Py_ssize_t j,
                         Py_ssize_t* rows) noexcept nogil:
    """rows := where each row of taps that is inside the image begins, in what is read and in the
    weight, for one row of places. Returns their number."""
    cdef const Window* w = d.window
    cdef Py_ssize_t a, b, deep, high, n = 0
    for a in range(w.kernel[0]):
        deep = place(d, 0, i, a)
        for b in range(w.kernel[1] if deep >= 0 else 0):
            high = place(d, 1, j, b)
            if high >= 0:
                rows[2 * n] = (deep * given(d)[1] + high) * given(d)[2]
                rows[2 * n + 1] = (a * w.kernel[1] + b) * w.kernel[2]
                n += 1
    return n


cdef void end_leaf(Sums* sums) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(sums.n):
        sums.totals[i] += sums.leaf[i]
        sums.leaf[i] = 0
    sums.seen = 0


cdef void add_places(Sums* sums, const char* g, Py_ssize_t g_step, const char* x,
                     Py_ssize_t x_step, const Py_ssize_t* taps, const Py_ssize_t* order,
                     Py_ssize_t n_taps, Py_ssize_t places, Py_ssize_t channels) noexcept nogil:
    cdef Py_ssize_t here
    while places > 0:
        here = min(places, <Py_ssize_t>LEAF)
        dots(g, x, x_step, taps, order, n_taps, sums.leaf, g_step, here, channels)
        sums.seen += here
        if sums.seen >= LEAF:
            end_leaf(sums)
        g += here * g_step * 4
        x += here * x_step * 4
        places -= here


cdef void run_row(const Lanes* d, Py_ssize_t row, Py_ssize_t first, Py_ssize_t channels,
                  Py_ssize_t* room, Sums* sums) noexcept nogil:
    """Computes one row of places of an image, for some channels."""
    cdef const Py_ssize_t* to = wanted(d)
    cdef Py_ssize_t image = row // (to[0] * to[1]), n, i, k, count, all = d.channels
    cdef Py_ssize_t* rows = room
    cdef Py_ssize_t* taps = room + 2 * d.taps
    cdef Py_ssize_t* order = taps + d.taps
    cdef const Py_ssize_t* part = d.plan
    cdef Py_ssize_t x_step = all * (1 if is_back(d) else d.window.stride[2])
    cdef Py_ssize_t n_rows = row_taps(d, row // to[1] % to[0], row % to[1], rows), segment
    cdef char* x = d.g if is_back(d) else d.x
    cdef char* y = d.x if is_back(d) else d.g
    x += (image * area(given(d)) * all + first) * 4
    y += (row * to[2] * all + first) * 4
    for segment in range(d.segments):
        n = part[2]
        count = 0
        for i in range(n_rows):
            for k in range(n):
                taps[count] = (rows[2 * i] + part[HEAD + 2 * k + 1]) * all
                order[count] = (rows[2 * i + 1] + part[HEAD + 2 * k]) * channels
                count += 1
        if sums != NULL:
            add_places(sums, y + part[0] * all * 4, all, x, x_step, taps, order, count, part[1],
                       channels)
        else:
            products(x, x_step, taps, d.weight, order, count, y + part[0] * all * 4,
                     all * phases(d), part[1], channels)
        part += HEAD + 2 * n


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the rows [begin, end) of the places of all images."""
    cdef Lanes* d = <Lanes*>context
    cdef size_t nbytes = 4 * d.taps * sizeof(Py_ssize_t)
    cdef Py_ssize_t* room = <Py_ssize_t*>take_scratch(nbytes)
    cdef Py_ssize_t row
    if room == NULL:
        d.failed = True
        return
    for row in range(begin, end):
        run_row(d, row, 0, d.channels, room, NULL)
    give_scratch(<char*>room, nbytes)


cdef void run_blocks(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the gradients of the weight for the blocks [begin, end) of channels, from all images
    in order."""
    cdef Lanes* d = <Lanes*>context
    cdef Py_ssize_t most = (d.channels + d.blocks - 1) // d.blocks, block, row, first, channels
    cdef Py_ssize_t rows = d.images * d.window.out[0] * d.window.out[1], tap, c, at
    cdef size_t numbers = d.taps * most * (sizeof(double) + sizeof(float))
    cdef size_t steps = 4 * d.taps * sizeof(Py_ssize_t), nbytes = steps + numbers
    cdef char* room = take_scratch(nbytes)
    cdef Sums sums
    if room == NULL:
        d.failed = True
        return
    for block in range(begin, end):
        first = block * d.channels // d.blocks
        channels = (block + 1) * d.channels // d.blocks - first
        memset(room + steps, 0, numbers)
        sums.n, sums.seen, sums.totals = d.taps * channels, 0, <double*>(room + steps)
        sums.leaf = <float*>(sums.totals + sums.n)
        for row in range(rows):
            run_row(d, row, first, channels, <Py_ssize_t*>room, &sums)
        end_leaf(&sums)
        for tap in range(d.taps):
            at = tap * d.channels + first
            for c in range(channels):
                (<float*>d.weight)[at + c] = <float>sums.totals[tap * channels + c]
    give_scratch(room, nbytes)


cdef void run_pass(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes all rows or blocks, unless padding would be multiplied by something that is not
    finite."""
    cdef Lanes* d = <Lanes*>context
    cdef Py_ssize_t rows = d.images * wanted(d)[0] * wanted(d)[1]
    cdef Py_ssize_t cost = times(times(d.taps, wanted(d)[2]), d.channels)
    cdef size_t nbytes = (wanted(d)[2] * (HEAD + 2 * d.window.kernel[2])) * sizeof(Py_ssize_t)
    if not is_back(d) and d.kind != ADJOINT_OF_WEIGHT and (
            not all_finite(d.weight, d.taps * d.channels, 4)):
        d.infinite = True
        return
    d.plan = <Py_ssize_t*>take_scratch(nbytes)
    if d.plan == NULL:
        d.failed = True
        return
    plan_row(d)
    if d.kind == ADJOINT_OF_WEIGHT:
        d.blocks = max(<Py_ssize_t>1, d.channels // BLOCK)
        parallel_for(run_blocks, d, d.blocks,
                     1 + PIECE * d.blocks // max(<Py_ssize_t>1, times(cost, rows)))
        d.infinite = not all_finite(d.weight, d.taps * d.channels, 4)
    else:
        parallel_for(run_rows, d, rows, 1 + PIECE // max(<Py_ssize_t>1, cost))
    give_scratch(<char*>d.plan, nbytes)


cdef bint depthwise_lanes(Lanes* d) except -1:
    d.failed = d.infinite = False
    d.taps = area(d.window.kernel)
    run_once(run_pass, d, d.weight, False)
    if d.failed:
        raise MemoryError("convolution: no memory for the taps of a row")
    return not d.infinite
