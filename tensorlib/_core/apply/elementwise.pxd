from cpython.object cimport PyObject

from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef object apply_elementwise(Op op, PyObject** args)
cdef object offered_tensors(Op op, str name, PyObject** args)
cdef int apply_into(Op op, PyObject** args, Tensor out) except -1
cdef object apply_unary(Op op, object x)
cdef object apply_binary(Op op, object a, object b)
