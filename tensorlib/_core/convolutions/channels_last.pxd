"""Convolutions of channels-last images, and what contiguous images share with them."""

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
    """Whether the result for two tensors is to have a channels-last layout."""
    return a.ndim_ > 3 and (gives_lanes(a) or gives_lanes(b))

# The three passes, in the dtype in which they are computed. None where a contiguous copy of the
# images is faster. Raise: MemoryError.
cdef Tensor convolved_lanes(Convolution* c, Tensor input, Tensor weight, tuple sizes)
cdef Tensor put_back_lanes(Convolution* c, Tensor grad, Tensor weight, tuple sizes, bint paired,
                           bint wide)
cdef Tensor weight_of_lanes(Convolution* c, Tensor grad, Tensor input, tuple sizes)
