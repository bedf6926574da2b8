from tensorlib._core.tensor.tensor cimport Tensor

cdef bint is_rotated(Tensor a) noexcept
cdef int rotate_all(Tensor a, Tensor x, Tensor y) except -1
