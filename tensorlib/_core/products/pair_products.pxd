"""Products of bfloat16 in float32, by pairs, on processors that multiply those."""

from tensorlib._core.products.panel_products cimport Block, MatmulArgs

# Whether a product of these sizes is faster so. The rows of its `a` are contiguous; either the rows
# or the columns of its b are where it has so few rows that b is not packed.
cdef bint takes_pairs(Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil
cdef bint takes_any_strides(Py_ssize_t m) noexcept nogil

# Whether such a product is of one part, so that y may be of bfloat16.
cdef bint pairs_round(Py_ssize_t m, Py_ssize_t k) noexcept nogil

# The rows and columns of a block of y, of float32 or bfloat16.
cdef void block_by_pairs(const MatmulArgs* args, Block block) noexcept nogil
