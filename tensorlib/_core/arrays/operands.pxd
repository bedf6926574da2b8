from tensorlib._core.base.dtypes cimport compute_dtype, dtype as DType
from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor number(object value, int dtype)
cdef Tensor operand(Op op, int i, object value, Tensor partner)


cdef inline int number_dtype(Op op, int i, int dtype) noexcept:
    """The dtype of a Python number that is argument `i` beside a floating-point dtype."""
    return dtype if op.rounded >> i & 1 else compute_dtype(dtype)


cdef Tensor scalar_tensor(object value, int dtype)
cdef tuple tuple_of(Op op, object tensors)
cdef bint all_tensors(tuple tensors)
cdef tuple convert_arguments(Op op, tuple args)
cdef list as_tensors(Op op, tuple args)
cdef object refused(Op op, tuple args, dict kwargs)
cdef list operands_of(Op op, tuple args)
cpdef int require_factor(str name, str argument, object value, DType dtype) except -1
cdef object array_operand(Op op, object x)
