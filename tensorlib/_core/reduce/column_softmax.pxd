cdef bint fits_columns(Py_ssize_t elements) noexcept nogil
cdef int columns_run(int kind, int dtype, int computed, const char* x, const char* g, char* y,
                     Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil
