from libc.stdint cimport uint64_t

cdef class Generator:
    cdef uint64_t key
    cdef uint64_t offset             # draws so far
    cdef object __weakref__

cdef Generator chosen(str name, object generator)
cpdef tuple sizes_apart(str name)
cpdef object seen_apart(object x)
cdef int refuse_apart(str name) except -1
