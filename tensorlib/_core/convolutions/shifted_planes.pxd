"""Gradients of weights in bfloat16 by planes of the input that are shifted, not copied."""

from tensorlib._kernels.layers.windows cimport Window

ctypedef struct Shifted:
    Window window
    Py_ssize_t images, groups, ins, outs, elements, plane, places
    const char* x                # (images, groups * ins, plane) of bfloat16
    const char* g                # (images, groups * outs, places)
    bint lanes                   # or both with channels beside each other
    char* weight                 # (groups * outs, ins, elements) of bfloat16
    Py_ssize_t first, together   # images of which the planes are there
    Py_ssize_t area              # elements of a part of the planes of an image
    Py_ssize_t count             # and of those of all these images, rounded up
    Py_ssize_t line              # elements from one channel to the next
    Py_ssize_t panels            # of the gradient of a group
    char* planes
    char* packed
    char* sums                   # of each part of the work, where images come in turn; or NULL
    bint infinite                # an element of x is not finite
    bint failed

cdef bint shifted_fits(Shifted* s) noexcept
# Whether it was computed: not where zeros between the windows would meet an infinity. Raises:
# MemoryError.
cdef bint multiply_shifted(Shifted* s) except -1
