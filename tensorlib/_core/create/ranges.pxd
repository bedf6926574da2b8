cdef Py_ssize_t plain_size(str name, str argument, object value) except -1
