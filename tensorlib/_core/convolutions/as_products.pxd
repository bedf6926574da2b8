"""Images and weights of convolutions under other sizes."""

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._kernels.layers.windows cimport Window

# Convolutions with windows of one element, for which an image is the matrix of its own columns:
# images (B, C, *), weights (O, C, *) with sizes of 1 for the last *. `wide`: the result keeps the
# dtype in which it is computed.
cdef Tensor with_sizes(Tensor x, tuple sizes)
cdef Tensor exchanged(Tensor x, int first, int second)
cdef Tensor product_of_images(Tensor images, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_for_weight(Tensor grad, Tensor images, tuple sizes)

# The same where an image is one window: (B, C, *) and (O, C, *) of the same sizes.
cdef Tensor product_of_whole(Tensor images, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_whole_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_for_whole_weight(Tensor grad, Tensor images, tuple sizes)
cdef bint is_whole(const Window* w) noexcept

# The same for channels-last images, (B, *, C) in memory: each place is a row of a matrix. `sizes`
# are those of the result, which has the same layout, or of the weight.
cdef Tensor as_places(Tensor images)
cdef Tensor product_of_places(Tensor images, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_places_gradient(Tensor grad, Tensor weight, tuple sizes, bint wide)
cdef Tensor product_of_places_for_weight(Tensor grad, Tensor images, tuple sizes)

# The weight (groups * C, O, *kernel) by which a convolution is the adjoint of one with a weight
# (groups * O, C, *kernel): a view where there is one group.
cdef Tensor around(Tensor weight, Py_ssize_t groups)

# The weight as (groups, C * elements of a window, O), contiguous.
cdef Tensor lying_along(Tensor weight, Py_ssize_t groups)

# The gradient of the input as a convolution with the weight turned around: its stride, padding,
# dilation and groups, and whether it is faster; for contiguous weights of float32 or float64.
cdef tuple around_options(const Window* w, tuple options)
cdef bint turns_around(const Window* w, Tensor weight, bint along) noexcept
