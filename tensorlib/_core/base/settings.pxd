cdef class Setting:
    cdef public tuple earlier
    cdef public object given
    cdef list entered        # swaps, what was before, and the same of the `with` around

    cdef int enter(self) except -1
    cdef int leave(self) except -1
