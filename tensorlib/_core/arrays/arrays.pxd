from cpython.buffer cimport Py_buffer

from tensorlib._core.tensor.tensor cimport Tensor

cdef int numpy_id(object array) noexcept
cdef Tensor from_ndarray(str name, object array)
cdef object window(Tensor x)
cdef object numpy_view(Tensor x)
cdef int fill_buffer(Tensor x, Py_buffer* buffer, int flags) except -1
