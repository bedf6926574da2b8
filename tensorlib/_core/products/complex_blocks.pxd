"""Blocks of complex matrices, with the signatures of the kernels for real ones."""

# x (n) := its conjugate; nothing for real numbers
cdef void conjugate(int dtype, char* x, Py_ssize_t n) noexcept nogil

# found[dtype] := the function of this name for complex64 and complex128
cdef int find_blocks(str name, void** found) except -1

# p := a complex b (k, n), or its conjugate, or minus these, as the real matrix (2 k, 2 n) by which
# complex rows, as they lie, are multiplied, packed into panels
cdef void pack_complex(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col,
                       bint conjugated, bint negated, char* p, Py_ssize_t k,
                       Py_ssize_t n) noexcept nogil
