from tensorlib._core.base.upcalls cimport OpSlot
from tensorlib._core.graph.op cimport Op

cdef object binary_operator(OpSlot which, object a, object b)
cdef object unary_operator(OpSlot which, object a)
cdef object inplace_operator(OpSlot which, object a, object b)
cdef int check_count(str name, int wanted, tuple more, object last) except -1
cdef object call_binary(Op op, object a, object b, tuple more, object out)
cdef object call_inplace(Op op, object x, object other, tuple more)
cdef object store_results(str name, tuple inputs, object result, object out)
