from libc.stdint cimport uint64_t

from tensorlib._core.tensor.tensor cimport Tensor

cdef class Generator:
    cdef uint64_t key
    cdef uint64_t offset             # draws so far
    cdef object __weakref__

cdef Generator chosen(str name, object generator)
cdef void next_draw(Generator source, Tensor x, uint64_t* seed, uint64_t* offset) noexcept
cpdef tuple sizes_of_batches(str name)
cpdef object as_examples(object x)
cdef int refuse_shared_draw(str name) except -1
