"""Products of bfloat16 in float32, by pairs, on processors with instructions for that."""

from tensorlib._core.products.panel_products cimport Block, MatmulArgs

# Whether a product of these sizes is faster this way. The rows of `a` must be contiguous; and, with
# so few rows that b is not packed, the rows or the columns of b.
cdef bint takes_pairs(Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil

# Whether b is packed: then it may have any strides, and y may be bfloat16.
cdef bint packs_pairs(Py_ssize_t m) noexcept nogil

# Computes a block of y, float32 or bfloat16.
cdef void block_by_pairs(const MatmulArgs* args, Block block) noexcept nogil

# For other modules: whether the processor multiplies pairs.
cdef bint has_pairs() noexcept nogil

# p (n) := pairs of an element of a and one of b, or of zero if b is NULL.
cdef void mix_rows(const char* a, const char* b, char* p, Py_ssize_t n) noexcept nogil

# y (m, n) := float32 x, rounded to bfloat16. The rows of y have even lengths.
cdef void round_rows(const char* x, Py_ssize_t m, Py_ssize_t n, char* y) noexcept nogil

# y (m, n), float32 := a (m, k) @ b; strides in elements.
cdef void multiply_pairs(const char* a, Py_ssize_t a_row, const char* b, Py_ssize_t b_row,
                         Py_ssize_t b_col, char* y, Py_ssize_t m, Py_ssize_t k,
                         Py_ssize_t n) noexcept nogil
