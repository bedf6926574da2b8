"""Gradients of weights in bfloat16 by planes of the input that are shifted, not copied.

Outside autograd.

The gradient of one element of the windows is the product of the gradient with the plane that the
windows see there. Of planes with zeros around them, split by the stride, that is a run: the same
plane from another place on, with what lies between the rows of windows, which meets zeros. So there
are no columns; the products read planes where they lie, of several images behind each other. Zeros
times an infinity would be NaN, and is left to the columns.
"""

from libc.stdint cimport int16_t
from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport BFLOAT16, FLOAT32
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.pair_products cimport (
    PAIRED_WIDTH, mix_rows, multiply_paired_panel, pack_paired_panel, round_results,
)
from tensorlib._core.products.panel_products cimport turn
from tensorlib._core.tiles.loops cimport find_transpose
from tensorlib._kernels.layers.windows cimport area, padded_side

cdef enum:
    LEAST_CHANNELS = 16      # that come in and out, half of a tile
    MOST_BETWEEN = 2         # times as many places as there are windows
    LEAST_PLACES = 32        # of all images, a step of the products
    PLANES = 1 << 20         # bytes of the planes of some images, half of L2
    DEPTH = 256              # places of a product: its panel and its rows are in L1
    ROWS = 32                # channels of a part of the work
    STEP = 32                # elements in a line of the caches
    INFINITE = 0x7F80        # bits


cdef bint shifted_fits(Shifted* s) noexcept:
    cdef const Window* w = &s.window
    cdef Py_ssize_t parts = times(times(w.stride[0], w.stride[1]), w.stride[2])
    s.area = times(times(padded_side(w, 0), padded_side(w, 1)), padded_side(w, 2))
    s.panels = (s.outs + PAIRED_WIDTH - 1) // PAIRED_WIDTH
    return (s.ins >= LEAST_CHANNELS and s.outs >= LEAST_CHANNELS and parts <= s.elements
            and s.area <= MOST_BETWEEN * s.places and s.images * s.places >= LEAST_PLACES)


cdef bint multiply_shifted(Shifted* s) except -1:
    cdef const Window* w = &s.window
    cdef Py_ssize_t parts = w.stride[0] * w.stride[1] * w.stride[2], lines, work
    cdef Py_ssize_t most, turns
    cdef size_t nbytes, packed_bytes, sum_bytes = 0
    lines = times(times(s.groups * s.ins, parts), s.area)
    most = max(<Py_ssize_t>1, PLANES // 2 // lines)
    turns = (s.images + most - 1) // most
    s.together = (s.images + turns - 1) // turns              # as many each time
    s.count = (s.together * s.area + STEP - 1) // STEP * STEP
    s.line = parts * s.together * s.area + tap_of(s, s.elements - 1) + STEP
    s.line = ((s.line + STEP - 1) // STEP | 1) * STEP        # an odd number of lines of the caches
    nbytes = times(s.groups * s.ins, s.line) * 2
    packed_bytes = times(s.groups * s.panels, s.count) * PAIRED_WIDTH * 2
    work = times(s.groups * s.panels, (s.ins + ROWS - 1) // ROWS)
    s.planes, s.packed, s.sums = take_scratch(nbytes), take_scratch(packed_bytes), NULL
    s.failed, s.infinite, s.first = s.planes == NULL or s.packed == NULL, False, 0
    if s.together < s.images:
        sum_bytes = times(work, block_size(s)) * sizeof(float)
        s.sums = take_scratch(sum_bytes)
        s.failed = s.failed or s.sums == NULL
    try:
        while s.first < s.images and not s.failed and not s.infinite:
            share(fill_planes, s, s.weight, s.groups * s.ins, 1 + (1 << 16) // s.line, False)
            share(mix_gradient if s.lanes else pack_gradient, s, s.weight, s.groups * s.panels, 1,
                  False)
            if not s.infinite and not s.failed:
                share(add_products, s, s.weight, work, 1, False)
            s.first += s.together
    finally:
        if s.planes != NULL:
            give_scratch(s.planes, nbytes)
        if s.packed != NULL:
            give_scratch(s.packed, packed_bytes)
        if s.sums != NULL:
            give_scratch(s.sums, sum_bytes)
    if s.failed:
        raise MemoryError("convolution: no memory for the planes of some images")
    return not s.infinite


cdef inline Py_ssize_t block_size(const Shifted* s) noexcept nogil:
    """Elements of the sums of a part of the work: (ROWS, elements of a window, PAIRED_WIDTH)"""
    return ROWS * s.elements * PAIRED_WIDTH


cdef inline Py_ssize_t tap_of(const Shifted* s, Py_ssize_t element) noexcept nogil:
    """Where the plane begins, among the parts of a channel, that an element of windows sees"""
    cdef const Window* w = &s.window
    cdef Py_ssize_t part = 0, at = 0, place
    cdef Py_ssize_t[3] index
    cdef int d
    index[2], place = element % w.kernel[2], element // w.kernel[2]
    index[1], index[0] = place % w.kernel[1], place // w.kernel[1]
    for d in range(3):
        place = index[d] * w.dilation[d]
        part = part * w.stride[d] + place % w.stride[d]
        at = at * padded_side(w, d) + place // w.stride[d]
    return part * s.together * s.area + at


cdef void fill_planes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The planes of channels [begin, end) of these images, with zeros around them, in parts"""
    cdef Shifted* s = <Shifted*>context
    cdef Py_ssize_t channel = begin, count = end - begin if s.lanes else 1, i
    cdef int16_t* line
    cdef int16_t worst = 0
    while channel < end:
        line = <int16_t*>s.planes + channel * s.line
        memset(line, 0, count * s.line * 2)
        fill_channels(s, channel, count, line)
        for i in range(count * s.line):
            worst = max(worst, <int16_t>(line[i] & 0x7FFF))
        channel += count
    if worst >= INFINITE:
        s.infinite = True


cdef inline void fill_channels(const Shifted* s, Py_ssize_t channel, Py_ssize_t count,
                               int16_t* line) noexcept nogil:
    """The planes of channels that lie beside each other, or of one, row by row of the images"""
    cdef const Window* w = &s.window
    cdef Py_ssize_t image, z, y, row, col, part, at, apart = s.groups * s.ins if s.lanes else 1
    cdef const int16_t* x
    for image in range(min(s.together, s.images - s.first)):
        x = <const int16_t*>s.x + (s.first + image) * s.groups * s.ins * s.plane + channel * (
            1 if s.lanes else s.plane)
        for z in range(w.size[0]):
            row = z + w.pad[0]
            if row // w.stride[0] >= padded_side(w, 0):
                break
            for y in range(w.size[1]):
                col = y + w.pad[1]
                if col // w.stride[1] >= padded_side(w, 1):
                    break
                part = row % w.stride[0] * w.stride[1] + col % w.stride[1]
                at = (image * padded_side(w, 0) + row // w.stride[0]) * padded_side(w, 1)
                at = (at + col // w.stride[1]) * padded_side(w, 2)
                split_row(s, x + (z * w.size[1] + y) * w.size[2] * apart,
                          line + part * w.stride[2] * s.together * s.area + at, count)


cdef inline void split_row(const Shifted* s, const int16_t* x, int16_t* y,
                           Py_ssize_t channels) noexcept nogil:
    """A row of so many channels by its elements modulo the stride, into parts that lie apart"""
    cdef const Window* w = &s.window
    cdef Py_ssize_t step = w.stride[2], side = padded_side(w, 2), rest, first, count
    cdef Py_ssize_t apart = s.groups * s.ins if s.lanes else 1
    for rest in range(step):
        first = (rest + step - w.pad[2] % step) % step        # of the row, that goes there
        if first >= w.size[2]:
            continue
        count = min((w.size[2] - first + step - 1) // step, side - (first + w.pad[2]) // step)
        take_steps(s, x + first * apart, y + (first + w.pad[2]) // step, max(<Py_ssize_t>0, count),
                   step, channels)
        y += s.together * s.area


cdef inline void take_steps(const Shifted* s, const int16_t* x, int16_t* y, Py_ssize_t n,
                            Py_ssize_t step, Py_ssize_t channels) noexcept nogil:
    """y := every step-th of the elements of a row; channels become lines"""
    cdef Py_ssize_t i
    if s.lanes:
        find_transpose(BFLOAT16)(x, s.groups * s.ins * step * 2, y, s.line * 2, channels, n)
    elif step == 1:
        memcpy(y, x, n * 2)
    elif step == 2:                          # a constant step is vectorised
        for i in range(n):
            y[i] = x[2 * i]
    else:
        for i in range(n):
            y[i] = x[i * step]


cdef void pack_gradient(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Panels [begin, end) of the gradient, with zeros where no window begins"""
    cdef Shifted* s = <Shifted*>context
    cdef const Window* w = &s.window
    cdef Py_ssize_t part, out, outs, row, image, i, j, run = w.out[2] * 2
    cdef Py_ssize_t images = min(s.together, s.images - s.first)
    cdef size_t nbytes = PAIRED_WIDTH * (s.count + STEP) * 2
    cdef char* rows = take_scratch(nbytes)      # STEP: they do not meet in the same line
    cdef char* to
    cdef const char* g
    if rows == NULL:
        s.failed = True
        return
    memset(rows, 0, nbytes)
    for part in range(begin, end):
        out = part % s.panels * PAIRED_WIDTH
        outs = min(<Py_ssize_t>PAIRED_WIDTH, s.outs - out)
        for row in range(outs):
            for image in range(images):
                g = s.g + (((s.first + image) * s.groups + part // s.panels) * s.outs + out
                           + row) * s.places * 2
                to = rows + (row * (s.count + STEP) + image * s.area) * 2
                for i in range(w.out[0]):
                    for j in range(w.out[1]):
                        memcpy(to + (i * padded_side(w, 1) + j) * padded_side(w, 2) * 2, g, run)
                        g += run
        pack_paired_panel(rows, 1, s.count + STEP, s.packed + part * s.count * PAIRED_WIDTH * 2,
                          s.count, outs)
    give_scratch(rows, nbytes)


cdef void mix_gradient(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The same where channels lie beside each other: of each two places a row of pairs"""
    cdef Shifted* s = <Shifted*>context
    cdef const Window* w = &s.window
    cdef Py_ssize_t part, outs, image, i, j, k, at, apart = s.groups * s.outs * 2
    cdef size_t nbytes = s.count * sizeof(void*), panel = s.count * PAIRED_WIDTH * 2
    cdef const char** rows = <const char**>take_scratch(nbytes)      # of all places
    cdef char[PAIRED_WIDTH * 2] nothing
    cdef const char* g
    cdef char* to
    if rows == NULL:
        s.failed = True
        return
    memset(nothing, 0, sizeof(nothing))
    for part in range(begin, end):
        outs = part % s.panels * PAIRED_WIDTH
        g = s.g + (part // s.panels * s.outs + outs) * 2 + s.first * s.places * apart
        outs = min(<Py_ssize_t>PAIRED_WIDTH, s.outs - outs)
        for i in range(s.count):
            rows[i] = nothing
        for image in range(min(s.together, s.images - s.first)):
            for i in range(w.out[0]):
                for j in range(w.out[1]):
                    at = ((image * padded_side(w, 0) + i) * padded_side(w, 1) + j
                          ) * padded_side(w, 2)
                    for k in range(w.out[2]):
                        rows[at + k] = g
                        g += apart
        to = s.packed + part * panel
        if outs < PAIRED_WIDTH:
            memset(to, 0, panel)
        for i in range(0, s.count, 2):
            mix_rows(rows[i], rows[i + 1], to, outs)
            to += PAIRED_WIDTH * 4
    give_scratch(<char*>rows, nbytes)


cdef void add_products(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The gradients for some channels that come in and out each; rounded with the last images"""
    cdef Shifted* s = <Shifted*>context
    cdef Py_ssize_t blocks = (s.ins + ROWS - 1) // ROWS, row = s.elements * PAIRED_WIDTH
    cdef Py_ssize_t part, panel, channel, channels, out, outs, element, l, depth
    cdef Py_ssize_t used = (min(s.together, s.images - s.first) * s.area + STEP - 1) // STEP * STEP
    cdef size_t nbytes = (2 if s.sums == NULL else 1) * block_size(s) * sizeof(float)
    cdef char* turned = take_scratch(nbytes)
    cdef char* sums = turned + block_size(s) * sizeof(float)
    cdef const char* x
    cdef const char* g
    if turned == NULL:
        s.failed = True
        return
    for part in range(begin, end):
        panel, channel = part // blocks, part % blocks * ROWS
        out = panel % s.panels * PAIRED_WIDTH
        channels = min(<Py_ssize_t>ROWS, s.ins - channel)
        outs = min(<Py_ssize_t>PAIRED_WIDTH, s.outs - out)
        if s.sums != NULL:
            sums = s.sums + part * block_size(s) * sizeof(float)
        x = s.planes + (panel // s.panels * s.ins + channel) * s.line * 2
        g = s.packed + panel * s.count * PAIRED_WIDTH * 2
        l = 0
        while l < used:
            depth = min(<Py_ssize_t>DEPTH, used - l)
            for element in range(s.elements):
                multiply_paired_panel(
                    x + (tap_of(s, element) + l) * 2, s.line, g + l * PAIRED_WIDTH * 2,
                    sums + element * PAIRED_WIDTH * sizeof(float), row, channels, depth,
                    PAIRED_WIDTH, s.first > 0 or l > 0)
            l += depth
        if s.first + s.together >= s.images:
            finish(s, sums, turned, panel // s.panels * s.outs + out, channel, channels, outs)
    give_scratch(turned, nbytes)


cdef inline void finish(const Shifted* s, const char* sums, char* turned, Py_ssize_t out,
                        Py_ssize_t channel, Py_ssize_t channels, Py_ssize_t outs) noexcept nogil:
    """The sums of these channels, rounded and put where they lie in the weight"""
    cdef Py_ssize_t n = channels * s.elements, i
    turn(FLOAT32, sums, PAIRED_WIDTH, turned, n, n, outs)
    for i in range(outs):
        round_results(turned + i * n * sizeof(float),
                      s.weight + ((out + i) * s.ins + channel) * s.elements * 2, n)
