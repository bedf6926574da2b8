from tensorlib._core.tensor.tensor cimport Tensor

cdef int chosen_dims(str name, object dim, Tensor x, int* dims) except -1
cdef int floating_result(str name, Tensor x, object dtype) except -1
