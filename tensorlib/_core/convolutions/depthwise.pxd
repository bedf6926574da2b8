"""Depthwise convolutions: each output channel sees one channel of the input."""

from tensorlib._kernels.windows cimport Window

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
    # what `depthwise_fits` and `depthwise` find
    Py_ssize_t itemsize, taps
    Py_ssize_t high[3]           # of the planes of one phase
    Py_ssize_t phase, phases     # elements of one, and how many there are
    Py_ssize_t lead              # zeros before the planes, which taps of an adjoint look back to
    Py_ssize_t rows              # of a phase that are computed at a time
    Py_ssize_t tall              # rows of taps that read rows one below the other, or 0
    Py_ssize_t* order            # the taps, phase after phase for the adjoint of the input, ...
    Py_ssize_t* shift            # ... how far each looks, ...
    Py_ssize_t* start            # ... and where those of a phase begin
    bint failed, infinite

cdef bint all_finite(const char* x, Py_ssize_t n, int itemsize) noexcept nogil
cdef bint depthwise_fits(Depthwise* d) noexcept
cdef bint depthwise(Depthwise* d) except -1
