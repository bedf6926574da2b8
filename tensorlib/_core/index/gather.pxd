from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor wrapped(Tensor x, Py_ssize_t size, Py_ssize_t dim, str name=*)
