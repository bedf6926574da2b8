"""Depthwise convolutions of channels-last images in float32."""

from tensorlib._core.convolutions.depthwise cimport DepthwisePass
from tensorlib._kernels.layers.windows cimport Window

ctypedef struct Lanes:
    DepthwisePass kind
    const Window* window
    char* x                      # (images, *size, channels)
    char* g                      # (images, *out, channels)
    char* weight                 # (*kernel, channels)
    Py_ssize_t images, channels
    # set by `depthwise_lanes`
    Py_ssize_t taps, blocks
    Py_ssize_t* plan             # of a row: see `plan_row`
    Py_ssize_t segments
    bint failed, infinite

# Whether the channels fill at least one vector.
cdef bint lanes_fit(int dtype, Py_ssize_t channels) noexcept

# Computes what `kind` says. Returns whether it did: not where padding would be multiplied by
# something that is not finite. Raises: MemoryError.
cdef bint depthwise_lanes(Lanes* d) except -1
