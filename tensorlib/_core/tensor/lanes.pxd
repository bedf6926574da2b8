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


cdef inline void lay_lanes(Tensor y) noexcept:
    """Gives a new tensor (N, C, *) the layout in which channels lie beside each other."""
    cdef Py_ssize_t span = y.dims[1], rest = y.steps[1]
    cdef int d
    y.packed = y.dims[1] == 1 or rest == 1
    y.steps[1] = 1
    for d in range(y.ndim_ - 1, 1, -1):
        y.steps[d] = span
        span *= y.dims[d]
