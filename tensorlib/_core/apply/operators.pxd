from tensorlib._core.base.upcalls cimport OpSlot

cdef object binary_operator(OpSlot which, object a, object b)
cdef object unary_operator(OpSlot which, object a)
cdef object inplace_operator(OpSlot which, object a, object b)
