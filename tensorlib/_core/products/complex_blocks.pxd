"""Blocks of complex matrices, with the signatures of the kernels for real ones."""

# x (n) := its conjugate; nothing for real numbers
cdef void conjugate(int dtype, char* x, Py_ssize_t n) noexcept nogil

# x (n, m), column-major := the first n columns of the product of the k reflections in it, which has
# at most FEW_ROWS rows
cdef enum:
    FEW_ROWS = 16            # up to which loops take less time than packing for panels
cdef void multiply_reflections(int dtype, char* x, const char* taus, Py_ssize_t m, Py_ssize_t n,
                               Py_ssize_t k) noexcept nogil

# found[dtype] := the function of this name for complex64 and complex128
cdef int find_blocks(str name, void** found) except -1

# p := a complex b (k, n), or its conjugate, or minus these, as the real matrix (2 k, 2 n) by which
# complex rows, as they lie, are multiplied, packed into panels
cdef void pack_complex(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col,
                       bint conjugated, bint negated, char* p, Py_ssize_t k,
                       Py_ssize_t n) noexcept nogil
