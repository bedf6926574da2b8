"""Depthwise convolutions: each output channel sees one channel of the input."""

from tensorlib._kernels.layers.windows cimport Window

cdef enum DepthwisePass:
    OUTPUT                       # g := the products of the windows of x with the weight
    ADJOINT_OF_INPUT             # x := the adjoint for the input, of g
    ADJOINT_OF_WEIGHT            # weight := the adjoint for the weight, of g and x

ctypedef struct Depthwise:
    DepthwisePass kind
    int dtype
    const Window* window
    char* x                      # (images, groups, *size)
    char* g                      # (images, groups * outs, *out)
    char* weight                 # (groups * outs, *kernel)
    Py_ssize_t images, groups, outs
    # set by `depthwise_fits` and `depthwise`
    Py_ssize_t itemsize, taps
    Py_ssize_t high[3]           # the sizes of the planes of one phase
    Py_ssize_t phase, phases     # elements of a phase, and the number of phases
    Py_ssize_t lead              # zeros before the planes, which the taps of an adjoint read
    Py_ssize_t rows              # of a phase that are computed at a time
    Py_ssize_t tall              # rows of taps that read consecutive rows, or 0
    Py_ssize_t* order            # the taps; for the adjoint of the input phase by phase
    Py_ssize_t* shift            # the offset at which each tap reads
    Py_ssize_t* start            # the first tap of each phase
    bint failed, infinite

cdef bint all_finite(const char* x, Py_ssize_t n, int itemsize) noexcept nogil
cdef bint depthwise_fits(Depthwise* d) noexcept
cdef bint depthwise(Depthwise* d) except -1
