from tensorlib._core.tensor.tensor cimport Tensor

cdef int check_sizes(tuple sizes, Tensor x) except -1
cdef Tensor wrapped(Tensor x, Py_ssize_t size, Py_ssize_t dim, str name=*)
