"""Convolutions of images whose channels lie beside each other; and what planes share with them."""

from tensorlib._core.convolutions.columns cimport Convolution
from tensorlib._core.convolutions.image_lanes cimport Stacked
from tensorlib._core.convolutions.winograd cimport Tiled, WinogradPass
from tensorlib._core.tensor.lanes cimport gives_lanes
from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor new_of(str name, int dtype, object sizes)
cdef bint fits_tiles(const Convolution* c, WinogradPass kind, Tiled* i) noexcept
cdef bint by_tiles(const Convolution* c, WinogradPass kind) except -1
cdef bint lie_along(const Convolution* c, Stacked* s) noexcept

cdef inline bint are_lanes(Tensor a, Tensor b) noexcept:
    """Whether the channels of what comes of two tensors are to lie beside each other."""
    return a.ndim_ > 3 and (gives_lanes(a) or gives_lanes(b))

# The passes, as the dtype that is computed; None where planes are faster. Raise: MemoryError.
cdef Tensor convolved_lanes(Convolution* c, Tensor input, Tensor weight, tuple sizes)
cdef Tensor put_back_lanes(Convolution* c, Tensor grad, Tensor weight, tuple sizes)
cdef Tensor weight_of_lanes(Convolution* c, Tensor grad, Tensor input, tuple sizes)
