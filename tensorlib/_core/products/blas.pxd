"""Matrix products on raw memory, for other compiled modules."""

from tensorlib._core.products.panel_products cimport MatmulArgs

ctypedef void (*outer_product)(const void* a, Py_ssize_t a_row, const void* b, void* y,
                               Py_ssize_t m, Py_ssize_t n) noexcept nogil

cdef void set_outer(int dtype, outer_product run) noexcept
cdef int matmul_run(int dtype, const MatmulArgs* args) noexcept nogil
