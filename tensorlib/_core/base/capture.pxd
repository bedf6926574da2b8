# How many threads have a capture attached.
cdef int attached

cdef object offered(object op, str name, tuple args, dict kwargs)
cdef int made(object x) except -1
cdef int leaving(str name, object x) except -1
