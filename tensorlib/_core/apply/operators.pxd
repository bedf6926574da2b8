from tensorlib._core.base.upcalls cimport OpSlot

cdef object binary_operator(OpSlot which, object a, object b)
cdef object unary_operator(OpSlot which, object a)
cdef object inplace_operator(OpSlot which, object a, object b)
cdef bint is_number(object x) except -1
cdef int warn_of_place(str name, str option) except -1
cdef object run_instead(str name, list given, bint in_place, object out)
cdef object store_results(str name, tuple inputs, object result, object out)
