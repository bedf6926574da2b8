"""Convolutions by the columns of each image."""

from tensorlib._core.convolutions.direct cimport Direct
from tensorlib._core.convolutions.strips cimport Strips
from tensorlib._core.layers.windows cimport window_fn
from tensorlib._kernels.layers.windows cimport Window

cdef enum Kind:
    FORWARD          # y := weight @ columns of x
    INPUT            # y := the columns weight.T @ x, put back
    WEIGHT           # y := x @ (columns of the input).T

ctypedef struct Convolution:
    Kind kind
    int dtype
    Window window
    window_fn im2col
    window_fn col2im
    char* x              # the input: (images, groups * ins, *size)
    char* g              # the result: (images, groups * outs, *out)
    char* weight         # (groups * outs, ins * elements of a window)
    Py_ssize_t images, groups, ins, outs, elements, places, plane, itemsize, share
    Py_ssize_t paired    # the channels of x if x and the weight (or g and the weight, backward) are
                         # bfloat16, else 0; forward two channels count as one of `ins`
    bint across          # gradients of the weight are transposed: (elements of a window, outs)
    Strips strips        # of the result of an image
    bint rounds          # the result of these is of bfloat16
    bint plain           # an image is the matrix of its own columns
    bint lanes           # x and g are channels-last, for windows of one element; or `direct` with
                         # one group, where the weight is, too
    bint direct          # windows are multiplied where they lie (direct.pyx),
    bint runs            # or rows of neighbouring windows are
    Direct product
    char* panels         # of the weight of each group, where `direct`
    size_t nbytes        # of these
    bint failed

# The passes of a convolution; forward by strips that stay in the caches. Raise: MemoryError.
cdef int run_parts(Convolution* c, Py_ssize_t parts) except -1
cdef int by_strips(Convolution* c) except -1
