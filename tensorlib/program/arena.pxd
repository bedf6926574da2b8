cdef int reuse(list steps, dict root_of) except -1
cdef tuple arrange(list roots)
