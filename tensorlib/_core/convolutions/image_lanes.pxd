"""Convolutions of many small images, with one image in each lane of a vector."""

from tensorlib._kernels.layers.windows cimport Window

ctypedef struct Stacked:
    int dtype
    Py_ssize_t itemsize, images, groups, ins, outs
    const Window* window
    char* x              # (images, groups * ins, *size)
    char* g              # (images, groups * outs, *out)
    char* weight         # (groups * outs, taps), or so many for each share
    Py_ssize_t taps, places, plane           # elements of a window, a result plane, an input plane
    Py_ssize_t parts     # blocks of images that are transposed together
    Py_ssize_t shares    # groups of parts, each with its own sum for the gradient of the weight
    Py_ssize_t* rows     # for each place and tap the row of the transposed input
    bint failed

# Whether results, or gradients of the weight, are faster this way.
cdef bint stacked_fits(const Stacked* s, bint weights) noexcept nogil

# g := the products of the windows of x with the weights. Raises: MemoryError.
cdef int stacked_outputs(Stacked* s) except -1

# The number of partial gradients of the weight; and these, from x and g.
cdef Py_ssize_t shares_of_weight(Stacked* s) noexcept
cdef int stacked_weights(Stacked* s) except -1
