from tensorlib._core.graph.node cimport Edge, Node
from tensorlib._core.graph.op cimport Op, Rule
from tensorlib._core.tensor.tensor cimport Tensor

cdef object joint_gradients(object source, Op op, object g, bint recorded)
cpdef object run_rule(object source, Op op, int i, object g, bint recorded)
cdef bint some_complex(tuple values) except -1
cpdef object push_tangent(object source, Op op, int i, object tangent)
cdef object fit(object source, Op op, int i, object grad, bint recorded)
cdef Tensor end_of(Edge* edge)
cdef Tensor valueless(int dtype, int ndim, const Py_ssize_t* dims, Node node, int slot)
cdef object value_of(object source, int place, bint recorded)
cdef tuple facts_of(object source, int i)


cdef inline object gradient(object source, Op op, int i, object g, object joint, bint recorded):
    """The gradient of input `i` in its shape and dtype, or None.

    `g` is the gradient of the output, or a tuple with one or None for each output; `joint` is the
    result of `joint_gradients`. With `recorded` the result can be differentiated.
    """
    cdef object grad = run_rule(source, op, i, g, recorded) if joint is None else joint[i]
    return grad if grad is None else fit(source, op, i, grad, recorded)
cdef tuple arguments(Rule rule, Op op, object source, object g, bint recorded)
