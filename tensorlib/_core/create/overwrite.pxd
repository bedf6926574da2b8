from tensorlib._core.tensor.tensor cimport Tensor

cdef int overwritten(Tensor x, Tensor source) except -1
