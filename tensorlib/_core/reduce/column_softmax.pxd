cdef bint fits_columns(Py_ssize_t elements, Py_ssize_t n) noexcept nogil
cdef int columns_run(int kind, int dtype, int computed, const char* x, const char* g, char* y,
                     Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t x_slice,
                     Py_ssize_t x_row) noexcept nogil
