"""Products of matrices of half types by a vector, row by row."""

from tensorlib._core.tensor.tensor cimport Tensor

cdef bint takes_half_rows(Tensor a, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept
cdef int multiply_half_rows(Tensor a, const char* b, char* y, Py_ssize_t m,
                            Py_ssize_t k) except -1
