cdef class DictGuard:
    cdef object now                  # a dict or a subclass
    cdef tuple names
    cdef list before, all
    cdef bint whole
    cdef bint holds(self) except -1
    cdef bint is_untouched(self) noexcept

cdef class Guards:
    cdef list cells, contents, dicts, lists, hooks
    cdef bint hold(self) except -1
