from tensorlib._core.tensor cimport Tensor

cdef Tensor from_data(object data, int id)
cdef Tensor from_ndarray(str name, object array)
cdef Tensor cast_copy(Tensor x, int id)
cdef object window(Tensor x)
cdef object item(Tensor x)
