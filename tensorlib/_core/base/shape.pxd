cdef enum:
    MAX_NDIM = 64

cdef object make_size(int ndim, const Py_ssize_t* dims)
cdef Py_ssize_t count(str name, int ndim, const Py_ssize_t* dims) except -1
cdef int parse_shape(str name, object given, Py_ssize_t* dims) except -1
cdef int wrap_dim(str name, object dim, int ndim) except -1
cdef int parse_dims(str name, object dim, int ndim, int* dims) except -1
cdef void row_major(int ndim, const Py_ssize_t* dims, Py_ssize_t* strides) noexcept nogil
cdef int broadcast(str name, int ndim_a, const Py_ssize_t* a, int ndim_b, const Py_ssize_t* b,
                   Py_ssize_t* dims) except -1
cdef bint is_packed(int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps) noexcept nogil
