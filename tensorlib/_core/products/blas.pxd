"""Matrix products on memory given by pointers, for other compiled modules."""

from tensorlib._core.products.panel_products cimport MatmulArgs

cdef int matmul_run(int dtype, const MatmulArgs* args) noexcept nogil
cdef bint matmul_adds(int dtype, const MatmulArgs* args, const char* row) noexcept nogil
cdef void multiply_matrices(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                            const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* y,
                            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                            Py_ssize_t n) noexcept nogil
