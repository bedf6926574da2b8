"""Direct convolutions: products of the windows of an image with weights, without im2col.

The elements of all windows have the same offsets (taps) from the first element of their window. So
a window is given by the position of its first element, and six windows at a time are multiplied by
a panel of the weight (`_kernels/products/panel_product.h`). Windows that extend beyond the
image are taken from a copy of it that is padded with zeros.

Where windows are next to each other, one tap of all windows of a row is a contiguous run of the
image. These runs are the rows of a matrix by which the weight is multiplied, and nothing is copied
or transposed: 3 to 32 channels of 32 x 32 took 30 us by columns, and take 18. With a stride, the
columns of a copy of the image are put in such an order that these runs are contiguous, too.

In bfloat16 an element is a pair of channels, and the pairs of a place lie beside each other in the
copy: so a row of a window is one run, which is copied faster than its elements.
"""

from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport BFLOAT16
from tensorlib._core.base.shape cimport times
from tensorlib._core.products.pair_products cimport mix_rows, round_results
from tensorlib._core.products.panel_products cimport (
    multiply_runs, multiply_windows, shortest_run, turn,
)
from tensorlib._core.tiles.loops cimport find_gather
from tensorlib._kernels.layers.windows cimport Window

cdef enum:
    PLACES = 240         # windows whose results are transposed together: a multiple of those that
    TOGETHER = 16        # are multiplied at once (`tile_product.h`) and mostly lie in a row
    LEAST_OUTS = 8       # with fewer, most of a panel is zeros
    LEAST_TAPS = 100     # with fewer, transposing the result takes longer than making columns
    WIDE_KERNEL = 5      # columns of windows from which on runs are faster for many taps,
    MOST_RUNS = 256      # if these are not more
    LEAST_PAIRS = 16     # channel pairs of a place that are copied at once: fewer taps will do then


cdef inline Py_ssize_t reach(const Window* w, int d) noexcept nogil:
    """How many elements lie between the first and the last that windows see in a dim."""
    return (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1


cdef inline bint inside(const Window* w) noexcept nogil:
    cdef int d
    for d in range(3):
        if w.pad[d] != 0 or reach(w, d) > w.size[d]:
            return False
    return True


cdef bint direct_fits(Direct* d, const Window* w) noexcept nogil:
    """Whether this is faster than columns, whose elements can be counted in a Py_ssize_t. Sets
    `copies`, for these windows and for any strip of them."""
    cdef Py_ssize_t places = w.out[0] * w.out[1] * w.out[2], area = 1
    cdef int i
    for i in range(3):
        area = times(area, reach(w, i))
    d.copies = d.paired > 0 and not d.lanes or not inside(w)
    return (d.outs >= LEAST_OUTS and (
                d.lanes or d.taps * (2 if d.paired else 1) >= LEAST_TAPS
                or d.paired and d.ins >= LEAST_PAIRS and d.taps > d.ins)
            and (not d.copies or times(d.ins, area) <= d.taps * places))


cdef size_t direct_room(const Direct* d, const Window* w) noexcept nogil:
    """The bytes of scratch memory that `direct` needs."""
    cdef size_t copy = d.ins * reach(w, 0) * reach(w, 1) * reach(w, 2) if d.copies else 0
    if d.paired and not d.lanes:
        copy += d.ins * w.size[2]        # a row of all pairs
    return d.taps * sizeof(Py_ssize_t) + (result_room(d) + copy) * d.itemsize


cdef inline Py_ssize_t result_room(const Direct* d) noexcept nogil:
    """Elements for the results of some windows, and for these turned before they are rounded"""
    return PLACES * d.outs * (2 if d.rounds else 1)


cdef inline bint beside(const Direct* d) noexcept nogil:
    """Whether the elements of a place lie beside each other where windows are multiplied"""
    return d.lanes or d.paired > 0


cdef inline void set_steps(const Direct* d, Py_ssize_t high, Py_ssize_t wide,
                           Py_ssize_t* step) noexcept nogil:
    """step := elements to the next plane of planes, row and column"""
    step[2] = d.ins if beside(d) else 1
    step[1] = wide * step[2]
    step[0] = high * step[1]


cdef void direct(const Direct* d, const Window* w, const char* x, const char* panels, char* y,
                 Py_ssize_t y_plane, char* scratch) noexcept nogil:
    """y (outs, y_plane) := the weight (outs, taps) @ the columns of x. The weight's transpose is
    packed in `panels`.

    y_plane: elements from one plane of the result to the next. For lanes, y is transposed.
    """
    cdef Py_ssize_t* taps = <Py_ssize_t*>scratch
    cdef char* rows = scratch + d.taps * sizeof(Py_ssize_t)
    cdef Py_ssize_t[PLACES] places
    cdef Py_ssize_t[3] step
    cdef Py_ssize_t plane = w.apart, i, j, k, count = 0, first = 0
    cdef Py_ssize_t all = w.out[0] * w.out[1] * w.out[2], parts = (all + PLACES - 1) // PLACES
    cdef Py_ssize_t most = (all + parts - 1) // max(<Py_ssize_t>1, parts)    # of nearly one size,
    most = (most + TOGETHER - 1) // TOGETHER * TOGETHER
    set_steps(d, w.size[1], w.size[2], step)
    if d.copies:
        x = (with_pairs if d.paired and not d.lanes else with_zeros)(
            d, w, x, rows + result_room(d) * d.itemsize)
        set_steps(d, reach(w, 1), reach(w, 2), step)
        plane = reach(w, 0) * step[0]
    find_taps(d, w, plane, step, taps)
    for i in range(w.out[0]):
        for j in range(w.out[1]):
            for k in range(w.out[2]):
                places[count] = (i * w.stride[0] * step[0] + j * w.stride[1] * step[1]
                                 + k * w.stride[2] * step[2])
                count += 1
                if count == most:
                    multiply(d, x, places, taps, panels, rows, y, y_plane, first, count)
                    first += count
                    count = 0
    multiply(d, x, places, taps, panels, rows, y, y_plane, first, count)


cdef inline void multiply(const Direct* d, const char* x, const Py_ssize_t* places,
                          const Py_ssize_t* taps, const char* panels, char* rows, char* y,
                          Py_ssize_t y_plane, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    """y[:, first:first + count] := the products of the windows at these places"""
    cdef char* turned = rows + count * d.outs * d.itemsize
    cdef Py_ssize_t out
    if d.lanes and not d.rounds:
        rows = y + first * d.outs * d.itemsize
    multiply_windows(BFLOAT16 if d.paired else d.dtype, x, places, taps, panels, rows, count,
                     d.taps, d.outs)
    if d.lanes and d.rounds:
        round_results(rows, y + first * d.outs * 2, count * d.outs)
    elif d.rounds:
        turn(d.dtype, rows, d.outs, turned, count, count, d.outs)
        for out in range(d.outs):
            round_results(turned + out * count * d.itemsize, y + (out * y_plane + first) * 2, count)
    elif not d.lanes:
        turn(d.dtype, rows, d.outs, y + first * d.itemsize, y_plane, count, d.outs)


cdef void find_taps(const Direct* d, const Window* w, Py_ssize_t plane, const Py_ssize_t* step,
                    Py_ssize_t* taps) noexcept nogil:
    """taps := the offset of each element of a window from its first one, in elements"""
    cdef Py_ssize_t p, i, j, k, lane, lanes = step[2]
    for p in range(1 if beside(d) else d.ins):
        for i in range(w.kernel[0]):
            for j in range(w.kernel[1]):
                for k in range(w.kernel[2]):
                    for lane in range(lanes):
                        taps[lane] = (p * plane + i * w.dilation[0] * step[0] + lane
                                      + j * w.dilation[1] * step[1] + k * w.dilation[2] * lanes)
                    taps += lanes


cdef const char* with_zeros(const Direct* d, const Window* w, const char* x,
                            char* y) noexcept nogil:
    """y := a copy of what windows see of x, padded with zeros"""
    cdef Py_ssize_t deep = reach(w, 0), high = reach(w, 1), wide = reach(w, 2), p, i, j, from_row
    cdef Py_ssize_t run = max(<Py_ssize_t>0, min(w.size[2], wide - w.pad[2]))
    cdef Py_ssize_t low = max(<Py_ssize_t>0, min(w.size[1], high - w.pad[1]))
    cdef Py_ssize_t size = d.itemsize * (d.ins if d.lanes else 1)
    cdef char* to
    memset(y, 0, d.ins * deep * high * wide * d.itemsize)
    for p in range(1 if d.lanes else d.ins):
        for i in range(max(<Py_ssize_t>0, min(w.size[0], deep - w.pad[0]))):
            to = y + (((p * deep + i + w.pad[0]) * high + w.pad[1]) * wide + w.pad[2]) * size
            for j in range(low):
                from_row = (i * w.size[1] + j) * w.size[2]
                memcpy(to + j * wide * size, x + (p * w.apart + from_row) * size, run * size)
    return y


cdef const char* with_pairs(const Direct* d, const Window* w, const char* x,
                            char* y) noexcept nogil:
    """The same of channels in pairs, which are planes in x and lie beside each other in y"""
    cdef Py_ssize_t deep = reach(w, 0), high = reach(w, 1), wide = reach(w, 2), p, i, j
    cdef Py_ssize_t run = max(<Py_ssize_t>0, min(w.size[2], wide - w.pad[2]))
    cdef Py_ssize_t low = max(<Py_ssize_t>0, min(w.size[1], high - w.pad[1]))
    cdef Py_ssize_t size = d.itemsize * d.ins
    cdef char* row = y + deep * high * wide * size
    cdef const char* source
    memset(y, 0, deep * high * wide * size)
    for i in range(max(<Py_ssize_t>0, min(w.size[0], deep - w.pad[0]))):
        for j in range(low):
            for p in range(d.ins):
                source = x + (2 * p * w.apart + (i * w.size[1] + j) * w.size[2]) * 2
                mix_rows(source, NULL if 2 * p + 1 == d.paired else source + w.apart * 2,
                         row + p * run * d.itemsize, run)
            turn(d.dtype, row, run,
                 y + (((i + w.pad[0]) * high + j + w.pad[1]) * wide + w.pad[2]) * size, d.ins,
                 d.ins, run)
    return y


# ---- rows of neighbouring windows ----------------------------------------------------------------

cdef bint runs_fit(Direct* d, const Window* w) noexcept nogil:
    """Whether runs are faster than columns or windows. For that, rows must nearly fill vectors, and
    many taps may have few output channels only, or be of wide windows. Sets `copies`."""
    cdef Py_ssize_t lanes = shortest_run(d.dtype), run = w.out[2]
    cdef Py_ssize_t filled = (run + lanes - 1) // lanes * lanes
    d.copies = not inside(w) or w.stride[2] > 1
    if run < lanes or run * 4 < filled * 3 or w.stride[2] > 1 and w.kernel[2] < WIDE_KERNEL:
        return False
    return (d.taps < LEAST_TAPS or d.outs < lanes or w.kernel[2] >= WIDE_KERNEL
            and d.taps <= MOST_RUNS and run * 16 >= filled * 15)


cdef inline Py_ssize_t row_of_runs(const Window* w) noexcept nogil:
    """Elements in a row of a copy in which columns that are a stride apart are neighbours"""
    return (reach(w, 2) + w.stride[2] - 1) // w.stride[2] * w.stride[2]


cdef size_t room_of_runs(const Direct* d, const Window* w) noexcept nogil:
    """The bytes of scratch memory that `by_runs` needs."""
    cdef size_t copy = d.ins * reach(w, 0) * reach(w, 1) * row_of_runs(w) if d.copies else 0
    if w.stride[2] > 1:
        copy += row_of_runs(w)
    return d.taps * sizeof(Py_ssize_t) + copy * d.itemsize


cdef void by_runs(const Direct* d, const Window* w, const char* x, const char* weight, char* y,
                  Py_ssize_t y_plane, char* scratch) noexcept nogil:
    """y (outs, y_plane) := the weight (outs, taps) @ the columns of x, row by row of the result

    y_plane: elements from one plane of the result to the next.
    """
    cdef Py_ssize_t* taps = <Py_ssize_t*>scratch
    cdef char* copy = scratch + d.taps * sizeof(Py_ssize_t)
    cdef Py_ssize_t[3] step
    cdef Py_ssize_t plane = w.apart, i, j, first
    step = [w.size[1] * w.size[2], w.size[2], 1]
    if d.copies:
        x = with_zeros(d, w, x, copy) if w.stride[2] == 1 else in_strides(d, w, x, copy)
        step = [reach(w, 1) * row_of_runs(w), row_of_runs(w), 1]
        plane = reach(w, 0) * step[0]
    find_taps(d, w, plane, step, taps)
    if w.stride[2] > 1:
        for i in range(d.taps):
            first = i % w.kernel[2] * w.dilation[2]
            taps[i] += place_in_strides(w, first) - first
    for i in range(w.out[0]):
        for j in range(w.out[1]):
            first = i * w.stride[0] * step[0] + j * w.stride[1] * step[1]
            multiply_runs(d.dtype, x + first * d.itemsize, taps, weight, y, y_plane, d.outs,
                          d.taps, w.out[2])
            y += w.out[2] * d.itemsize


cdef inline Py_ssize_t place_in_strides(const Window* w, Py_ssize_t column) noexcept nogil:
    """Where a column is in a row of the copy of `in_strides`"""
    cdef Py_ssize_t apart = w.stride[2]
    return column % apart * (row_of_runs(w) // apart) + column // apart


cdef const char* in_strides(const Direct* d, const Window* w, const char* x,
                            char* y) noexcept nogil:
    """y := a copy of what windows see of x, padded with zeros; in each row first the columns 0,
    stride, 2 * stride and so on, then 1, 1 + stride and so on"""
    cdef Py_ssize_t deep = reach(w, 0), high = reach(w, 1), wide = row_of_runs(w), p, i, j, first
    cdef Py_ssize_t run = max(<Py_ssize_t>0, min(w.size[2], reach(w, 2) - w.pad[2]))
    cdef Py_ssize_t low = max(<Py_ssize_t>0, min(w.size[1], high - w.pad[1]))
    cdef Py_ssize_t apart = w.stride[2], each = wide // apart
    cdef char* padded = y + d.ins * deep * high * wide * d.itemsize       # one row in order
    cdef char* to
    memset(y, 0, d.ins * deep * high * wide * d.itemsize)
    memset(padded, 0, wide * d.itemsize)
    for p in range(d.ins):
        for i in range(max(<Py_ssize_t>0, min(w.size[0], deep - w.pad[0]))):
            for j in range(low):
                memcpy(padded + w.pad[2] * d.itemsize,
                       x + (p * w.apart + (i * w.size[1] + j) * w.size[2]) * d.itemsize,
                       run * d.itemsize)
                to = y + ((p * deep + i + w.pad[0]) * high + j + w.pad[1]) * wide * d.itemsize
                for first in range(apart):
                    find_gather(d.dtype)(padded + first * d.itemsize, apart * d.itemsize,
                                         to + first * each * d.itemsize, each)
    return y
