# Executes a call that no interpreter handles: `what` is its operation, or a function.
ctypedef object (*plain_call)(object what, tuple args, dict kwargs)

cdef class Interpreter:
    cdef list held                # settings beside it, and those of the outer `with`

cdef class Layer:
    cdef readonly Interpreter interpreter
    cdef readonly Layer below

cpdef Layer current_layer()
cdef Layer put_stack(Layer layers)
cdef tuple numbers_as_such(object op, tuple args)
cdef object called(object function, tuple args, dict kwargs)
cdef object offered(object op, str name, tuple args, dict kwargs)
cpdef object performed(object op, str name, tuple args, dict kwargs)
cdef int made(object x) except -1
cdef int leaving(str name, object x) except -1
cdef int effect(str name, object x) except -1
