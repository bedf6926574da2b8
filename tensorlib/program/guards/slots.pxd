cdef class Slot:
    cdef readonly object holder, key
    cdef readonly str kind
    cdef Py_ssize_t index, size
    cpdef object found(self)
    cdef object whole(self)
