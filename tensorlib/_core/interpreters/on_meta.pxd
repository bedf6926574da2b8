from tensorlib._core.interpreters.stack cimport plain_call

cdef bint is_for_meta(tuple args, dict kwargs, int n) except -1
cdef object without_elements(plain_call run, object what, tuple args, dict kwargs)
