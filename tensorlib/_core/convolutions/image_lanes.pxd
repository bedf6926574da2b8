"""Convolutions of many small images, which lie along the vectors."""

from tensorlib._kernels.windows cimport Window

ctypedef struct Stacked:
    int dtype
    Py_ssize_t itemsize, images, groups, ins, outs
    const Window* window
    char* x              # (images, groups * ins, *size)
    char* g              # (images, groups * outs, *out)
    char* weight         # (groups * outs, taps), or so many for each share
    Py_ssize_t taps, places, plane           # of a window, of the result, of the input
    Py_ssize_t parts     # blocks of images that lie along vectors
    Py_ssize_t shares    # of parts whose gradients of the weight are added up apart
    Py_ssize_t* rows     # of each place and tap the row of the turned input
    bint failed

# Whether results, or gradients of the weight, are faster so.
cdef bint stacked_fits(const Stacked* s, bint weights) noexcept nogil

# g := the products of the windows of x with the weights. Raises: MemoryError.
cdef int stacked_outputs(Stacked* s) except -1

# How many gradients of the weight there will be, whose sum it is; and these, from x and g.
cdef Py_ssize_t shares_of_weight(Stacked* s) noexcept
cdef int stacked_weights(Stacked* s) except -1
