from tensorlib._core.interpreters.stack cimport plain_call

cdef object interpreted(object op, str name, tuple args, dict kwargs, plain_call run, object what,
                        int n=*)
cdef object offered_method(object op, str name, tuple args, dict kwargs)
cdef object called_whole(object function, tuple args, dict kwargs)
cdef object executed(object op, str name, tuple args, dict kwargs, plain_call run, object what,
                     int n=*)
