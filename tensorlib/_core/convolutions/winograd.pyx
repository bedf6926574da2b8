"""Winograd's convolutions: windows of 3 x 3 with fewer multiplications.

Outside autograd. The transforms are kernels (`_kernels/layers/winograd.h`). A block of a few rows
of tiles is processed at a time, maybe from several small images, so that the 16 matrices of its
windows stay in the caches: it is transposed to channels-last and transformed, multiplied by the
transformed weight in panels, and transformed back. The bits of a result do not depend on the other
images of the batch, except that very few small images are computed by another algorithm.

An output needs 4 multiplications per channel, and not 9. Its error is about that of one chain of
sums (docs/accuracy.md), but relative to the largest element of its window. If a result is not
finite, because the input is infinite or near the largest number, the whole result is discarded, and
the caller computes the convolution by another algorithm.
"""

from libc.string cimport memset

from tensorlib._core.base.blocks cimport copy_blocks
from tensorlib._core.base.dtypes cimport FLOAT32
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.products.panel_products cimport (
    add_panels, multiply_panels, panels_size, turn,
)

from tensorlib._core.base.pool import get_num_threads

cdef extern from "layers/winograd.h" nogil:
    ctypedef struct WinogradTiles:
        Py_ssize_t size[2]
        Py_ssize_t pad[2]
        Py_ssize_t out[2]
        Py_ssize_t first, rows, channels, step

cdef enum:
    LANES = 16           # channels are padded to a multiple of it
    MATRICES = 16
    LINE = 16            # elements of padding: matrices a power of two apart would share L1 sets
    LEAST = 16           # channels; with fewer, the transforms take longer than they save
    BYTES = 1 << 19      # of the matrices of a block, unless that leaves too few tiles
    MOST = 1 << 25       # bytes of the matrices of one row of tiles
    # The least numbers of tiles of all images: for a gradient of the weight, for other passes, and
    # for weights with so many pairs of channels. With fewer, transforming the weight does not pay.
    FEW = 16
    SOME = 32
    MANY = 48
    LARGE = 1 << 18
    LEAST_TILES = 96     # of a block; with fewer, reading the weight takes longer than the products
    ROWS = 6             # of a matrix that are multiplied by a panel at once
    BAND = 16            # rows of the 16 matrices of the weight that are packed together
    SLICE = 64           # input channels whose gradients of the weight stay in the caches together
    DEPTH = 128          # channels of one chain of additions: the error grows with its length

ctypedef void (*input_fn)(const char* x, const char* zeros, char* v,
                          const WinogradTiles* t) noexcept nogil
ctypedef void (*output_fn)(const char* m, char* y, const WinogradTiles* t) noexcept nogil
ctypedef void (*gradient_fn)(const char* y, const char* zeros, char* p, const WinogradTiles* t,
                             Py_ssize_t all, Py_ssize_t done) noexcept nogil
ctypedef void (*filter_fn)(const char* w, Py_ssize_t tap, char* p, Py_ssize_t n, Py_ssize_t outs,
                           Py_ssize_t depth, Py_ssize_t done, Py_ssize_t step) noexcept nogil
ctypedef void (*back_fn)(const char* u, char* w, Py_ssize_t n, Py_ssize_t outs) noexcept nogil
ctypedef bint (*finite_fn)(const char* x, Py_ssize_t n) noexcept nogil

cdef input_fn of_input = <input_fn>find_function("winograd", "input", "float32")
cdef output_fn to_output = <output_fn>find_function("winograd", "output", "float32")
cdef gradient_fn of_gradient = <gradient_fn>find_function("winograd", "gradient", "float32")
cdef filter_fn of_filter = <filter_fn>find_function("winograd", "filter", "float32")
cdef back_fn to_filter = <back_fn>find_function("winograd", "filter_back", "float32")
cdef finite_fn finite = <finite_fn>find_function("winograd", "finite", "float32")

ctypedef struct Work:
    Tiled of                 # as the products see it: `ins` are the channels that are summed over
    Py_ssize_t ins, outs     # rounded up to LANES
    Py_ssize_t rows, cols    # of the tiles of an image
    Py_ssize_t high, blocks  # rows of tiles in a block, and blocks in a group or a share
    Py_ssize_t parts         # blocks, or shares, of all groups
    Py_ssize_t depth         # channels of one chain of additions
    Py_ssize_t bands         # of the rows of a group's matrices
    Py_ssize_t slices        # of the input channels, whose gradients are computed one by one
    Py_ssize_t share         # images that have one sum for the gradient of the weight
    char* panels             # of the weight: 16 matrices for each group
    size_t nbytes            # of these
    bint failed, infinite

ctypedef struct Workspace:   # of a worker
    char* x                  # rows of an image with the channels last
    char* y
    char* v                  # the matrices of the windows,
    char* m                  # of the tiles,
    char* u                  # and of the weight or its gradient
    char* w                  # the weight with its channels last
    char* zeros


cdef inline Py_ssize_t rounded(Py_ssize_t channels) noexcept nogil:
    return (channels + LANES - 1) // LANES * LANES


cdef bint winograd_fits(const Tiled* given) noexcept:
    """Whether this is the fastest way. The sizes are such that columns of an image would fit."""
    cdef Py_ssize_t rows = (given.out[0] + 1) // 2, cols = (given.out[1] + 1) // 2
    cdef Py_ssize_t least = FEW
    if given.kind != GRADIENT:
        least = SOME if times(given.ins, given.outs) < LARGE else MANY
    return (given.ins >= LEAST and given.outs >= LEAST and given.pad[0] <= 2 and given.pad[1] <= 2
            and rows * cols * 20 <= given.out[0] * given.out[1] * 9
            and given.images * rows * cols >= least
            and times(cols, MATRICES * 4 * (given.ins + given.outs)) <= MOST)


cdef Py_ssize_t images_in_share(const Tiled* given) noexcept:
    """How many images have one sum for the gradient of the weight."""
    cdef Py_ssize_t shares = times((given.out[0] + 1) // 2, (given.out[1] + 1) // 2)
    shares = max(<Py_ssize_t>1, min(times(shares, given.images) // MANY, <Py_ssize_t>SHARES))
    return (given.images + shares - 1) // shares


cdef int winograd(Tiled* given) except -1:
    """Runs a pass; returns whether it did, which it does not where a result is not finite.

    GRADIENT: `weight` has room for one gradient for each share of the images.
    """
    cdef Work w
    cdef Py_ssize_t share = images_in_share(given), threads
    cdef Py_ssize_t d, rows, tile, parts
    w.of, w.share = given[0], share
    if given.kind == ADJOINT:           # the weight is turned around, `ins` and `outs` swapped
        w.of.ins, w.of.outs = given.outs, given.ins
        w.of.x, w.of.y = given.y, given.x
        for d in range(2):
            w.of.size[d], w.of.out[d] = given.out[d], given.size[d]
            w.of.pad[d] = 2 - given.pad[d]
    w.ins, w.outs = rounded(w.of.ins), rounded(w.of.outs)
    parts = (w.of.ins + DEPTH - 1) // DEPTH
    w.depth = (w.of.ins + parts - 1) // parts
    w.bands = (parts - 1) * bands_of(w.depth) + bands_of(w.of.ins - (parts - 1) * w.depth)
    w.rows, w.cols = (w.of.out[0] + 1) // 2, (w.of.out[1] + 1) // 2
    tile = MATRICES * 4 * (w.ins + w.outs)
    w.high = max(<Py_ssize_t>1, max(BYTES // tile, <Py_ssize_t>LEAST_TILES) // w.cols)
    if w.high > ROWS:
        w.high -= w.high % ROWS
    rows = w.of.images * w.rows if given.kind != GRADIENT else share * w.rows
    w.blocks = (rows + w.high - 1) // w.high
    if given.kind != GRADIENT:          # as many blocks for each thread: cuts change no bits
        threads = get_num_threads()
        w.blocks = min((w.blocks + threads - 1) // threads * threads, rows)
    w.high = (rows + w.blocks - 1) // w.blocks
    w.failed = w.infinite = False
    w.nbytes = w.of.groups * MATRICES * panels_size(w.of.ins, w.of.outs) * 4
    w.slices = (w.of.ins + SLICE - 1) // SLICE
    w.parts = w.of.groups * w.blocks
    if given.kind == GRADIENT:
        w.parts = w.of.groups * ((w.of.images + share - 1) // share) * w.slices
    run_once(run_pass, &w, w.of.weight, False)
    if w.failed:
        raise MemoryError("convolution: no memory for the windows of some rows of an image")
    return not w.infinite


cdef void run_pass(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes all blocks of tiles, or all shares of the images."""
    cdef Work* w = <Work*>context
    if w.of.kind == GRADIENT:
        parallel_for(run_gradients, w, w.parts, 1)
        return
    w.panels = take_scratch(w.nbytes)
    w.failed = w.panels == NULL
    if not w.failed:
        parallel_for(pack_weight, w, w.of.groups * w.bands, 1 + (1 << 14) // (w.outs * BAND))
    if not w.failed:
        parallel_for(run_blocks, w, w.parts, 1)
    give_scratch(w.panels, w.nbytes)


# ---- the weight ----------------------------------------------------------------------------------

cdef void pack_weight(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """w.panels := the bands [begin, end), of BAND rows each, of all groups' 16 matrices (ins, outs)
    """
    cdef Work* w = <Work*>context
    cdef Tiled* i = &w.of
    cdef bint around = i.kind == ADJOINT
    cdef Py_ssize_t size = panels_size(i.ins, i.outs), band, group, first, part, depth, row, rows
    cdef size_t nbytes = BAND * 9 * w.outs * 4
    cdef char* last = take_scratch(nbytes)
    cdef char* p
    if last == NULL:
        w.failed = True
        return
    memset(last, 0, nbytes)
    for band in range(begin, end):
        group, first = band // w.bands, band % w.bands
        part = first // bands_of(w.depth) * w.depth
        depth = min(w.depth, i.ins - part)
        first = first % bands_of(w.depth) * BAND
        rows = min(<Py_ssize_t>BAND, depth - first)
        p = w.panels + (group * MATRICES * size + panels_size(part, i.outs)) * 4
        if around:                       # the rows of the weight are those of the output channels
            for row in range(rows):
                turn(FLOAT32, i.weight + (group * i.ins + part + first + row) * i.outs * 36, 9,
                     last + row * 9 * w.outs * 4, w.outs, i.outs, 9)
            of_filter(last + 8 * w.outs * 4, -w.outs, p, rows, w.outs, depth, first, size)
            continue
        turn(FLOAT32, i.weight + (group * i.outs * i.ins + part + first) * 36, i.ins * 9, last,
             w.outs, i.outs, rows * 9)
        of_filter(last, w.outs, p, rows, w.outs, depth, first, size)
    give_scratch(last, nbytes)


cdef inline Py_ssize_t bands_of(Py_ssize_t rows) noexcept nogil:
    return (rows + BAND - 1) // BAND


cdef void multiply(const Work* w, const char* v, const char* p, char* m,
                   Py_ssize_t tiles) noexcept nogil:
    """m (tiles, outs) := v (tiles, ins) @ a matrix of the weight"""
    cdef Py_ssize_t first = w.depth, depth
    multiply_panels(FLOAT32, v, w.ins, 1, p, m, w.outs, tiles, w.depth, w.of.outs)
    while first < w.of.ins:
        depth = min(w.depth, w.of.ins - first)
        p += panels_size(w.depth, w.of.outs) * 4
        add_panels(FLOAT32, v + first * 4, w.ins, 1, p, m, w.outs, tiles, depth, w.of.outs)
        first += depth


# ---- blocks of rows of tiles ---------------------------------------------------------------------

cdef char* new_workspace(const Work* w, Workspace* space, size_t* nbytes) noexcept nogil:
    """Takes a worker's memory, of `nbytes`, and sets its parts; NULL if there is none."""
    cdef const Tiled* i = &w.of
    cdef Py_ssize_t tiles = w.high * w.cols, d, k = w.outs, ins = w.ins
    cdef bint gradient = i.kind == GRADIENT
    cdef size_t[7] size
    cdef char* block
    if gradient:
        k, ins = panels_size(1, i.outs), min(w.ins, <Py_ssize_t>SLICE)
    size = [min(2 * w.high + 2, i.size[0]) * i.size[1] * ins, 2 * w.high * i.out[1] * w.outs,
            MATRICES * (tiles * ins + LINE), MATRICES * (tiles * k + LINE),
            MATRICES * ins * w.outs * gradient, 9 * ins * w.outs * gradient,
            max(w.ins, w.outs)]
    nbytes[0] = 0
    for d in range(7):
        size[d] = 4 * (size[d] + LINE)
        nbytes[0] += size[d]
    block = take_scratch(nbytes[0])
    if block == NULL:
        return NULL
    space.x = block
    space.y = space.x + size[0]
    space.v = space.y + size[1]
    space.m = space.v + size[2]
    space.u = space.m + size[3]
    space.w = space.u + size[4]
    space.zeros = space.w + size[5]
    memset(space.zeros, 0, size[6])
    if w.outs != i.outs:                 # zeros for the channels of the padding
        memset(space.m, 0, size[3])
    return block


cdef Py_ssize_t piece(const Work* w, Py_ssize_t row, Py_ssize_t end,
                      WinogradTiles* t) noexcept nogil:
    """t := the rows of tiles from `row` to `end`, or to the end of the image. Returns the image."""
    cdef const Tiled* i = &w.of
    cdef Py_ssize_t d
    for d in range(2):
        t.size[d], t.pad[d], t.out[d] = i.size[d], i.pad[d], i.out[d]
    t.first = row % w.rows
    t.rows = min(w.rows - t.first, end - row)
    return row // w.rows


cdef void take_windows(const Work* w, const Workspace* space, const WinogradTiles* t,
                       Py_ssize_t image, Py_ssize_t channel, Py_ssize_t ins,
                       Py_ssize_t done) noexcept nogil:
    """Transforms what the tiles see of some channels, and puts it after the tiles that are done."""
    cdef const Tiled* i = &w.of
    cdef Py_ssize_t plane = i.size[0] * i.size[1], top = 2 * t.first - i.pad[0]
    cdef Py_ssize_t begin = max(<Py_ssize_t>0, min(top, i.size[0]))
    cdef Py_ssize_t end = max(begin, min(top + 2 * t.rows + 2, i.size[0]))
    cdef Py_ssize_t all = i.groups * i.ins, places = (end - begin) * i.size[1]
    cdef const char* x = i.x + ((image * all + channel) * plane + begin * i.size[1]) * 4
    if i.lanes:
        x = i.x + ((image * plane + begin * i.size[1]) * all + channel) * 4
    if i.lanes and t.channels != all:
        copy_blocks(x, all * 4, space.x, t.channels * 4, places, ins * 4)
    elif not i.lanes:
        turn(FLOAT32, x, plane, space.x, t.channels, ins, places)
    of_input(x if i.lanes and t.channels == all else space.x, space.zeros,
             space.v + done * t.channels * 4, t)


cdef inline char* result(const Work* w, const WinogradTiles* t, Py_ssize_t image, Py_ssize_t group,
                         Py_ssize_t* places) noexcept nogil:
    """Where the rows of the result begin that the tiles cover; sets the number of their places."""
    cdef const Tiled* i = &w.of
    places[0] = min(2 * t.rows, i.out[0] - 2 * t.first) * i.out[1]
    if i.lanes:
        return i.y + ((image * i.out[0] + 2 * t.first) * i.out[1] * i.groups + group) * i.outs * 4
    return i.y + ((image * i.groups + group) * i.outs * i.out[0] + 2 * t.first) * i.out[1] * 4


cdef void run_blocks(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := the results of the blocks [begin, end) of all groups"""
    cdef Work* w = <Work*>context
    cdef Tiled* i = &w.of
    cdef WinogradTiles t
    cdef Workspace space
    cdef Py_ssize_t block, group, row, first, last, image, done, tiles, xi, places
    cdef Py_ssize_t size = panels_size(i.ins, i.outs) * 4
    cdef char* y
    cdef char* rows
    cdef size_t nbytes
    cdef char* memory = new_workspace(w, &space, &nbytes)
    if memory == NULL:
        w.failed = True
        return
    for block in range(begin, end):
        group, first = block // w.blocks, block % w.blocks * w.high
        last = min(first + w.high, i.images * w.rows)
        tiles = (last - first) * w.cols
        row, done = first, 0
        t.channels, t.step = w.ins, tiles * w.ins + LINE
        while row < last:
            image = piece(w, row, last, &t)
            take_windows(w, &space, &t, image, group * i.ins, i.ins, done)
            row += t.rows
            done += t.rows * w.cols
        for xi in range(MATRICES):
            multiply(w, space.v + xi * (tiles * w.ins + LINE) * 4,
                     w.panels + (group * MATRICES + xi) * size,
                     space.m + xi * (tiles * w.outs + LINE) * 4, tiles)
        row, done = first, 0
        t.channels, t.step = w.outs, tiles * w.outs + LINE
        while row < last:
            image = piece(w, row, last, &t)
            y = result(w, &t, image, group, &places)
            rows = y if i.lanes and w.outs == i.groups * i.outs else space.y
            to_output(space.m + done * w.outs * 4, rows, &t)
            if not finite(rows, places * w.outs):
                w.infinite = True
            if not i.lanes:
                turn(FLOAT32, rows, w.outs, y, i.out[0] * i.out[1], places, i.outs)
            elif rows != y:
                copy_blocks(rows, w.outs * 4, y, i.groups * i.outs * 4, places, i.outs * 4)
            row += t.rows
            done += t.rows * w.cols
    give_scratch(memory, nbytes)


cdef void run_gradients(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """weight := the gradients of the shares [begin, end), for all slices of the input channels"""
    cdef Work* w = <Work*>context
    cdef Tiled* i = &w.of
    cdef WinogradTiles t
    cdef Workspace space
    cdef Py_ssize_t part, share, group, row, first, last, image, done, tiles, xi, places
    cdef Py_ssize_t channel, ins, wide, width = panels_size(1, i.outs)
    cdef char* y
    cdef char* rows
    cdef size_t nbytes
    cdef char* memory = new_workspace(w, &space, &nbytes)
    if memory == NULL:
        w.failed = True
        return
    for part in range(begin, end):
        share, group = part // w.slices // i.groups, part // w.slices % i.groups
        channel = part % w.slices * SLICE
        ins = min(<Py_ssize_t>SLICE, i.ins - channel)
        wide = rounded(ins)
        memset(space.u, 0, MATRICES * ins * w.outs * 4)
        first, last = share * w.share * w.rows, min((share + 1) * w.share, i.images) * w.rows
        while first < last:
            tiles = min(w.high, last - first) * w.cols
            row, done = first, 0
            while row < min(first + w.high, last):
                image = piece(w, row, min(first + w.high, last), &t)
                t.channels, t.step = wide, tiles * wide + LINE
                take_windows(w, &space, &t, image, group * i.ins + channel, ins, done)
                t.channels, t.step = w.outs, tiles * width + LINE
                y = result(w, &t, image, group, &places)
                rows = y if i.lanes and w.outs == i.groups * i.outs else space.y
                if not i.lanes:
                    turn(FLOAT32, y, i.out[0] * i.out[1], rows, w.outs, i.outs, places)
                elif rows != y:
                    copy_blocks(y, i.groups * i.outs * 4, rows, w.outs * 4, places, i.outs * 4)
                of_gradient(rows, space.zeros, space.m, &t, tiles, done)
                row += t.rows
                done += t.rows * w.cols
            for xi in range(MATRICES):
                add_panels(FLOAT32, space.v + xi * (tiles * wide + LINE) * 4, 1, wide,
                           space.m + xi * (tiles * width + LINE) * 4,
                           space.u + xi * ins * w.outs * 4, w.outs, ins, tiles, i.outs)
            first += w.high
        to_filter(space.u, space.w, ins, w.outs)
        if not finite(space.w, 9 * ins * w.outs):
            w.infinite = True
        turn(FLOAT32, space.w, w.outs,
             i.weight + (part // w.slices * i.outs * i.ins + channel) * 36, i.ins * 9, ins * 9,
             i.outs)
    give_scratch(memory, nbytes)
