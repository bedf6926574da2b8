from cpython.object cimport PyObject

from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef object apply_general(Op op, tuple args, dict kwargs)
cdef int refuse_complex(Op op, tuple args) except -1
cdef int link_outputs(Op op, PyObject** args, int n, object outputs, object attributes) except -1


cdef inline int record(Op op, PyObject** args, int n, object outputs,
                       object attributes) except -1:
    """Links the outputs of an operation that ran to a new node, if an input requires a gradient."""
    cdef int i
    for i in range(n):
        if (<Tensor>args[i]).wants_grad or (<Tensor>args[i]).grad_node is not None:
            return link_outputs(op, args, n, outputs, attributes)
    return 0
