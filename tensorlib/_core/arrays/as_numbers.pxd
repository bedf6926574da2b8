from tensorlib._core.tensor.tensor cimport Tensor

cpdef bint in_graph(object value) noexcept
cdef bint is_linked(object value)
cpdef bint differentiating() noexcept
cdef object number_of(Tensor x)
cdef int warn_of_number() except -1
cdef int warn_of_copy(str name) except -1
cdef object joined(list leaves, tuple shape, object dtype, object tensor_of)
