cdef class Setting:
    cdef public tuple earlier
    cdef public object given
    cdef list left
