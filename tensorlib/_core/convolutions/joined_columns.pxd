"""Convolutions of small images by a large weight: one product for the columns of many images."""

from tensorlib._core.layers.windows cimport window_fn
from tensorlib._kernels.layers.windows cimport Window

cdef enum Pass:
    JOINED_OUTPUT        # g := weight @ columns of x
    JOINED_INPUT         # x := the columns weight.T @ g, put back
    JOINED_WEIGHT        # weight := g @ (columns of x).T

ctypedef struct Joined:
    Pass kind
    int dtype
    Py_ssize_t itemsize, images, groups, ins, outs
    Window window
    window_fn im2col
    window_fn col2im
    char* x              # (images, groups * ins, *size)
    char* g              # (images, groups * outs, *out)
    char* weight         # (groups * outs, ins * elements of a window)
    Py_ssize_t elements, places, plane       # of a window, of a result plane, of an input plane
    Py_ssize_t together  # images whose columns are one matrix
    Py_ssize_t channels  # whose gradients of the input are computed together
    bint failed

# Whether a pass is faster this way than image by image; and than by Winograd's algorithm.
cdef bint joined_fits(const Joined* j) noexcept nogil

# Runs it. Raises: MemoryError.
cdef int run_joined(Joined* j) except -1

# y (m, n) += more; steps in elements
cdef void add_rows(int dtype, const char* more, char* y, Py_ssize_t y_row, Py_ssize_t m,
                   Py_ssize_t n) noexcept nogil
