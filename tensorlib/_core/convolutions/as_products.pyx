"""Convolutions as matrix products, or as adjoints of other convolutions, of views of the images and
the weight. Outside autograd.
"""

from tensorlib._core.base.dtypes cimport FLOAT32, ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.convolutions.depthwise cimport all_finite
from tensorlib._core.layout.views cimport permuted, reshaped
from tensorlib._core.products.product cimport product, wide_product
from tensorlib._core.tensor.tensor cimport Tensor, new_view
from tensorlib._core.tiles.copies cimport packed
from tensorlib._kernels.layers.windows cimport Window

from tensorlib._core.layout.views import flip


cdef Tensor with_sizes(Tensor x, tuple sizes):
    """A view, or a copy where it must be one; one size may be -1."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d
    for d in range(len(sizes)):
        dims[d] = sizes[d]
    return reshaped("convolution", x, len(sizes), dims, True)


cdef Tensor exchanged(Tensor x, int first, int second):
    """A view with two dims exchanged."""
    cdef int order[MAX_NDIM]
    cdef int d
    for d in range(x.ndim_):
        order[d] = d
    order[first], order[second] = second, first
    return permuted(x, order)


cdef inline Tensor as_matrix(Tensor weight):
    return with_sizes(weight, (weight.dims[0], weight.dims[1]))


cdef inline Tensor as_matrices(Tensor images):
    return with_sizes(images, (images.dims[0], images.dims[1], -1))


cdef inline Tensor product_as(Tensor a, Tensor b, tuple sizes, bint wide):
    return with_sizes(wide_product("convolution", a, b) if wide else product("convolution", a, b),
                      sizes)


cdef Tensor product_of_images(Tensor images, Tensor weight, tuple sizes, bint wide):
    return product_as(as_matrix(weight), as_matrices(images), sizes, wide)


cdef Tensor product_of_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide):
    return product_as(exchanged(as_matrix(weight), 0, 1), as_matrices(grad), sizes, wide)


cdef Tensor product_for_weight(Tensor grad, Tensor images, tuple sizes):
    """The gradient of the weight, as one product over the places of all images, so that the
    sums are rounded once."""
    cdef Tensor g = with_sizes(exchanged(as_matrices(grad), 0, 1), (grad.dims[1], -1))
    cdef Tensor x = with_sizes(exchanged(as_matrices(images), 0, 1), (images.dims[1], -1))
    return with_sizes(product("convolution", g, exchanged(x, 0, 1)), sizes)


cdef Tensor as_places(Tensor images):
    """The images as a matrix with a row of channels for each place."""
    cdef Py_ssize_t[2] dims = [images.numel_ // images.dims[1], images.dims[1]]
    cdef Py_ssize_t[2] steps = [images.dims[1], 1]
    return new_view(images, 2, dims, steps, images.data_pointer)


cdef Tensor as_images(Tensor places, tuple sizes):
    """The reverse: images of these sizes in a channels-last layout."""
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Py_ssize_t[MAX_NDIM] steps
    cdef Py_ssize_t span = places.dims[1]
    cdef int d
    for d in range(len(sizes) - 1, -1, -1):
        dims[d], steps[d] = sizes[d], 1
        if d != 1:
            steps[d] = span
            span *= dims[d]
    return new_view(places, len(sizes), dims, steps, places.data_pointer)


cdef Tensor product_of_places(Tensor images, Tensor weight, tuple sizes, bint wide):
    cdef Tensor places = as_places(images), w = exchanged(as_matrix(weight), 0, 1)
    return as_images(wide_product("convolution", places, w) if wide else
                     product("convolution", places, w), sizes)


cdef Tensor product_of_places_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide):
    cdef Tensor places = as_places(grad), w = as_matrix(weight)
    return as_images(wide_product("convolution", places, w) if wide else
                     product("convolution", places, w), sizes)


cdef Tensor product_of_places_for_weight(Tensor grad, Tensor images, tuple sizes):
    return with_sizes(product("convolution", exchanged(as_places(grad), 0, 1), as_places(images)),
                      sizes)


cdef bint is_whole(const Window* w) noexcept:
    cdef int d
    for d in range(3):
        if w.out[d] != 1 or w.pad[d] or w.kernel[d] != w.size[d] or w.dilation[d] != 1:
            return False
    return True


cdef inline Tensor as_rows(Tensor x):
    """The tensor as a matrix with a row for each index of dim 0."""
    return with_sizes(x, (x.dims[0], x.numel_ // x.dims[0]))


cdef Tensor product_of_whole(Tensor images, Tensor weight, tuple sizes, bint wide):
    return product_as(as_rows(images), exchanged(as_rows(weight), 0, 1), sizes, wide)


cdef Tensor product_of_whole_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide):
    return product_as(as_rows(grad), as_rows(weight), sizes, wide)


cdef Tensor product_for_whole_weight(Tensor grad, Tensor images, tuple sizes):
    return with_sizes(product("convolution", exchanged(as_rows(grad), 0, 1), as_rows(images)),
                      sizes)


cdef Tensor around(Tensor weight, Py_ssize_t groups):
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef char* at = weight.data_pointer
    cdef int d
    if groups == 1:
        for d in range(2, weight.ndim_):
            dims[d], steps[d] = weight.dims[d], -weight.steps[d]
            at += (weight.dims[d] - 1) * weight.steps[d] * ITEMSIZE[weight.type]
        dims[0], dims[1] = weight.dims[1], weight.dims[0]
        steps[0], steps[1] = weight.steps[1], weight.steps[0]
        return new_view(weight, weight.ndim_, dims, steps, at)
    cdef tuple sizes = tuple(weight.shape)
    cdef Py_ssize_t outs = sizes[0] // groups
    cdef Tensor w = with_sizes(weight, (groups, outs, sizes[1], -1))
    return with_sizes(flip(exchanged(w, 1, 2), 3), (groups * sizes[1], outs, *sizes[2:]))


cdef Tensor lying_along(Tensor weight, Py_ssize_t groups):
    cdef Tensor w = with_sizes(weight, (groups, weight.dims[0] // groups, -1))
    return packed(exchanged(w, 1, 2))


cdef tuple around_options(const Window* w, tuple options):
    cdef int d, n = len(options[0])
    return (options[0], tuple([(w.kernel[d] - 1) * w.dilation[d] - w.pad[d]
                               for d in range(3 - n, 3)]), *options[2:])


cdef bint turns_around(const Window* w, Tensor weight, bint along) noexcept:
    """Whether the gradient of the input is to be computed as a convolution with the weight turned
    around. At most an eighth of its windows may see nothing but padding (`along`: three quarters);
    and the weight must be finite, as the products of padding with infinities would be NaN."""
    cdef Py_ssize_t plane = 1, places = 1, d
    cdef Look look
    for d in range(3):
        if w.stride[d] != 1 or w.pad[d] > (w.kernel[d] - 1) * w.dilation[d] or (
                w.out[d] != w.size[d] + 2 * w.pad[d] - (w.kernel[d] - 1) * w.dilation[d]):
            return False
        plane, places = plane * w.size[d], places * w.out[d]
    if plane > (4 * places if along else places + places // 8):
        return False
    look.x, look.dtype, look.finite = weight.data_pointer, weight.type, True
    run_alone(look_for_infinity, &look, look.x, weight.numel_)
    return look.finite


cdef struct Look:
    const char* x
    int dtype
    bint finite


cdef void look_for_infinity(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Look* look = <Look*>context
    look.finite = all_finite(look.x, end, 4 if look.dtype == FLOAT32 else 8)
