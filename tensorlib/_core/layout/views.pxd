from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor view_of(Tensor x, int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps, char* data)
cdef Tensor reshaped(str name, Tensor x, int ndim, Py_ssize_t* dims, bint may_copy)
cdef Tensor expanded(str name, Tensor x, int ndim, const Py_ssize_t* dims)
cdef Tensor permuted(Tensor x, const int* order)
cdef Tensor in_format(str name, Tensor x, object memory_format)
