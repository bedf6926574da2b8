"""Running the gradient rules of a node: from the gradient of its outputs to those of its inputs."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from tensorlib._core.apply.elementwise cimport apply_binary
from tensorlib._core.base.dtypes cimport compute_dtype, dtype_object
from tensorlib._core.base.shape cimport MAX_NDIM, make_size
from tensorlib._core.base.upcalls cimport SUM_TO_SIZE, TO, ZMUL, registered
from tensorlib._core.graph.node cimport Edge, Node, edge_dims
from tensorlib._core.graph.op cimport (
    ATTRIBUTE, DTYPE, FUNCTION, GRADIENT, INPUTS, NDIM, NODE, Op, PASS, Rule, SAVED, SPREAD, Want,
    ZERO,
)
from tensorlib._core.graph.saved cimport saved_value
from tensorlib._core.layout.views cimport new_arranged_as
from tensorlib._core.reduce.arrange cimport expand_over, reduced_dims, sum_to
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, zero
from tensorlib._core.tiles.program cimport MAX_INPUTS, Program
from tensorlib._core.tiles.run cimport run_loop, run_program


cdef tuple rule_arguments(Rule rule, Node node, object g, bint as_recorded):
    """What the parameters of a rule stand for at this node, in order."""
    cdef tuple values = PyTuple_New(rule.n_wants)
    cdef Op op = <Op>node.op
    cdef int i, k
    for i in range(rule.n_wants):
        if rule.wants[i] == GRADIENT:
            value = g
        elif rule.wants[i] == SAVED:
            value = saved_value(node, rule.places[i], as_recorded)
        elif rule.wants[i] == INPUTS:
            value = tuple([saved_value(node, k, as_recorded) for k in range(node.n_edges)])
        elif rule.wants[i] == ATTRIBUTE:
            value = node.attributes[op.attributes[rule.places[i]]]
        elif rule.wants[i] == NODE:
            value = node
        elif op.variadic:
            value = [edge_fact(node, k, rule.wants[i]) for k in range(node.n_edges)]
        else:
            value = edge_fact(node, rule.places[i], rule.wants[i])
        Py_INCREF(value)
        PyTuple_SET_ITEM(values, i, value)
    return values


cdef object edge_fact(Node node, int i, Want want):
    if want == DTYPE:
        return dtype_object(node.edges[i].dtype)
    if want == NDIM:
        return node.edges[i].ndim
    return make_size(node.edges[i].ndim, edge_dims(&node.edges[i]))


cdef Tensor zeros_for(Edge* edge):
    cdef Tensor x = new_tensor(edge.dtype, edge.ndim, edge_dims(edge))
    zero(x)
    return x


cdef object run_rule(Node node, Op op, int i, object g, bint recorded):
    """The gradient of input i, before it is brought to the input's shape and dtype."""
    cdef Rule rule = <Rule>op.rules[i]
    cdef object slope
    if rule is None:
        raise RuntimeError(
            f"backward: {op.name} has no gradient for its argument {argument_name(op, i)}")
    if rule.kind == PASS:
        return g
    if rule.kind == ZERO:
        return zeros_for(&node.edges[i])
    if rule.kind == SPREAD and not recorded:
        return spread_back(node, &node.edges[i], <Tensor>g)
    if rule.kind == FUNCTION or rule.kind == SPREAD:
        return call_rule(op, i, rule, rule_arguments(rule, node, g, recorded))
    if recorded and "g" in rule.names:
        return call_rule(op, i, rule, rule_arguments(rule, node, g, True))
    if recorded:
        slope = call_rule(op, i, rule, rule_arguments(rule, node, None, True))
        return apply_binary(<Op>registered(ZMUL), g, slope)
    return run_tiles(node, rule, <Tensor>g)


cdef object call_rule(Op op, int i, Rule rule, tuple arguments):
    """What the rule of input i (-1: of all) returns. What it raises says whose rule it was."""
    try:
        return rule.function(*arguments)
    except Exception as error:
        whose = f"its argument {argument_name(op, i)}" if i >= 0 else "all its arguments"
        note = f"backward: raised in the gradient rule of {op.name} for {whose}"
        if note not in getattr(error, "__notes__", ()):     # a sweep inside of itself raises often
            error.add_note(note)
        raise


cdef str argument_name(Op op, int i):
    """What an input is called in messages."""
    if op.variadic:
        return f"'{op.arguments[0]}[{i}]'"
    return repr(op.arguments[i]) if i < op.n_args else f"{i}, a tensor from outside of it"


class WrongGradient(RuntimeError, TypeError):
    """A gradient rule returned what is no gradient. PyTorch's error for it, and Python's."""


cdef Tensor spread_back(Node node, Edge* edge, Tensor g):
    """The gradient of a sum: `g` repeated over the dims that were summed."""
    cdef int reduced[MAX_NDIM]
    cdef dict attributes = node.attributes
    cdef int n = reduced_dims(attributes["dim"], edge.ndim, reduced)
    return expand_over(g, edge.ndim, edge_dims(edge), n, reduced, attributes["keepdim"])


cdef Tensor run_tiles(Node node, Rule rule, Tensor g):
    """g times the derivative, in one pass of tiles. The program takes g and what it needs."""
    cdef PyObject* inputs[MAX_INPUTS]
    cdef char* pointers[3]
    cdef bint is_scalar[3]
    cdef Tensor x, out = new_like(g, g.type) if g.packed else new_arranged_as(g, g.type)
    cdef int i, n = 1, dtype = compute_dtype(g.type)
    cdef const Program* program = rule.program.at(dtype)
    cdef bint simple = (program.n_steps == 1 and program.n_constants == 0
                        and g.packed and g.type == dtype)
    inputs[0] = <PyObject*>g
    pointers[0] = g.data_pointer
    is_scalar[0] = False
    for i in range(rule.n_wants):
        if rule.wants[i] == GRADIENT:
            continue
        x = saved_value(node, rule.places[i], False)
        inputs[n] = <PyObject*>x             # the node keeps it alive
        if n < 3:
            pointers[n] = x.data_pointer
            is_scalar[n] = x.ndim_ == 0 and g.numel_ != 1
        n += 1
        simple = simple and x.type == dtype and x.packed and (x.ndim_ == 0 or same_shape(x, g))
    if simple:
        for i in range(program.steps[0].loop.arity):
            if program.steps[0].inputs[i] != i:
                simple = False
    if simple:
        run_loop(&program.steps[0].loop, pointers, is_scalar, out.data_pointer, out.numel_)
    else:
        run_program(program, inputs, out)
    return out


cdef object fit(Node node, int i, object grad, bint recorded):
    """Sums over the dims that were broadcast, and casts to the dtype of the input."""
    cdef Edge* edge = &node.edges[i]
    cdef Tensor g
    if not isinstance(grad, Tensor):
        raise WrongGradient(
            f"backward: the gradient rule of {node.op.name} returned {type(grad).__name__} for its "
            f"argument {argument_name(<Op>node.op, i)}, not a Tensor")
    g = <Tensor>grad
    if not matches(edge, g):
        check_reduces(node, i, g)
        if recorded:
            g = registered(SUM_TO_SIZE)(g, make_size(edge.ndim, edge_dims(edge)))
        else:
            g = sum_to(node.op.name, g, edge.ndim, edge_dims(edge))
    if g.type != edge.dtype:
        g = registered(TO)(g, dtype_object(edge.dtype)) if recorded else cast(g, edge.dtype)
    return g


cdef int check_reduces(Node node, int i, Tensor g) except -1:
    """Raises unless the input broadcasts to the shape of its gradient `g`."""
    cdef Edge* edge = &node.edges[i]
    cdef const Py_ssize_t* dims = edge_dims(edge)
    cdef int d, extra = g.ndim_ - edge.ndim
    cdef bint reduces = extra >= 0
    for d in range(edge.ndim):
        if reduces and dims[d] != 1 and dims[d] != g.dims[d + extra]:
            reduces = False
    if not reduces:
        raise WrongGradient(
            f"backward: the gradient rule of {node.op.name} returned shape {tuple(g.shape)} for "
            f"its argument {argument_name(<Op>node.op, i)}, which does not reduce to the "
            f"argument's {tuple(make_size(edge.ndim, dims))}")
    return 0


cdef inline bint matches(Edge* edge, Tensor g) noexcept:
    cdef const Py_ssize_t* dims = edge_dims(edge)
    cdef int d
    if g.ndim_ != edge.ndim:
        return False
    for d in range(edge.ndim):
        if g.dims[d] != dims[d]:
            return False
    return True


cdef object run_joint(Node node, Op op, object g, bint recorded):
    """What a rule for all inputs at once returns; None where the rules are one for each input."""
    cdef Rule rule = <Rule>op.rules[0]
    if rule is None or not rule.joint:
        return None
    cdef object grads = call_rule(op, -1, rule, rule_arguments(rule, node, g, recorded))
    if not isinstance(grads, (tuple, list)) or len(grads) != node.n_edges:
        got = (f"{len(grads)} gradients" if isinstance(grads, (tuple, list))
               else type(grads).__name__)
        raise WrongGradient(f"backward: the gradient rule of {op.name} returned {got}; it has "
                            f"{node.n_edges} inputs and takes a tuple of as many")
    return grads
