from tensorlib._core.tensor.tensor cimport Tensor

cdef list histories_of(Tensor x, Tensor source)
cdef void overwritten(Tensor x, list histories) noexcept
