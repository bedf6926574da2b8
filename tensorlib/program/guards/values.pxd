cdef bint is_same(x, y) except -1
cdef object settled(value)
cpdef dict fields_of(value)
