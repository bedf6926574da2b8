from tensorlib._core.graph.op cimport Op, Rule

cdef object joint_gradients(object source, Op op, object g, bint recorded)
cpdef object run_rule(object source, Op op, int i, object g, bint recorded)
cdef object fit(object source, Op op, int i, object grad, bint recorded)
cdef object with_zero_slope(object source, Op op, int i, object grad)
cdef object value_of(object source, int place, bint recorded)
cdef tuple facts_of(object source, int i)


cdef inline object gradient(object source, Op op, int i, object g, object joint, bint recorded):
    """The gradient of input `i` in its shape and dtype; None for none.

    `g` is the gradient of the output, or a tuple with one or None for each output; `joint` is what
    `joint_gradients` gave. With `recorded` the result can be differentiated.
    """
    cdef object grad = run_rule(source, op, i, g, recorded) if joint is None else joint[i]
    if grad is None:
        return None
    grad = fit(source, op, i, grad, recorded)
    return with_zero_slope(source, op, i, grad) if recorded else grad
cdef tuple arguments(Rule rule, Op op, object source, object g, bint recorded)
