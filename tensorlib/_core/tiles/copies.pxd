from tensorlib._core.tensor.tensor cimport Tensor

cdef int copy_into(Tensor target, Tensor source) except -1
cdef Tensor packed_copy(Tensor x, int dtype)
cdef Tensor packed(Tensor x)
cdef Tensor cast(Tensor x, int dtype)
cdef Tensor new_arranged_as(Tensor x, int dtype)
cdef Tensor arranged_copy(Tensor x, int dtype)
cdef Tensor laid(Tensor x, int dtype, bint lanes)
cdef int zero(Tensor x) except -1
cdef bint may_overlap(Tensor a, Tensor b) noexcept
cdef bint may_meet(Tensor a, Tensor b) noexcept
