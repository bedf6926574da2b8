"""Depthwise convolutions of images whose channels lie beside each other, of float32."""

from tensorlib._core.convolutions.depthwise cimport DepthwisePass
from tensorlib._kernels.windows cimport Window

ctypedef struct Lanes:
    DepthwisePass kind
    const Window* window
    char* x                      # (images, *size, channels)
    char* g                      # (images, *out, channels)
    char* weight                 # (*kernel, channels)
    Py_ssize_t images, channels
    # what `depthwise_lanes` finds
    Py_ssize_t taps, blocks
    Py_ssize_t* plan             # of a row: see `plan_row`
    Py_ssize_t segments
    bint failed, infinite

# Whether a vector has no more elements than there are channels.
cdef bint lanes_fit(int dtype, Py_ssize_t channels) noexcept

# Computes what `kind` says; gives whether it was done, which it is not where zeros around an image
# would meet something that is not finite. Raises: MemoryError.
cdef bint depthwise_lanes(Lanes* d) except -1
