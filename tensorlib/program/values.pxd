cdef bint is_same(x, y) except -1
cdef object settled(value)
cdef dict fields_of(value)
