from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor from_data(object data, int dtype_or_minus1)
cdef Tensor existing(object data)
