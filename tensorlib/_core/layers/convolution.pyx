"""Convolutions as matrix products (im2col): of the weight with the columns of each image.

Outside autograd.

The columns of an image are as many times larger than it as a window has elements. They are made
anew for each product, and those of a large image strip by strip, so that they stay in the caches.
Windows of 3 x 3 in float32 go by fewer multiplications (`winograd.pyx`) where there are channels
enough. Where each channel is seen alone, its planes are shifted and summed (`depthwise.pyx`).
"""

from libc.string cimport memset

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, FLOAT32, FLOAT_KIND, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport LARGEST, MAX_NDIM, count, settled, times
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.layers.arranged cimport (
    around, around_options, is_whole, product_for_weight, product_for_whole_weight,
    product_of_gradient, product_of_images, product_of_whole, product_of_whole_gradient,
    turns_around,
)
from tensorlib._core.layers.depthwise cimport (
    ADJOINT_OF_INPUT, ADJOINT_OF_WEIGHT, OUTPUT, Depthwise, DepthwisePass, depthwise,
    depthwise_fits,
)
from tensorlib._core.layers.direct cimport (
    Direct, by_runs, direct, direct_fits, direct_room, room_of_runs, runs_fit,
)
from tensorlib._core.layers.joined cimport (
    JOINED_INPUT, JOINED_OUTPUT, JOINED_WEIGHT, Joined, Pass, joined_fits, multiply, run_joined,
)
from tensorlib._core.products.pair_products cimport takes_pairs
from tensorlib._core.products.panel_products cimport pack_panels, panels_size
from tensorlib._core.layers.strips cimport Strips, area, cut, one_strip, strip_of
from tensorlib._core.layers.windows cimport (
    COL2IM, COL2IM_IMAGES, IM2COL, IM2COL_IMAGES, cast_planes, fill_window, find_window_loop,
    window_fn,
)
from tensorlib._core.layers.winograd cimport (
    ADJOINT, GRADIENT, PRODUCT, SHARES, Tiled, WinogradPass, images_in_share, winograd,
    winograd_fits,
)
from tensorlib._core.reduce.arrange cimport fold
from tensorlib._core.reduce.schedule cimport SUM
from tensorlib._core.tensor.lanes cimport lanes_of
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._kernels.windows cimport Window

cdef enum:
    BACK = 1 << 19   # bytes of the columns of some channels, on the way back
    STRIP = 1 << 18  # and of those of a strip, unless that are
    TALL = 1 << 19   # the same for the gradient of the weight,
    LEAST_TALL = 512  # which sums up as many places
    # Elements that a weight may have to be turned around, for so many places of all images that
    # putting back the products takes longer.
    MOST_TURNED = 1 << 18
    LEAST_TURNED = 768
    LEAST_INS = 8    # channels of an input whose gradient is a convolution
    LEAST = 256      # places or fewer, too few for the product

cdef enum Kind:
    FORWARD          # y := weight @ columns of x
    INPUT            # y := the columns weight.T @ x, put back
    WEIGHT           # y := x @ (columns of the input).T

ctypedef struct Convolution:
    Kind kind
    int dtype
    Window window
    window_fn im2col
    window_fn col2im
    char* x              # the input: (images, groups * ins, *size)
    char* g              # the result: (images, groups * outs, *out)
    char* weight         # (groups * outs, ins * elements of a window)
    Py_ssize_t images, groups, ins, outs, elements, places, plane, itemsize, share
    Py_ssize_t row       # from one channel of x to the next: 1 where these lie beside each other
    Strips strips        # of the result of an image
    bint plain           # columns are the image itself
    bint direct          # windows are multiplied where they lie
    bint runs            # or so are the rows of windows beside each other
    Direct product
    char* panels         # of the weight of each group, where `direct`
    size_t nbytes        # of these
    bint failed


cdef void cut_strips(Convolution* c, Py_ssize_t nbytes, Py_ssize_t least) noexcept:
    """Where there are columns, so many that they have no more bytes, or the least places."""
    c.strips = one_strip(&c.window) if c.plain else cut(
        &c.window, max(nbytes // (c.ins * c.elements * c.itemsize), least))


cdef int pack_weight(Convolution* c) except -1:
    """Where windows are to be multiplied where they lie: the transposed weight of each group."""
    cdef Py_ssize_t rows = c.ins * c.elements
    c.product.dtype, c.product.itemsize = c.dtype, c.itemsize
    c.product.ins, c.product.outs, c.product.taps = c.ins, c.outs, rows
    c.runs = not c.plain and runs_fit(&c.product, &c.window)
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
    """The strips [begin, end) of the groups of images: one product each"""
    cdef Convolution* c = <Convolution*>context
    cdef Window w
    cdef Py_ssize_t rows = c.ins * c.elements, part, strip
    cdef Py_ssize_t places = c.strips.places, count = c.strips.count
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
        x = c.x + part // count * c.ins * c.plane * c.itemsize
        g = c.g + part // count * c.outs * c.places * c.itemsize
        weight = c.weight + part // count % c.groups * c.outs * rows * c.itemsize
        if c.plain and c.row == 1:
            x += part % c.groups * c.ins * (1 - c.plane) * c.itemsize
            multiply(c.dtype, c.itemsize, weight, rows, 1, x, 1, c.groups * c.ins, g, c.places,
                     c.outs, rows, c.places)
            continue
        if c.plain:
            multiply(c.dtype, c.itemsize, weight, rows, 1, x, c.places, 1, g, c.places, c.outs,
                     rows, c.places)
            continue
        w = c.window
        x = strip_of(&c.strips, strip, x, c.itemsize, &w)
        g += strip * places * c.itemsize
        if c.direct:
            direct(&c.product, &w, x, c.panels + part // count % c.groups * c.nbytes, g,
                   c.places, columns)
            continue
        if c.runs:
            by_runs(&c.product, &w, x, weight, g, c.places, columns)
            continue
        c.im2col(x, columns, &w, c.ins)
        multiply(c.dtype, c.itemsize, weight, rows, 1, columns, area(w.out), 1, g, c.places,
                 c.outs, rows, area(w.out))
    give_scratch(columns, nbytes)


cdef void run_images(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The groups of images [begin, end), back to the input: a product for some channels each, whose
    columns stay in the caches"""
    cdef Convolution* c = <Convolution*>context
    cdef Py_ssize_t rows = c.ins * c.elements, part, channel, count, most = c.ins
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
        g = c.g + part * c.outs * c.places * c.itemsize
        weight = c.weight + part % c.groups * c.outs * rows * c.itemsize
        if c.plain:
            multiply(c.dtype, c.itemsize, weight, 1, rows, g, c.places, 1, x, c.places, rows,
                     c.outs, c.places)
            continue
        memset(x, 0, c.ins * c.plane * c.itemsize)
        channel = 0
        while channel < c.ins:
            count = min(most, c.ins - channel)
            multiply(c.dtype, c.itemsize, weight + channel * c.elements * c.itemsize, 1, rows, g,
                     c.places, 1, columns, c.places, count * c.elements, c.outs, c.places)
            c.col2im(columns, x + channel * c.plane * c.itemsize, &c.window, count)
            channel += count
    if columns != NULL:
        give_scratch(columns, nbytes)


cdef void run_shares(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The gradients of the weight of some images each, in order; `weight` has one for each share"""
    cdef Convolution* c = <Convolution*>context
    cdef Py_ssize_t rows = c.ins * c.elements, size = c.outs * rows, share, image, group, part
    cdef Py_ssize_t strip, places
    cdef Window w
    cdef size_t nbytes = (rows * c.strips.places + size) * c.itemsize
    cdef char* columns = take_scratch(nbytes)
    cdef char* product
    cdef char* x
    cdef char* g
    cdef char* total
    if columns == NULL:
        c.failed = True
        return
    product = columns + rows * c.strips.places * c.itemsize
    for share in range(begin, end):
        for image in range(share * c.share, min((share + 1) * c.share, c.images)):
            for group in range(c.groups):
                part = image * c.groups + group
                total = c.weight + (share * c.groups + group) * size * c.itemsize
                for strip in range(c.strips.count):
                    w = c.window
                    x = strip_of(&c.strips, strip, c.x + part * c.ins * c.plane * c.itemsize,
                                 c.itemsize, &w)
                    g = c.g + (part * c.outs * c.places + strip * c.strips.places) * c.itemsize
                    places = area(w.out)
                    if not c.plain:
                        c.im2col(x, columns, &w, c.ins)
                        x = columns
                    multiply(c.dtype, c.itemsize, g, c.places, 1, x, 1, places, product, rows,
                             c.outs, places, rows)
                    add(c.dtype, product, total, size)
    give_scratch(columns, nbytes)


cdef void add(int dtype, const char* x, char* y, Py_ssize_t n) noexcept nogil:
    """y += x"""
    cdef Py_ssize_t i
    if dtype == FLOAT32:
        for i in range(n):
            (<float*>y)[i] += (<const float*>x)[i]
    else:
        for i in range(n):
            (<double*>y)[i] += (<const double*>x)[i]


cdef int run_parts(Convolution* c, Py_ssize_t parts) except -1:
    cdef Py_ssize_t cost = times(times(c.outs, c.ins * c.elements), c.places)
    cdef range_fn each = run_strips
    if c.kind == INPUT:
        each = run_images
    elif c.kind == WEIGHT:
        each = run_shares
    else:
        parts, cost = times(parts, c.strips.count), cost // c.strips.count
    share(each, c, c.weight, parts, 1 + (1 << 18) // max(<Py_ssize_t>1, cost), False)
    if c.failed:
        raise MemoryError("convolution: no memory for the columns of an image")
    return 0


cdef int begin(Convolution* c, str name, Kind kind, Tensor like, object sizes, object weight_sizes,
               object out_sizes, object options) except -1:
    """Takes the sizes of the input, the weight and the result, and (stride, padding, dilation,
    groups). Raises: RuntimeError where they do not fit to each other."""
    cdef int d, n = len(sizes) - 2
    stride, padding, dilation, groups = options
    if not 1 <= n <= 3 or len(weight_sizes) != n + 2 or len(out_sizes) != n + 2:
        raise RuntimeError(f"{name}: expects an input of 3 to 5 dims and a weight of as many, got "
                           f"{len(sizes)} and {len(weight_sizes)}")
    if groups < 1 or sizes[1] != weight_sizes[1] * groups or weight_sizes[0] % groups or (
            out_sizes[1] != weight_sizes[0]) or out_sizes[0] != sizes[0]:
        raise RuntimeError(f"{name}: an input of shape {tuple(sizes)} does not fit to a weight of "
                           f"shape {tuple(weight_sizes)} with groups={groups}")
    if KIND[like.type] != FLOAT_KIND:
        raise RuntimeError(f"{name}: takes floating-point dtypes, got {dtype_object(like.type)}")
    fill_window(&c.window, name, like, sizes[2:], weight_sizes[2:], stride, padding, dilation,
                out_sizes[2:])
    c.kind, c.dtype, c.failed, c.share = kind, compute_dtype(like.type), False, 0
    c.direct = c.runs = False
    c.itemsize = 4 if c.dtype == FLOAT32 else 8
    c.im2col = <window_fn>find_window_loop(IM2COL, c.dtype)
    c.col2im = <window_fn>find_window_loop(COL2IM, c.dtype)
    c.images, c.groups = sizes[0], groups
    c.ins, c.outs = weight_sizes[1], weight_sizes[0] // groups
    c.elements, c.places, c.plane = (
        area(c.window.kernel), area(c.window.out), area(c.window.size))
    if times(times(c.ins, c.elements), c.places) >= LARGEST // 16:
        raise RuntimeError(f"{name}: the columns of an image have too many elements")
    c.plain = c.elements == 1
    for d in range(3):
        c.plain = c.plain and c.window.stride[d] == 1 and c.window.pad[d] == 0 and (
            c.window.out[d] == c.window.size[d])
    return 0


cdef bint fits_tiles(const Convolution* c, WinogradPass kind, Tiled* i) noexcept:
    """Whether the result is computed with fewer multiplications."""
    cdef const Window* w = &c.window
    cdef int d
    if c.dtype != FLOAT32 or w.size[0] != 1 or w.out[0] != 1 or w.kernel[0] != 1 or w.pad[0]:
        return False
    for d in range(2):
        if w.kernel[d + 1] != 3 or w.stride[d + 1] != 1 or w.dilation[d + 1] != 1:
            return False
        i.size[d], i.out[d], i.pad[d] = w.size[d + 1], w.out[d + 1], w.pad[d + 1]
    i.kind, i.x, i.y, i.weight = kind, c.x, c.g, c.weight
    i.images, i.groups, i.ins, i.outs = c.images, c.groups, c.ins, c.outs
    return winograd_fits(i)


cdef bint by_tiles(const Convolution* c, WinogradPass kind) except -1:
    """Whether it was computed so."""
    cdef Tiled i
    return fits_tiles(c, kind, &i) and winograd(&i)


cdef bint by_channels(const Convolution* c, Depthwise* d, DepthwisePass kind) noexcept:
    """Whether each channel is seen alone, in planes that may be copied."""
    d.kind, d.dtype, d.window = kind, c.dtype, &c.window
    d.images, d.groups, d.outs = c.images, c.groups, c.outs
    return c.ins == 1 and not c.plain and depthwise_fits(d)


cdef bint shift_channels(const Convolution* c, Depthwise* d) except -1:
    """Whether the result was computed as sums of shifted planes."""
    d.x, d.g, d.weight = c.x, c.g, c.weight
    return depthwise(d)


cdef Joined joined_images(const Convolution* c, Pass kind) noexcept:
    """The same by columns of many images beside each other."""
    cdef Joined j
    j.kind, j.dtype, j.itemsize, j.window = kind, c.dtype, c.itemsize, c.window
    j.images, j.groups, j.ins, j.outs = c.images, c.groups, c.ins, c.outs
    j.im2col = <window_fn>find_window_loop(IM2COL_IMAGES, c.dtype)
    j.col2im = <window_fn>find_window_loop(COL2IM_IMAGES, c.dtype)
    j.x, j.g, j.weight = c.x, c.g, c.weight
    j.elements, j.places, j.plane = c.elements, c.places, c.plane
    return j


cdef bint is_product(const Convolution* c, Tensor a, Tensor b) noexcept:
    """Whether the images themselves are columns, of bfloat16 that is multiplied in pairs."""
    return (c.plain and c.groups == 1 and a.type == b.type == BFLOAT16
            and takes_pairs(c.outs, c.ins, c.places))


cdef bint is_dense(const Convolution* c, Tensor a, Tensor b) noexcept:
    """Whether an image is one window, so that the layer is linear."""
    return (c.groups == 1 and a.type == b.type and a.numel_ > 0 and b.numel_ > 0
            and is_whole(&c.window))


cdef tuple plain_options(tuple options):
    """Stride, padding, dilation and groups as Python's own ints, which each look finds the same."""
    stride, padding, dilation, groups = options
    return settled(stride), settled(padding), settled(dilation), settled(groups)


cdef Tensor new_of(str name, int dtype, object sizes):
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d
    for d in range(len(sizes)):
        dims[d] = sizes[d]
    count(name, len(sizes), dims)
    return new_tensor(dtype, len(sizes), dims)


def convolve(Tensor input, Tensor weight, tuple planes, tuple options):
    """The products of the windows of the input with the weights; `planes`: sizes of the result."""
    planes, options = settled(planes), plain_options(options)
    cdef Convolution c
    cdef Depthwise d
    cdef Joined j
    cdef bint lanes
    cdef Tensor x, w, y
    cdef tuple sizes = (input.shape[0] if input.ndim_ else 0,
                        weight.shape[0] if weight.ndim_ else 0, *planes)
    begin(&c, "convolution", FORWARD, input, tuple(input.shape), tuple(weight.shape), sizes,
          options)
    if is_product(&c, input, weight):
        return product_of_images(input, weight, sizes)
    if is_dense(&c, input, weight):
        return product_of_whole(input, weight, sizes)
    x, w = cast_planes(input, c.dtype), packed(cast(weight, c.dtype))
    lanes = c.plain and lanes_of(x) > 0
    c.row = 1 if lanes else c.plane
    x = x if lanes else packed(x)
    y = new_of("convolution", c.dtype, sizes)
    if x.numel_ == 0 or w.numel_ == 0:
        zero(y)
    elif y.numel_:
        c.x, c.weight, c.g = x.data_pointer, w.data_pointer, y.data_pointer
        j = joined_images(&c, JOINED_OUTPUT)
        if by_channels(&c, &d, OUTPUT):
            shift_channels(&c, &d)
        elif by_tiles(&c, PRODUCT):
            pass
        elif joined_fits(&j) and not lanes:
            run_joined(&j)
        else:
            cut_strips(&c, STRIP, LEAST)
            pack_weight(&c)
            try:
                run_parts(&c, c.images * c.groups)
            finally:
                give_scratch(c.panels, c.groups * c.nbytes)
    return cast(y, input.type)


def convolve_input(Tensor grad, Tensor weight, tuple spatial, tuple options):
    """The adjoint of `convolve` for its input, whose planes have sizes `spatial`."""
    spatial, options = settled(spatial), plain_options(options)
    cdef Convolution c
    cdef Depthwise d
    cdef Joined j
    cdef Tensor g, w, y
    cdef tuple sizes = (grad.shape[0] if grad.ndim_ else 0,
                        (weight.shape[1] if weight.ndim_ > 1 else 0) * options[3], *spatial)
    begin(&c, "convolution", INPUT, grad, sizes, tuple(weight.shape), tuple(grad.shape), options)
    if is_product(&c, grad, weight):
        return product_of_gradient(grad, weight, sizes)
    if is_dense(&c, grad, weight):
        return product_of_whole_gradient(grad, weight, sizes)
    g, w = packed(cast(grad, c.dtype)), packed(cast(weight, c.dtype))
    y = new_of("convolution", c.dtype, sizes)
    if g.numel_ == 0 or w.numel_ == 0:
        zero(y)
    elif y.numel_:
        c.x, c.weight, c.g = y.data_pointer, w.data_pointer, g.data_pointer
        j = joined_images(&c, JOINED_INPUT)
        if by_channels(&c, &d, ADJOINT_OF_INPUT) and shift_channels(&c, &d) or (
                by_tiles(&c, ADJOINT)):
            pass
        elif (not c.plain and c.ins >= LEAST_INS and w.numel_ <= MOST_TURNED
                and c.images * c.places >= LEAST_TURNED and turns_around(&c.window, w)):
            y = convolve(g, around(w, c.groups), spatial, around_options(&c.window, options))
        elif joined_fits(&j):
            run_joined(&j)
        else:
            run_parts(&c, c.images * c.groups)
    return cast(y, grad.type)


def convolve_weight(Tensor grad, Tensor input, tuple kernel, tuple options):
    """The adjoint of `convolve` for its weight, whose windows have sizes `kernel`."""
    kernel, options = settled(kernel), plain_options(options)
    cdef Convolution c
    cdef Depthwise d
    cdef Joined j
    cdef Tiled tiled
    cdef bint alone, joined, tiles
    cdef int first = 0
    cdef Tensor g, x, y
    cdef tuple sizes = (grad.shape[1] if grad.ndim_ > 1 else 0,
                        (input.shape[1] if input.ndim_ > 1 else 0) // max(1, options[3]), *kernel)
    cdef Py_ssize_t shares
    begin(&c, "convolution", WEIGHT, grad, tuple(input.shape), sizes, tuple(grad.shape), options)
    if is_product(&c, grad, input):
        return product_for_weight(grad, input, sizes)
    if is_dense(&c, grad, input):
        return product_for_whole_weight(grad, input, sizes)
    g, x = packed(cast(grad, c.dtype)), packed(cast(input, c.dtype))
    alone = by_channels(&c, &d, ADJOINT_OF_WEIGHT)          # which adds up the images by itself
    j = joined_images(&c, JOINED_WEIGHT)
    tiles = not alone and fits_tiles(&c, GRADIENT, &tiled)
    joined = not alone and not tiles and joined_fits(&j)
    c.share = images_in_share(&tiled) if tiles else c.images
    if not alone and not joined and not tiles:
        c.share = max(<Py_ssize_t>1, (c.images + SHARES - 1) // SHARES)
    shares = max(<Py_ssize_t>1, (c.images + c.share - 1) // max(<Py_ssize_t>1, c.share))
    y = new_of("convolution", c.dtype, (shares, *sizes))
    if not (g.numel_ and x.numel_):
        zero(y)
    elif y.numel_:
        c.x, c.weight, c.g = x.data_pointer, y.data_pointer, g.data_pointer
        if joined:
            j.x, j.g, j.weight = c.x, c.g, c.weight
            run_joined(&j)
        elif not (shift_channels(&c, &d) if alone else by_tiles(&c, GRADIENT)):
            zero(y)
            cut_strips(&c, TALL, LEAST_TALL)
            run_parts(&c, shares)
    return cast(fold(SUM, y, 1, &first, False, c.dtype), grad.type)
