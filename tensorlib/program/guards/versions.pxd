from libc.stdint cimport uint64_t

cdef uint64_t* version_of(dict d) except? NULL
cdef void forget(uint64_t* version) noexcept
