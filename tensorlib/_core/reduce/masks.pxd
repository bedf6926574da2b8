from libc.stdint cimport int64_t

from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor nonzero_mask(Tensor x)
cpdef Tensor nonzero(Tensor x)
cdef list true_positions(Tensor mask)
cdef int count_nonzero(Tensor x, int64_t* count) except -1
cdef Py_ssize_t number_true(Tensor mask) except -1
cdef Py_ssize_t count_true(const char* mask, Py_ssize_t n) noexcept nogil
