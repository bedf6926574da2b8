"""Images and weights of convolutions under other sizes."""

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._kernels.windows cimport Window

# The products of convolutions with windows of one element, whose images are their own columns:
# of images (B, C, *) and weights (O, C, *), whatever sizes of 1 stand in the place of the last *;
# `wide`: in the dtype in which they are computed.
cdef Tensor with_sizes(Tensor x, tuple sizes)
cdef Tensor exchanged(Tensor x, int first, int second)
cdef Tensor product_of_images(Tensor images, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_for_weight(Tensor grad, Tensor images, tuple sizes)

# The same where an image is one window: (B, C, *) and (O, C, *) with as many places.
cdef Tensor product_of_whole(Tensor images, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_whole_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_for_whole_weight(Tensor grad, Tensor images, tuple sizes)
cdef bint is_whole(const Window* w) noexcept

# The same of images whose channels lie beside each other, (B, *, C) in memory: the places are rows.
# `sizes` are of the result, which lies in the same way, or of the weight.
cdef Tensor as_places(Tensor images)
cdef Tensor product_of_places(Tensor images, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_places_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_places_for_weight(Tensor grad, Tensor images, tuple sizes)

# The weight (groups * C, O, *kernel) by which a convolution is the adjoint of one with a weight
# (groups * O, C, *kernel).
cdef Tensor around(Tensor weight, Py_ssize_t groups)

# The weight as (groups, C * elements of a window, O), contiguous.
cdef Tensor lying_along(Tensor weight, Py_ssize_t groups)

# Of the weight turned around: stride, padding, dilation and groups, and whether it is faster, of a
# weight that is contiguous and of float32 or float64.
cdef tuple around_options(const Window* w, tuple options)
cdef bint turns_around(const Window* w, Tensor weight, bint along) noexcept
