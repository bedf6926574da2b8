from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor signed_order(Tensor x)
cdef Tensor restored(Tensor x, int dtype)
