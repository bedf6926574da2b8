from tensorlib._core.tensor.tensor cimport Tensor

cdef bint laid_out_as(Tensor x, Tensor y) noexcept
cdef Tensor like_on_meta(Tensor x)
