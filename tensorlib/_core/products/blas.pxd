"""Matrix products on memory given by pointers, for other compiled modules."""

from tensorlib._core.products.panel_products cimport MatmulArgs

ctypedef void (*outer_product)(const void* a, Py_ssize_t a_row, const void* b, void* y,
                               Py_ssize_t m, Py_ssize_t n) noexcept nogil
ctypedef void (*narrow_products)(const void* a, const Py_ssize_t* a_steps, const void* b,
                                 const Py_ssize_t* b_steps, void* y, Py_ssize_t batch,
                                 Py_ssize_t m, Py_ssize_t k) noexcept nogil

cdef void set_outer(int dtype, outer_product run) noexcept
cdef void set_narrow(int dtype, int columns, narrow_products run) noexcept
cdef int matmul_run(int dtype, const MatmulArgs* args) noexcept nogil
cdef bint matmul_adds(int dtype, const MatmulArgs* args, const char* row) noexcept nogil
