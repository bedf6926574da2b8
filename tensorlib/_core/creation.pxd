from tensorlib._core.tensor cimport Tensor

cdef int chosen_dtype(object dtype, object out, int otherwise) except -1
cdef int check_options(str name, object layout, object device, object pin_memory) except -1
cdef Tensor sized(str name, tuple size, object size_keyword, int dtype)
cdef Tensor tensor_argument(str name, object value)
cdef object plain_number(str name, str argument, object value)
cdef Py_ssize_t plain_size(str name, str argument, object value) except -1
cdef object finish(str name, Tensor x, object out, object requires_grad)
cdef int fill_number(str name, Tensor x, object value) except -1
cdef Tensor new_arranged_as(Tensor x, int dtype)
