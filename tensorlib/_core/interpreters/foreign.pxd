from tensorlib._core.graph.op cimport Op

cpdef bint stands_in(object value)
cdef object stand_in(Op op, tuple args, dict kwargs)
cdef int refuse_shared_write(str name, tuple args) except -1
cpdef object behind(object value)
cpdef bint overrides(object value)
cpdef object overridden(object function, tuple args, dict kwargs)
cdef object overridden_form(object op, str name, tuple args, dict kwargs)
