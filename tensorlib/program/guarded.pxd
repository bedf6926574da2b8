cdef class Watched:
    cdef object now                  # a dict or a subclass
    cdef tuple names
    cdef list before, all
    cdef bint whole
    cdef bint is_as_before(self) except -1
    cdef bint is_untouched(self) noexcept

cdef class Surroundings:
    cdef list cells, contents, watched, lists, hooks
    cdef bint are_as_before(self) except -1
