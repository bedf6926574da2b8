"""Tensors (N, C, *) in the memory format channels-last, where the channels are contiguous."""

from tensorlib._core.tensor.tensor cimport Tensor


cdef inline Py_ssize_t lanes_of(Tensor x) noexcept:
    """The number of channels of a channels-last tensor (N, C, *); 0 in any other format."""
    cdef Py_ssize_t span
    cdef int d
    if x.packed or x.ndim_ < 3 or x.numel_ == 0 or x.steps[1] != 1:
        return 0
    span = x.dims[1]
    for d in range(x.ndim_ - 1, 1, -1):
        if x.dims[d] != 1 and x.steps[d] != span:
            return 0
        span *= x.dims[d]
    return x.dims[1] if x.dims[0] == 1 or x.steps[0] == span else 0


cdef inline bint gives_lanes(Tensor x) noexcept:
    """Whether results of images or volumes (N, C, *) are to be channels-last: if these are,
    possibly with gaps. As in PyTorch, strides of dims of size 1 count, too."""
    cdef Py_ssize_t least
    cdef int d, last = x.ndim_ - 1
    if not 3 <= last <= 4:
        return lanes_of(x) > 0
    if x.steps[1] > x.steps[last] or x.steps[1] <= 0 or x.numel_ == 0:
        return False
    least = x.steps[1] * x.dims[1]
    for d in range(last, 1, -1):
        if x.steps[d] < least:
            return False
        least = x.steps[d] * x.dims[d]
    return x.steps[0] >= least and least != x.steps[1]


cdef inline void lay_lanes(Tensor y) noexcept:
    """Gives a new tensor (N, C, *) the strides of channels-last."""
    cdef Py_ssize_t span = y.dims[1], rest = y.steps[1]
    cdef int d
    y.packed = y.dims[1] == 1 or rest == 1
    y.steps[1] = 1
    for d in range(y.ndim_ - 1, 1, -1):
        y.steps[d] = span
        span *= y.dims[d]
