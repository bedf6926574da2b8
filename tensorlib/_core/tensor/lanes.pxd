"""Tensors (N, C, *) whose channels lie beside each other, as the format channels-last has them."""

from tensorlib._core.tensor.tensor cimport Tensor


cdef inline Py_ssize_t lanes_of(Tensor x) noexcept:
    """The channels of (N, C, *) if they lie beside each other, and all else in its order; or 0."""
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
    """Whether the channels of what images or volumes (N, C, *) give are to lie beside each other:
    where theirs do, be it with gaps. As in PyTorch, strides of dims of size 1 count, too."""
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
    """Gives a new tensor (N, C, *) the layout in which channels lie beside each other."""
    cdef Py_ssize_t span = y.dims[1], rest = y.steps[1]
    cdef int d
    y.packed = y.dims[1] == 1 or rest == 1
    y.steps[1] = 1
    for d in range(y.ndim_ - 1, 1, -1):
        y.steps[d] = span
        span *= y.dims[d]
