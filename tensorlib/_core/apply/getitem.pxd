from tensorlib._core.tensor.tensor cimport Tensor

cdef object getitem(Tensor x, object key)
cdef int setitem(Tensor x, object key, object value) except -1
