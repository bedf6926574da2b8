from tensorlib._core.op cimport Op
from tensorlib._core.tensor cimport Tensor

cdef Tensor number(object value, int dtype)
cdef Tensor operand(Op op, object value, Tensor partner)
cdef Tensor scalar_tensor(object value, int dtype)
cpdef bint stands_in(object value)
cdef object stand_in(Op op, tuple args, dict kwargs)
cdef int refuse_shared_write(Op op, tuple args) except -1
cdef tuple tuple_of(Op op, object tensors)
cdef bint all_tensors(tuple tensors)
cdef int check_sequence(Op op, tuple tensors) except -1
cdef tuple convert_arguments(Op op, tuple args)
