from tensorlib._core.graph.op cimport Op

from tensorlib._core.tensor.tensor cimport Tensor

cpdef bint stands_in(object value)
cdef inline bint is_taken(object value):
    """Whether operations take a value as a tensor."""
    return isinstance(value, Tensor) or stands_in(value)
cdef object stand_in(Op op, tuple args, dict kwargs)
cdef int refuse_shared_write(str name, tuple args) except -1
cpdef object behind(object value)
cpdef bint overrides(object value)
cpdef object overridden(object function, tuple args, dict kwargs)
cdef object overridden_form(object op, str name, tuple args, dict kwargs)
