cdef class Slot:
    cdef readonly object holder, key
    cdef readonly str kind
    cpdef object found(self)
