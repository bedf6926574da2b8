# How many threads have a capture attached.
cdef int attached

cdef object offered(object op, str name, tuple args, dict kwargs)
cdef int made(object x) except -1
cpdef int leaving(str name, object x) except -1
cpdef int beside(str name, object x=*) except -1

cdef inline int aside(str name, object x) except -1:
    """As `beside`, where anything is captured."""
    return beside(name, x) if attached else 0
