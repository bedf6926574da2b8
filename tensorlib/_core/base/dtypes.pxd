cdef enum:
    BOOL = 0
    UINT8 = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    COMPLEX64 = 13
    COMPLEX128 = 14
    N_DTYPES = 15

cdef enum:
    BOOLEAN_KIND = 0
    INTEGER_KIND = 1
    FLOAT_KIND = 2
    COMPLEX_KIND = 3

cdef class dtype:
    cdef readonly str name
    cdef int id

cdef class AbsentDtype(dtype):
    cdef Py_ssize_t width
    cdef int kind
    cdef bint signed

cdef Py_ssize_t* ITEMSIZE          # bytes of an element, by dtype id
cdef int* KIND                     # boolean, integer, floating or complex, by dtype id

cdef object dtype_object(int id)
cdef int dtype_id(object value) except -1
cdef int promote(str name, int a, int b) except -1
cdef bint is_unsigned(int id) noexcept nogil
cdef int signed_twin(int id) noexcept nogil
cdef int compute_dtype(int id) noexcept nogil
cdef int complex_of(int id) noexcept nogil
cdef int real_of(int id) noexcept nogil
cdef int default_float() noexcept nogil
cdef int from_numpy_dtype(object value, str name=*) except -1
cdef object to_numpy_dtype(int id)
