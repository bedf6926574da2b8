from cpython.object cimport PyObject

from tensorlib._core.tensor.tensor cimport Tensor

cdef int scalar_dtype(object value) except -1
cdef bint write_row(char* out, int id, PyObject** values, Py_ssize_t n, bint held) except -1
cdef object element(Tensor x)
cdef object item_of(Tensor x)
cdef object exact_number(object value)
cdef double as_real(object value) except? -1.0
