"""Matrix products on memory given by pointers, for other compiled modules."""

from tensorlib._core.products.panel_products cimport MatmulArgs

cdef int matmul_run(int dtype, const MatmulArgs* args) noexcept nogil
cdef bint matmul_adds(int dtype, const MatmulArgs* args, const char* row) noexcept nogil
