from tensorlib._core.tensor.tensor cimport Tensor

cdef object from_data(object data, int dtype_or_minus1, str name=*)
cdef object constructed(object data, int dtype_or_minus1)
cdef Tensor existing(object data)
