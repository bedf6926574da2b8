from libc.stdint cimport int64_t

from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.tensor.lanes cimport lanes_of
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport cast_loop
from tensorlib._kernels.layers.windows cimport Window

ctypedef struct Work:
    void* loop
    const char* x
    char* y
    int64_t* at
    const Window* w
    Py_ssize_t x_plane, y_plane, n   # bytes of a plane, and its windows
    Py_ssize_t lanes                 # the channels of channels-last planes, else 0
    bint wrong
    range_fn planes                  # of half types that are widened part by part, whose loops run
    cast_loop widen                  # on parts in float32; else NULL
    cast_loop narrow
    bint adds, failed                # it adds to zeros; there was no memory


cdef inline Py_ssize_t lanes_of_planes(Tensor x, bint lanes) noexcept:
    """The channels of channels-last planes whose places fit an int32; else 0."""
    cdef Py_ssize_t count = lanes_of(x) if lanes else 0
    return count if count and x.numel_ // (x.dims[0] * count) < 0x7FFFFFFF else 0


cdef int run(Work* work, range_fn fn, Py_ssize_t planes, Py_ssize_t cost) except -1
cdef int run_parts(Work* work, range_fn fn, bint by_rows, Py_ssize_t planes,
                   Py_ssize_t cost) except -1
cdef Tensor taken(Work* work, Tensor x, const Window* w, bint lanes, bint back)
