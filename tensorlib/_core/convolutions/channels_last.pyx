"""Convolutions of channels-last images: the channels of a place are neighbours in memory.

Outside autograd. Such images are read and written as they are by windows of one element, by direct,
depthwise and Winograd convolutions. For others the functions return None, and the caller makes
contiguous copies.
"""

from tensorlib._core.base.dtypes cimport FLOAT32
from tensorlib._core.base.shape cimport MAX_NDIM, count
from tensorlib._core.convolutions.as_products cimport (
    as_places, exchanged, product_of_places, product_of_places_for_weight,
    product_of_places_gradient, with_sizes,
)
from tensorlib._core.convolutions.columns cimport Convolution, WEIGHT, by_strips
from tensorlib._core.convolutions.depthwise cimport (
    ADJOINT_OF_INPUT, ADJOINT_OF_WEIGHT, OUTPUT, DepthwisePass,
)
from tensorlib._core.convolutions.depthwise_lanes cimport Lanes, depthwise_lanes, lanes_fit
from tensorlib._core.convolutions.direct cimport direct_fits
from tensorlib._core.convolutions.image_lanes cimport Stacked, stacked_fits
from tensorlib._core.convolutions.winograd cimport (
    ADJOINT, PRODUCT, Tiled, WinogradPass, winograd, winograd_fits,
)
from tensorlib._core.products.product cimport product, wide_product
from tensorlib._core.tensor.lanes cimport lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport cast, copy_into, laid, packed, zero
from tensorlib._kernels.layers.windows cimport Window


cdef Tensor new_of(str name, int dtype, object sizes):
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d
    for d in range(len(sizes)):
        dims[d] = sizes[d]
    count(name, len(sizes), dims)
    return new_tensor(dtype, len(sizes), dims)


cdef bint fits_tiles(const Convolution* c, WinogradPass kind, Tiled* i) noexcept:
    """Whether Winograd's algorithm is faster for the pass."""
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
    i.lanes = c.lanes
    return winograd_fits(i)


cdef bint by_tiles(const Convolution* c, WinogradPass kind) except -1:
    """Runs the pass by Winograd's algorithm; returns whether it did."""
    cdef Tiled i
    return fits_tiles(c, kind, &i) and winograd(&i)


cdef bint lie_along(const Convolution* c, Stacked* s) noexcept:
    """Whether the pass is faster with one image in each lane of a vector (image_lanes.pyx)."""
    s.dtype, s.itemsize, s.window = c.dtype, c.itemsize, &c.window
    s.images, s.groups, s.ins, s.outs = c.images, c.groups, c.ins, c.outs
    s.taps, s.places, s.plane = c.ins * c.elements, c.places, c.plane
    s.x, s.g, s.weight = c.x, c.g, c.weight
    return not c.plain and stacked_fits(s, c.kind == WEIGHT)


cdef bint shift_lanes(const Convolution* c, DepthwisePass kind) except -1:
    """Runs a depthwise pass on channels-last images; returns whether it did."""
    cdef Lanes d
    d.kind, d.window = kind, &c.window
    d.images, d.channels, d.x, d.g, d.weight = c.images, c.groups, c.x, c.g, c.weight
    return depthwise_lanes(&d)


cdef inline bint shifts_lanes(const Convolution* c) noexcept:
    return c.ins == c.outs == 1 and c.groups > 1 and lanes_fit(c.dtype, c.groups)


cdef inline Tensor turned_weight(Tensor w):
    """The weight of a depthwise convolution as (elements of a window, channels); or back."""
    return packed(exchanged(with_sizes(w, (w.dims[0], -1)), 0, 1))


cdef Tensor new_lanes(int dtype, tuple sizes):
    cdef Tensor y = new_of("convolution", dtype, sizes)
    lay_lanes(y)
    return y


cdef inline bint skips_places(const Convolution* c) noexcept:
    """Whether each window is one place of the images, and sees all channels."""
    cdef const Window* w = &c.window
    return c.elements == 1 and c.groups == 1 and not (w.pad[0] or w.pad[1] or w.pad[2])


cdef Tensor places_met(const Convolution* c, Tensor images):
    """A view of the places that these windows see."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, at
    for d in range(images.ndim_):
        dims[d], steps[d], at = images.dims[d], images.steps[d], d + 3 - images.ndim_
        if d > 1:
            dims[d], steps[d] = c.window.out[at], steps[d] * c.window.stride[at]
    return new_view(images, images.ndim_, dims, steps, images.data_pointer)


cdef Tensor convolved_lanes(Convolution* c, Tensor input, Tensor weight, tuple sizes):
    """The result for channels-last images; None where a contiguous copy is faster."""
    cdef Tensor x, w, y
    cdef Tiled tiled
    cdef Stacked s
    cdef bint shifts = not c.plain and shifts_lanes(c), tiles
    if input.numel_ == 0 or weight.numel_ == 0 or c.places == 0:
        return None
    if skips_places(c):
        return product_of_places(laid(places_met(c, input), c.dtype, True), cast(weight, c.dtype),
                                 sizes, False)
    c.lanes = True
    tiles = not shifts and fits_tiles(c, PRODUCT, &tiled)
    c.product.lanes, c.product.paired, c.product.ins, c.product.outs = True, 0, c.ins, c.outs
    c.product.taps = c.ins * c.elements
    if not (shifts or tiles or c.plain or c.groups == 1 and direct_fits(&c.product, &c.window)
            and not lie_along(c, &s)):
        c.lanes = False
        return None
    x, y = laid(input, c.dtype, True), new_lanes(c.dtype, sizes)
    w = packed(cast(weight, c.dtype))
    c.x, c.g = x.data_pointer, y.data_pointer
    if shifts:
        w = turned_weight(w)
        c.weight = w.data_pointer
        if shift_lanes(c, OUTPUT):
            return y
    elif tiles:
        c.weight = w.data_pointer
        if by_tiles(c, PRODUCT):
            return y
    if c.plain or not shifts and c.groups == 1:
        w = w if c.plain else laid(weight, c.dtype, True)
        c.weight = w.data_pointer
        by_strips(c)
        return y
    c.lanes = False
    return None


cdef bint lie_apart(const Window* w) noexcept:
    """Whether each element of the input is in exactly one window."""
    cdef int d
    for d in range(3):
        if w.stride[d] != w.kernel[d] or w.pad[d] or w.dilation[d] != 1 or (
                w.size[d] != w.out[d] * w.stride[d]):
            return False
    return True


cdef Tensor windows_apart(Convolution* c, Tensor grad, Tensor weight, tuple sizes, int dtype,
                          bint wide):
    """The adjoint for the input of such windows: each is a row of a product, and just copied.
    `wide`: in the dtype in which it is computed, else in `dtype`."""
    cdef const Window* w = &c.window
    cdef Tensor rows, places = as_places(laid(grad, dtype, True)), y
    cdef Py_ssize_t[8] dims = [c.images, w.out[0], w.kernel[0], w.out[1], w.kernel[1], w.out[2],
                               w.kernel[2], c.ins]
    cdef Py_ssize_t[8] steps
    cdef Py_ssize_t[8] from_steps
    cdef Py_ssize_t span = 1, row = c.elements * c.ins
    cdef int d
    rows = with_sizes(packed(cast(weight, dtype)), (c.outs, c.ins, -1))
    rows = with_sizes(packed(exchanged(rows, 1, 2)), (c.outs, row))
    rows = (wide_product if wide else product)("convolution", places, rows)
    y = new_lanes(rows.type, sizes)
    for d in range(7, -1, -1):
        steps[d] = span
        span *= dims[d]
    from_steps[7], from_steps[6] = 1, c.ins
    from_steps[4] = c.ins * w.kernel[2]
    from_steps[2] = from_steps[4] * w.kernel[1]
    from_steps[5], from_steps[3] = row, row * w.out[2]
    from_steps[1] = from_steps[3] * w.out[1]
    from_steps[0] = from_steps[1] * w.out[0]
    copy_into(new_view(y, 8, dims, steps, y.data_pointer),
              new_view(rows, 8, dims, from_steps, rows.data_pointer))
    return y


cdef Tensor put_back_lanes(Convolution* c, Tensor grad, Tensor weight, tuple sizes, bint paired,
                           bint wide):
    """The adjoint for the input, as `convolved_lanes`. `paired`: of bfloat16, in pairs if at all;
    then `wide` gives float32."""
    cdef Tensor g, w, y
    cdef Tiled tiled
    cdef bint shifts = shifts_lanes(c)
    if grad.numel_ == 0 or weight.numel_ == 0 or c.plane == 0:
        return None
    if paired:
        return windows_apart(c, grad, weight, sizes, grad.type, wide) if (
            c.groups == 1 and lie_apart(&c.window)) else None
    if skips_places(c):
        w = cast(weight, c.dtype)
        if c.plain:
            return product_of_places_gradient(laid(grad, c.dtype, True), w, sizes, False)
        y = new_lanes(c.dtype, sizes)
        zero(y)
        copy_into(places_met(c, y), product_of_places_gradient(
            laid(grad, c.dtype, True), w, (*sizes[:2], *grad.shape[2:]), False))
        return y
    if c.groups == 1 and lie_apart(&c.window):
        return windows_apart(c, grad, weight, sizes, c.dtype, False)
    c.lanes = True
    if shifts or fits_tiles(c, ADJOINT, &tiled):
        g, y = laid(grad, c.dtype, True), new_lanes(c.dtype, sizes)
        w = packed(cast(weight, c.dtype))
        if shifts:
            w = turned_weight(w)
        c.x, c.weight, c.g = y.data_pointer, w.data_pointer, g.data_pointer
        if shift_lanes(c, ADJOINT_OF_INPUT) if shifts else by_tiles(c, ADJOINT):
            return y
    c.lanes = False
    return None


cdef Tensor weight_of_lanes(Convolution* c, Tensor grad, Tensor input, tuple sizes):
    """The adjoint for the weight, as `convolved_lanes`."""
    cdef Tensor g, x, y
    if not (skips_places(c) or shifts_lanes(c)) or grad.numel_ == 0 or input.numel_ == 0:
        return None
    g = laid(grad, c.dtype, True)
    if skips_places(c):
        return product_of_places_for_weight(g, laid(places_met(c, input), c.dtype, True), sizes)
    x = laid(input, c.dtype, True)
    y = new_of("convolution", c.dtype, (c.elements, c.groups))
    c.x, c.weight, c.g = x.data_pointer, y.data_pointer, g.data_pointer
    if not shift_lanes(c, ADJOINT_OF_WEIGHT):
        return None
    return with_sizes(turned_weight(y), sizes)
