from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor number(object value, int dtype)
cdef Tensor operand(Op op, object value, Tensor partner)
cdef Tensor scalar_tensor(object value, int dtype)
cdef tuple tuple_of(Op op, object tensors)
cdef bint all_tensors(tuple tensors)
cdef tuple convert_arguments(Op op, tuple args)
cdef list as_tensors(Op op, tuple args)
cdef object refused(Op op, tuple args, dict kwargs)
cdef list operands_of(Op op, tuple args)
