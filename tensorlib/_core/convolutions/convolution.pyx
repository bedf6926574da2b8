"""Convolutions as matrix products (im2col): of the weight with the columns of each image.

Outside autograd.

The columns of an image take as many times its memory as a window has elements, so they are made
again for each product (`columns.pyx`). Windows of 3 x 3 in float32 with enough channels use
Winograd's algorithm, which needs fewer multiplications (`winograd.pyx`). Depthwise convolutions
shift and sum planes (`depthwise.pyx`). bfloat16 is multiplied in pairs where the processor has
instructions for that, twice as fast as float32.

If the input or the weight is channels-last, so is the result, as in PyTorch (`channels_last.pyx`).
"""

from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, FLOAT32, FLOAT_KIND, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.shape cimport LARGEST, settled, times
from tensorlib._core.convolutions.as_products cimport (
    around, around_options, exchanged, is_whole, lying_along, product_for_weight,
    product_for_whole_weight, product_of_gradient, product_of_images, product_of_places,
    product_of_places_for_weight, product_of_places_gradient, product_of_whole,
    product_of_whole_gradient, turns_around, with_sizes,
)
from tensorlib._core.convolutions.channels_last cimport (
    are_lanes, by_tiles, convolved_lanes, fits_tiles, lie_along, new_of, put_back_lanes,
    weight_of_lanes,
)
from tensorlib._core.convolutions.columns cimport (
    FORWARD, INPUT, WEIGHT, Convolution, Kind, by_strips, run_parts,
)
from tensorlib._core.convolutions.depthwise cimport (
    ADJOINT_OF_INPUT, ADJOINT_OF_WEIGHT, OUTPUT, Depthwise, DepthwisePass, depthwise,
    depthwise_fits,
)
from tensorlib._core.convolutions.direct cimport direct_fits
from tensorlib._core.convolutions.joined_columns cimport (
    JOINED_INPUT, JOINED_OUTPUT, JOINED_WEIGHT, Joined, Pass, joined_fits, run_joined,
)
from tensorlib._core.convolutions.image_lanes cimport (
    Stacked, shares_of_weight, stacked_fits, stacked_outputs, stacked_weights,
)
from tensorlib._core.convolutions.shifted_planes cimport (
    Shifted, multiply_shifted, shifted_fits,
)
from tensorlib._core.convolutions.strips cimport area
from tensorlib._core.layers.windows cimport (
    COL2IM, COL2IM_IMAGES, IM2COL, IM2COL_IMAGES, fill_window, find_window_loop, window_fn,
)
from tensorlib._core.convolutions.winograd cimport (
    ADJOINT, GRADIENT, PRODUCT, SHARES, Tiled, images_in_share,
)
from tensorlib._core.products.pair_products cimport has_pairs, mix_rows, takes_pairs
from tensorlib._core.reduce.arrange cimport fold
from tensorlib._core.reduce.schedule cimport SUM
from tensorlib._core.tensor.lanes cimport gives_lanes, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like
from tensorlib._core.tiles.copies cimport arranged_copy, cast, laid, packed, zero
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    # Up to so many elements of a weight the gradient of the input is a convolution with the weight
    # turned around; from so many places of all images on, as adding the products back is slower.
    MOST_TURNED = 1 << 18
    LEAST_TURNED = 768
    MOST_TURNED_PAIRS = 1 << 21      # products of pairs take half as long, or less
    LEAST_TURNED_PAIRS = 256
    LEAST_INS = 8    # channels of such an input at least
    # Images with more places are not joined (joined_columns.pyx): direct windows, and products of
    # pairs for gradients of weights, are faster.
    LEAST_APART = 128
    LEAST_ACROSS = 32  # output channels, to fill a panel
    LEAST_PAIRED = 3  # channels that are worth interleaving in pairs

cdef TileProgram addition = TileProgram(2, [("add", (0, 1))])


cdef int begin(Convolution* c, str name, Kind kind, Tensor like, object sizes, object weight_sizes,
               object out_sizes, object options) except -1:
    """Fills in the sizes of the input, the weight and the result, and options (stride, padding,
    dilation, groups). Raises: RuntimeError where they do not fit together."""
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
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got "
                               f"{dtype_object(like.type)}")
    fill_window(&c.window, name, like, sizes[2:], weight_sizes[2:], stride, padding, dilation,
                out_sizes[2:])
    c.kind, c.dtype, c.failed, c.share = kind, compute_dtype(like.type), False, 0
    c.direct = c.runs = c.across = c.lanes = c.rounds = False
    c.paired = 0
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


cdef bint by_channels(const Convolution* c, Depthwise* d, DepthwisePass kind) noexcept:
    """Whether the convolution is depthwise, and its padded planes are not too large."""
    d.kind, d.dtype, d.window = kind, c.dtype, &c.window
    d.images, d.groups, d.outs = c.images, c.groups, c.outs
    return c.ins == 1 and not c.plain and depthwise_fits(d)


cdef bint shift_channels(const Convolution* c, Depthwise* d) except -1:
    """Computes a depthwise result as sums of shifted planes; returns whether it did."""
    d.x, d.g, d.weight = c.x, c.g, c.weight
    return depthwise(d)


cdef Joined joined_images(const Convolution* c, Pass kind) noexcept:
    """The same pass by the columns of many images side by side (joined_columns.pyx)."""
    cdef Joined j
    j.kind, j.dtype, j.itemsize, j.window = kind, c.dtype, c.itemsize, c.window
    j.images, j.groups, j.ins, j.outs = c.images, c.groups, c.ins, c.outs
    j.im2col = <window_fn>find_window_loop(IM2COL_IMAGES, c.dtype)
    j.col2im = <window_fn>find_window_loop(COL2IM_IMAGES, c.dtype)
    j.x, j.g, j.weight = c.x, c.g, c.weight
    j.elements, j.places, j.plane = c.elements, c.places, c.plane
    return j


cdef bint turned_along(const Convolution* c) noexcept:
    """`lie_along` for the convolution that gives the gradient of the input."""
    cdef Stacked s
    lie_along(c, &s)
    s.ins, s.outs, s.taps = c.outs, c.ins, c.outs * c.elements
    s.places, s.plane = c.plane, c.places
    return not c.plain and stacked_fits(&s, False)


cdef bint is_product(const Convolution* c, Tensor a, Tensor b) noexcept:
    """Whether images are the matrices of their own columns, of bfloat16 multiplied in pairs."""
    return (c.plain and c.groups == 1 and a.type == b.type == BFLOAT16
            and takes_pairs(c.outs, c.ins, c.places))


cdef bint is_dense(const Convolution* c, Tensor a, Tensor b) noexcept:
    """Whether an image is one window, so that the layer is a linear one."""
    return (c.groups == 1 and a.type == b.type and a.numel_ > 0 and b.numel_ > 0
            and is_whole(&c.window))


cdef bint are_paired(const Convolution* c, Tensor a, Tensor b) noexcept:
    """Whether both are of bfloat16 that may be multiplied in pairs."""
    return (has_pairs() and a.type == b.type == BFLOAT16 and a.numel_ > 0 and b.numel_ > 0
            and c.ins > 1 and not c.plain)


cdef bint takes_mixed(Convolution* c, Tensor a, Tensor b, bint lanes) noexcept:
    """Whether channels are multiplied in pairs, in windows where they lie; sets whether they do
    so beside each other."""
    if not are_paired(c, a, b) or c.ins < LEAST_PAIRED:
        return False
    c.product.paired, c.product.ins, c.product.outs = c.ins, (c.ins + 1) // 2, c.outs
    c.product.taps = c.product.ins * c.elements
    c.lanes = c.product.lanes = lanes and c.groups == 1 and c.ins % 2 == 0
    if direct_fits(&c.product, &c.window):
        return True
    c.lanes = False
    return False


cdef Tensor mixed_weight(const Convolution* c, Tensor weight):
    """The pairs of channels of each element beside each other"""
    cdef Py_ssize_t nbytes = c.elements * 2, row, channel
    cdef Tensor mixed, w
    cdef char* at
    cdef const char* source
    if c.ins % 2 == 0:
        return laid(weight, BFLOAT16, True)
    w = packed(weight)
    mixed = new_of("convolution", FLOAT32, (c.groups * c.outs, (c.ins + 1) // 2, c.elements))
    at, source = mixed.data_pointer, w.data_pointer
    for row in range(c.groups * c.outs):
        for channel in range(0, c.ins, 2):
            mix_rows(source, NULL if channel + 1 == c.ins else source + nbytes, at, c.elements)
            source += nbytes * min(<Py_ssize_t>2, c.ins - channel)
            at += c.elements * c.itemsize
    return packed(exchanged(mixed, 1, 2))


cdef Tensor multiply_mixed(Convolution* c, Tensor input, Tensor weight, tuple sizes, bint wide):
    """The products of such windows with the weights; `wide`: in float32"""
    cdef Tensor y = new_of("convolution", FLOAT32 if wide else BFLOAT16, sizes)
    cdef Tensor x = laid(input, BFLOAT16, c.lanes), w = mixed_weight(c, weight)
    c.rounds = not wide
    if c.lanes:
        lay_lanes(y)
    c.paired, c.ins = c.ins, (c.ins + 1) // 2
    c.x, c.weight, c.g = x.data_pointer, w.data_pointer, y.data_pointer
    by_strips(c)
    return y


cdef tuple plain_options(tuple options):
    """Stride, padding, dilation and groups as plain ints, which no user code can change later."""
    stride, padding, dilation, groups = options
    return settled(stride), settled(padding), settled(dilation), settled(groups)


cdef Tensor with_bias(Tensor y, Tensor bias, int dtype):
    """y, a tensor of our own, plus a number for each channel; rounded once to `dtype`."""
    cdef PyObject* inputs[2]
    cdef Tensor total = y if y.type == dtype else new_like(y, dtype), b = cast(bias, dtype)
    if total is not y and gives_lanes(y):
        lay_lanes(total)
    b = with_sizes(b, (b.numel_, *(1,) * (y.ndim_ - 2)))
    inputs[0], inputs[1] = <PyObject*>y, <PyObject*>b
    if y.numel_:
        run_program(addition.at(y.type), inputs, total)
    return total


def convolve(Tensor input, Tensor weight, tuple planes, tuple options):
    """The convolution of the input with the weight. planes: the spatial sizes of the result."""
    return convolved(input, weight, planes, options, False)


def convolve_with_bias(Tensor input, Tensor weight, Tensor bias, tuple planes, tuple options):
    """The same plus a bias, which is added before half types are rounded."""
    return with_bias(convolved(input, weight, planes, options, True), bias, input.type)


cdef Tensor convolved(Tensor input, Tensor weight, tuple planes, tuple options, bint wide):
    """`convolve`. wide: the result keeps the dtype in which it is computed."""
    planes, options = settled(planes), plain_options(options)
    cdef Convolution c
    cdef Depthwise d
    cdef Joined j
    cdef Stacked s
    cdef bint lanes = are_lanes(input, weight), along
    cdef Tensor x, w, y
    cdef tuple sizes = (input.shape[0] if input.ndim_ else 0,
                        weight.shape[0] if weight.ndim_ else 0, *planes)
    begin(&c, "convolution", FORWARD, input, tuple(input.shape), tuple(weight.shape), sizes,
          options)
    if is_product(&c, input, weight):
        y = (product_of_places(laid(input, BFLOAT16, True), weight, sizes, wide) if lanes else
             product_of_images(input, weight, sizes, wide))
        return laid(y, y.type, lanes)
    if is_dense(&c, input, weight):
        y = product_of_whole(input, weight, sizes, wide)
        return laid(y, y.type, lanes)
    if takes_mixed(&c, input, weight, lanes):
        y = multiply_mixed(&c, input, weight, sizes, wide)
        return laid(y, y.type, lanes)
    y = convolved_lanes(&c, input, weight, sizes) if lanes else None
    if y is not None:
        return laid(y, c.dtype if wide else input.type, True)
    x, w = packed(cast(input, c.dtype)), packed(cast(weight, c.dtype))
    y = new_of("convolution", c.dtype, sizes)
    if x.numel_ == 0 or w.numel_ == 0:
        zero(y)
    elif y.numel_:
        c.x, c.weight, c.g = x.data_pointer, w.data_pointer, y.data_pointer
        j = joined_images(&c, JOINED_OUTPUT)
        along = lie_along(&c, &s)
        if along and c.groups == 1 and c.ins == 1:
            stacked_outputs(&s)
        elif by_channels(&c, &d, OUTPUT):
            shift_channels(&c, &d)
        elif by_tiles(&c, PRODUCT):
            pass
        elif along:
            stacked_outputs(&s)
        elif joined_fits(&j) and c.places < LEAST_APART:
            run_joined(&j)
        else:
            by_strips(&c)
    return laid(y, c.dtype if wide else input.type, lanes)


def convolve_input(Tensor grad, Tensor weight, tuple spatial, tuple options):
    """The adjoint of `convolve` for its input, whose planes have sizes `spatial`."""
    return put_back(grad, weight, spatial, options, False)


def convolve_input_with_bias(Tensor grad, Tensor weight, Tensor bias, tuple spatial,
                             tuple options):
    """The same plus a bias, which is added before half types are rounded."""
    return with_bias(put_back(grad, weight, spatial, options, True), bias, grad.type)


cdef Tensor put_back(Tensor grad, Tensor weight, tuple spatial, tuple options, bint wide):
    """`convolve_input`. wide: the result keeps the dtype in which it is computed."""
    spatial, options = settled(spatial), plain_options(options)
    cdef Convolution c
    cdef Depthwise d
    cdef Joined j
    cdef Tiled tiled
    cdef Tensor g, w, y
    cdef bint lanes = are_lanes(grad, weight), along, paired
    cdef tuple sizes = (grad.shape[0] if grad.ndim_ else 0,
                        (weight.shape[1] if weight.ndim_ > 1 else 0) * options[3], *spatial)
    begin(&c, "convolution", INPUT, grad, sizes, tuple(weight.shape), tuple(grad.shape), options)
    if is_product(&c, grad, weight):
        y = (product_of_places_gradient(laid(grad, BFLOAT16, True), weight, sizes, wide) if lanes
             else product_of_gradient(grad, weight, sizes, wide))
        return laid(y, y.type, lanes)
    if is_dense(&c, grad, weight):
        y = product_of_whole_gradient(grad, weight, sizes, wide)
        return laid(y, y.type, lanes)
    paired = are_paired(&c, grad, weight)
    y = put_back_lanes(&c, grad, weight, sizes, paired, wide) if lanes else None
    if y is not None:
        return laid(y, c.dtype if wide else grad.type, True)
    g = grad if paired else packed(cast(grad, c.dtype))
    w = arranged_copy(weight, c.dtype) if paired else packed(cast(weight, c.dtype))
    y = new_of("convolution", c.dtype, sizes)
    if g.numel_ == 0 or w.numel_ == 0:
        zero(y)
    elif y.numel_:
        c.x, c.weight, c.g = y.data_pointer, w.data_pointer, g.data_pointer
        j = joined_images(&c, JOINED_INPUT)
        along = turned_along(&c)
        if by_channels(&c, &d, ADJOINT_OF_INPUT) and shift_channels(&c, &d) or (
                not paired and by_tiles(&c, ADJOINT)):
            pass
        elif (not c.plain and (c.ins >= LEAST_INS or along)
                and w.numel_ <= (MOST_TURNED_PAIRS if paired else MOST_TURNED)
                and c.images * c.places >= (LEAST_TURNED_PAIRS if paired else LEAST_TURNED)
                and turns_around(&c.window, w, along)):
            if paired:
                w = weight
            if lanes:
                g = laid(grad, g.type, True)
            y = convolved(g, around(w, c.groups), spatial, around_options(&c.window, options),
                          wide)
        elif paired and not joined_fits(&j) and not fits_tiles(&c, ADJOINT, &tiled):
            g, w = packed(grad), lying_along(weight, c.groups)
            c.paired, c.weight, c.g = c.ins, w.data_pointer, g.data_pointer
            run_parts(&c, c.images * c.groups)
        else:
            g, w = packed(cast(g, c.dtype)), packed(w)
            c.g = j.g = g.data_pointer
            c.weight = j.weight = w.data_pointer
            if by_tiles(&c, ADJOINT):
                pass
            elif joined_fits(&j):
                run_joined(&j)
            else:
                run_parts(&c, c.images * c.groups)
    return laid(y, c.dtype if wide else grad.type, lanes)


cdef Tensor weight_of_pairs(const Convolution* c, Tensor grad, Tensor input, tuple sizes):
    """The adjoint for the weight by planes of pairs; None where columns are to be multiplied."""
    cdef Shifted s
    cdef Tensor g, x, y
    if not are_paired(c, grad, input):
        return None
    s.window, s.images, s.groups, s.ins, s.outs = c.window, c.images, c.groups, c.ins, c.outs
    s.elements, s.plane, s.places = c.elements, c.plane, c.places
    if not shifted_fits(&s):
        return None
    s.lanes = are_lanes(grad, input)
    g, x = laid(grad, BFLOAT16, s.lanes), laid(input, BFLOAT16, s.lanes)
    y = new_of("convolution", BFLOAT16, sizes)
    s.x, s.g, s.weight = x.data_pointer, g.data_pointer, y.data_pointer
    return y if multiply_shifted(&s) else None


def convolve_weight(Tensor grad, Tensor input, tuple kernel, tuple options):
    """The adjoint of `convolve` for its weight, whose windows have sizes `kernel`."""
    kernel, options = settled(kernel), plain_options(options)
    cdef Convolution c
    cdef Depthwise d
    cdef Joined j
    cdef Tiled tiled
    cdef Stacked s
    cdef bint alone, along, joined, paired, tiles
    cdef int first = 0
    cdef Tensor g, x, y
    cdef tuple sizes = (grad.shape[1] if grad.ndim_ > 1 else 0,
                        (input.shape[1] if input.ndim_ > 1 else 0) // max(1, options[3]), *kernel)
    cdef Py_ssize_t shares
    begin(&c, "convolution", WEIGHT, grad, tuple(input.shape), sizes, tuple(grad.shape), options)
    if is_product(&c, grad, input):
        if not are_lanes(grad, input):
            return product_for_weight(grad, input, sizes)
        return product_of_places_for_weight(laid(grad, BFLOAT16, True),
                                            laid(input, BFLOAT16, True), sizes)
    if is_dense(&c, grad, input):
        return product_for_whole_weight(grad, input, sizes)
    y = weight_of_lanes(&c, grad, input, sizes) if are_lanes(grad, input) else None
    if y is not None:
        return cast(y, grad.type)
    y = weight_of_pairs(&c, grad, input, sizes)
    if y is not None:
        return y
    c.lanes = are_lanes(grad, input) and fits_tiles(&c, GRADIENT, &tiled)
    g, x = laid(grad, c.dtype, c.lanes), laid(input, c.dtype, c.lanes)
    along = lie_along(&c, &s)
    alone = (by_channels(&c, &d, ADJOINT_OF_WEIGHT)         # which sums over the images itself
             and not (along and c.groups == 1))
    j = joined_images(&c, JOINED_WEIGHT)
    paired = are_paired(&c, grad, input)
    tiles = not alone and fits_tiles(&c, GRADIENT, &tiled)
    along = along and not alone and not tiles
    joined = not alone and not tiles and not along and joined_fits(&j) and not (
        paired and c.places >= LEAST_APART)
    c.share = images_in_share(&tiled) if tiles else c.images
    if not alone and not joined and not tiles:
        c.share = max(<Py_ssize_t>1, (c.images + SHARES - 1) // SHARES)
    shares = max(<Py_ssize_t>1, (c.images + c.share - 1) // max(<Py_ssize_t>1, c.share))
    if along:
        shares = shares_of_weight(&s)
    y = new_of("convolution", c.dtype, (shares, *sizes))
    if not (g.numel_ and x.numel_):
        zero(y)
    elif y.numel_:
        c.x, c.weight, c.g = x.data_pointer, y.data_pointer, g.data_pointer
        if along:
            s.x, s.g, s.weight = c.x, c.g, c.weight
            stacked_weights(&s)
        elif joined:
            j.x, j.g, j.weight = c.x, c.g, c.weight
            run_joined(&j)
        elif not (shift_channels(&c, &d) if alone else by_tiles(&c, GRADIENT)):
            g, x = packed(g), packed(x)
            c.x, c.g = x.data_pointer, g.data_pointer
            zero(y)
            if paired:
                g = packed(grad)
                c.paired, c.g = c.ins, g.data_pointer
            c.across = c.outs >= LEAST_ACROSS
            run_parts(&c, shares)
    y = fold(SUM, y, 1, &first, False, c.dtype)
    if c.across:
        y = with_sizes(exchanged(with_sizes(y, (c.groups, -1, c.outs)), 1, 2), sizes)
    return cast(y, grad.type)
