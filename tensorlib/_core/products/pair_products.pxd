"""Products of bfloat16 in float32, by pairs, on processors with instructions for that."""

from tensorlib._core.products.panel_products cimport Block, MatmulArgs

cdef enum:
    PAIRED_WIDTH = 32       # columns of a panel

# Whether a product of these sizes is faster so. The rows of its `a` are contiguous; either the rows
# or the columns of its b are where it has so few rows that b is not packed.
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

# y (m, n) of float32 := a (m, k) @ b; strides in elements,
cdef void multiply_pairs(const char* a, Py_ssize_t a_row, const char* b, Py_ssize_t b_row,
                         Py_ssize_t b_col, char* y, Py_ssize_t m, Py_ssize_t k,
                         Py_ssize_t n) noexcept nogil

# y (n) of bfloat16 := x of float32, as results are rounded,
cdef void round_results(const char* x, char* y, Py_ssize_t n) noexcept nogil

# and the same by panels of b: p := `count` columns of k rows, and y := or += a @ them.
cdef void pack_paired_panel(const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p,
                            Py_ssize_t k, Py_ssize_t count) noexcept nogil
cdef void multiply_paired_panel(const char* a, Py_ssize_t a_row, const char* p, char* y,
                                Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t count,
                                bint adds) noexcept nogil
