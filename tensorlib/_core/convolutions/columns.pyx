"""Convolutions by the columns of each image: the products, strip by strip and image by image.

Outside autograd. The columns of a large image are made strip by strip, and in the backward pass
some channels at a time, so that they stay in the caches.
"""

from libc.string cimport memset

from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.convolutions.direct cimport (
    by_runs, direct, direct_fits, direct_room, room_of_runs, runs_fit,
)
from tensorlib._core.convolutions.strips cimport area, cut, one_strip, strip_of
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.products.pair_products cimport multiply_pairs, round_rows
from tensorlib._core.products.panel_products cimport add_row, pack_panels, panels_size

cdef enum:
    BACK = 1 << 19   # bytes of the columns of some channels, for the gradient of the input
    STRIP = 1 << 18  # bytes of the columns of a strip, forward,
    LONG_STRIP = 1 << 20     # and where there are none, since strips share rows that are copied
    LEAST = 256      # but at least so many places, as products of fewer columns are slow
    TALL = 1 << 19   # the same two for the gradient of the weight, whose product sums over places
    LEAST_TALL = 512


cdef void cut_strips(Convolution* c, Py_ssize_t nbytes, Py_ssize_t least) noexcept:
    """Cuts results into strips whose columns take at most `nbytes`, or have `least` places."""
    c.strips = one_strip(&c.window) if c.plain else cut(
        &c.window, max(nbytes // (c.ins * c.elements * c.itemsize), least))


cdef int pack_weight(Convolution* c) except -1:
    """Packs the transposed weight of each group, for windows that are multiplied where they lie."""
    cdef Py_ssize_t rows = c.ins * c.elements
    c.product.dtype, c.product.itemsize = c.dtype, c.itemsize
    c.product.ins, c.product.outs, c.product.taps = c.ins, c.outs, rows
    c.product.paired, c.product.lanes, c.product.rounds = c.paired, c.lanes, c.rounds
    c.runs = not c.plain and not c.paired and not c.lanes and runs_fit(&c.product, &c.window)
    c.direct = not c.plain and not c.runs and direct_fits(&c.product, &c.window)
    c.panels, c.nbytes = NULL, panels_size(rows, c.outs) * c.itemsize
    if c.direct:
        run_alone(pack_groups, c, c.weight, c.groups)
        if c.failed:
            raise MemoryError("convolution: no memory for the weight in panels")
    return 0


cdef void pack_groups(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """c.panels := the transposed weights of the groups, in panels"""
    cdef Convolution* c = <Convolution*>context
    cdef Py_ssize_t rows = c.ins * c.elements, group
    c.panels = take_scratch(end * c.nbytes)
    c.failed = c.panels == NULL
    for group in range(0 if c.failed else end):
        pack_panels(c.dtype, c.weight + group * c.outs * rows * c.itemsize, 1, rows,
                    c.panels + group * c.nbytes, rows, c.outs)


cdef void run_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the strips [begin, end) of all images and groups, by one product each."""
    cdef Convolution* c = <Convolution*>context
    cdef Window w
    cdef Py_ssize_t rows = c.ins * c.elements, part, strip
    cdef Py_ssize_t places = c.strips.places, count = c.strips.count
    cdef Py_ssize_t itemsize = 2 if c.paired else c.itemsize        # of x
    cdef Py_ssize_t channels = c.paired if c.paired else c.ins
    cdef Py_ssize_t image = channels * c.plane * itemsize, size = 2 if c.rounds else c.itemsize
    cdef char* columns = NULL
    cdef char* x
    cdef char* g
    cdef char* weight
    cdef size_t nbytes = rows * places * c.itemsize
    if c.direct or c.runs:
        w = c.window
        w.out[c.strips.dim] = c.strips.high
        nbytes = direct_room(&c.product, &w) if c.direct else room_of_runs(&c.product, &w)
    if not c.plain:
        columns = take_scratch(nbytes)
        if columns == NULL:
            c.failed = True
            return
    for part in range(begin, end):
        strip = part % count
        x = c.x + part // count * image
        g = c.g + part // count * c.outs * c.places * size
        weight = c.weight + part // count % c.groups * c.outs * rows * c.itemsize
        if c.plain and c.lanes:
            x += part % c.groups * c.ins * (1 - c.plane) * c.itemsize
            g += part % c.groups * c.outs * (1 - c.plane) * c.itemsize
            multiply_matrices(c.dtype, x, c.groups * c.ins, 1, weight, 1, rows, g,
                              c.groups * c.outs, c.places, rows, c.outs)
            continue
        if c.plain:
            multiply_matrices(c.dtype, weight, rows, 1, x, c.places, 1, g, c.places, c.outs, rows,
                              c.places)
            continue
        w = c.window
        x = strip_of(&c.strips, strip, x, itemsize * (channels if c.lanes else 1), &w)
        g += strip * places * size * (c.outs if c.lanes else 1)
        if c.direct:
            direct(&c.product, &w, x, c.panels + part // count % c.groups * c.nbytes, g,
                   c.places, columns)
            continue
        if c.runs:
            by_runs(&c.product, &w, x, weight, g, c.places, columns)
            continue
        c.im2col(x, columns, &w, c.ins)
        multiply_matrices(c.dtype, weight, rows, 1, columns, area(w.out), 1, g, c.places, c.outs,
                          rows, area(w.out))
    give_scratch(columns, nbytes)


cdef void run_images(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the gradients of the input, for [begin, end) of all images and groups. A product
    takes as many channels as have columns that stay in the caches."""
    cdef Convolution* c = <Convolution*>context
    cdef Py_ssize_t rows = c.ins * c.elements, part, channel, count, most = c.ins
    cdef Py_ssize_t itemsize = 2 if c.paired else c.itemsize        # of g and the weight
    cdef char* columns = NULL
    cdef char* x
    cdef char* g
    cdef char* weight
    cdef size_t nbytes
    if not c.plain:
        most = max(<Py_ssize_t>1, <Py_ssize_t>BACK // (c.elements * c.places * c.itemsize))
        most = min(most, c.ins)
        nbytes = most * c.elements * c.places * c.itemsize
        columns = take_scratch(nbytes)
        if columns == NULL:
            c.failed = True
            return
    for part in range(begin, end):
        x = c.x + part * c.ins * c.plane * c.itemsize
        g = c.g + part * c.outs * c.places * itemsize
        weight = c.weight + part % c.groups * c.outs * rows * itemsize
        if c.plain:
            multiply_matrices(c.dtype, weight, 1, rows, g, c.places, 1, x, c.places, rows, c.outs,
                              c.places)
            continue
        memset(x, 0, c.ins * c.plane * c.itemsize)
        channel = 0
        while channel < c.ins:
            count = min(most, c.ins - channel)
            if c.paired:                 # the weight is contiguous along `outs`
                multiply_pairs(weight + channel * c.elements * c.outs * itemsize, c.outs, g,
                               c.places, 1, columns, count * c.elements, c.outs, c.places)
            else:
                multiply_matrices(c.dtype, weight + channel * c.elements * c.itemsize, 1, rows, g,
                                  c.places, 1, columns, c.places, count * c.elements, c.outs,
                                  c.places)
            c.col2im(columns, x + channel * c.plane * c.itemsize, &c.window, count)
            channel += count
    if columns != NULL:
        give_scratch(columns, nbytes)


cdef void run_shares(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the gradients of the weight for the shares [begin, end) of the images, each summed
    in order into its own part of `weight`."""
    cdef Convolution* c = <Convolution*>context
    cdef Py_ssize_t rows = c.ins * c.elements, size = c.outs * rows, share, image, group, part
    cdef Py_ssize_t strip, places, channel, count, n, itemsize = 2 if c.paired else c.itemsize
    cdef Py_ssize_t most = c.strips.places * c.elements * c.itemsize     # channels of a product
    cdef Window w
    cdef size_t nbytes
    cdef char* columns
    cdef char* product
    cdef char* cut
    cdef char* x
    cdef char* g
    cdef char* total
    most = c.ins if c.plain else min(c.ins, max(<Py_ssize_t>1, <Py_ssize_t>BACK // most))
    n = most * c.elements
    nbytes = (n * (c.strips.places + c.outs) + (n * (c.strips.places + 1) if c.paired else 0)
              ) * c.itemsize
    columns = take_scratch(nbytes)
    if columns == NULL:
        c.failed = True
        return
    product = columns + n * c.strips.places * c.itemsize
    cut = product + n * c.outs * c.itemsize
    for share in range(begin, end):
        for image in range(share * c.share, min((share + 1) * c.share, c.images)):
            for group in range(c.groups):
                part = image * c.groups + group
                total = c.weight + (share * c.groups + group) * size * c.itemsize
                for strip in range(c.strips.count):
                    g = c.g + (part * c.outs * c.places + strip * c.strips.places) * itemsize
                    channel = 0
                    while channel < c.ins:
                        count = min(most, c.ins - channel)
                        n = count * c.elements
                        w = c.window
                        x = strip_of(&c.strips, strip,
                                     c.x + (part * c.ins + channel) * c.plane * c.itemsize,
                                     c.itemsize, &w)
                        places = area(w.out)
                        if not c.plain:
                            c.im2col(x, columns, &w, count)
                            x = columns
                        if c.paired:
                            round_rows(x, n, places, cut)
                        multiply_share(c, g, cut if c.paired else x, places, n, product)
                        add_share(c, product, n, total, channel * c.elements)
                        channel += count
    give_scratch(columns, nbytes)


cdef inline void multiply_share(Convolution* c, const char* g, const char* x, Py_ssize_t places,
                                Py_ssize_t n, char* y) noexcept nogil:
    """y := g @ x.T over n columns; or, where `across`, x @ g.T, so that g is packed and not x"""
    cdef Py_ssize_t row = places + places % 2 if c.paired else places
    if c.paired and c.across:
        multiply_pairs(x, row, g, 1, c.places, y, n, places, c.outs)
    elif c.paired:
        multiply_pairs(g, c.places, x, 1, row, y, c.outs, places, n)
    elif c.across:
        multiply_matrices(c.dtype, x, row, 1, g, 1, c.places, y, c.outs, n, places, c.outs)
    else:
        multiply_matrices(c.dtype, g, c.places, 1, x, 1, row, y, n, c.outs, places, n)


cdef inline void add_share(Convolution* c, const char* x, Py_ssize_t n, char* y,
                           Py_ssize_t first) noexcept nogil:
    """y += x, for n elements, from the first one on, of the weight of each output channel"""
    cdef Py_ssize_t row
    if c.across:
        add_row(x, c.itemsize, y + first * c.outs * c.itemsize, 0, 1, n * c.outs)
        return
    y += first * c.itemsize
    for row in range(c.outs):
        add_row(x + row * n * c.itemsize, c.itemsize, y + row * c.ins * c.elements * c.itemsize, 0,
                1, n)


cdef int run_parts(Convolution* c, Py_ssize_t parts) except -1:
    cdef Py_ssize_t cost = times(times(c.outs, c.ins * c.elements), c.places)
    cdef range_fn each = run_strips
    if c.kind == INPUT:
        each = run_images
    elif c.kind == WEIGHT:
        cut_strips(c, TALL, LEAST_TALL)
        each = run_shares
    else:
        parts, cost = times(parts, c.strips.count), cost // c.strips.count
    share(each, c, c.weight, parts, 1 + (1 << 18) // max(<Py_ssize_t>1, cost), False)
    if c.failed:
        raise MemoryError("convolution: no memory for the columns of an image")
    return 0


cdef int by_strips(Convolution* c) except -1:
    pack_weight(c)
    cut_strips(c, LONG_STRIP if c.runs else STRIP, LEAST)
    try:
        run_parts(c, c.images * c.groups)
    finally:
        give_scratch(c.panels, c.groups * c.nbytes)
    return 0
