from libc.stdint cimport int64_t

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._kernels.layers.windows cimport Window

cdef enum Loop:
    IM2COL
    COL2IM
    IM2COL_IMAGES
    COL2IM_IMAGES
    MAX_POOL
    MAX_ROWS
    PUT_PLACES
    AVG_POOL
    AVG_POOL_BACKWARD
    MAX_LANES
    PUT_LANES
    MEAN_LANES
    MEAN_LANES_BACKWARD
    LOOPS

ctypedef void (*window_fn)(const char* x, char* y, const Window* w,
                           Py_ssize_t planes) noexcept nogil

cdef void* find_window_loop(Loop loop, int dtype) noexcept nogil
cdef int fill_window(Window* w, str name, Tensor x, object spatial, object kernel, object stride,
                     object padding, object dilation, object out) except -1

