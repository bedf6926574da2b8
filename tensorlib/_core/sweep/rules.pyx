"""Evaluating the rules of an operation: from the gradient of its outputs to those of its inputs.

A rule names what it needs of a call of its operation, which it gets from the `source`: a Node,
which saved it, or any object with `input(i)`, `output(k)`, `attributes` and, for each input, its
shape and dtype in `facts`. In a sweep the common rules run without a call: a formula is one pass of
tiles. Everywhere else rules are functions, of Tensors and of proxies.

For complex numbers a rule returns the product with the derivative, or its transpose, as forward
mode needs it. The gradient of a real loss, d/dx + i d/dy, is the product with the conjugate. So a
sweep conjugates the argument `g` and the result of a rule, here, and one formula serves both modes.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from tensorlib._core.apply.elementwise cimport apply_binary
from tensorlib._core.apply.halves cimport in_float32, is_half
from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX_KIND, KIND, compute_dtype, dtype_id, dtype_object, promote,
)
from tensorlib._core.base.shape cimport MAX_NDIM, make_size
from tensorlib._core.base.upcalls cimport (
    CONJUGATED, REAL_PART, SUM_TO_SIZE, TO, ZMUL, registered,
)
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport OUTPUT, Edge, Node, edge_dims, new_node, set_edge
from tensorlib._core.graph.op cimport (
    ATTRIBUTE, DTYPE, GRADIENT, INPUTS, NDIM, NODE, Op, PASS, Rule, SAVED, SHAPE, SPREAD, TANGENT,
    TILES, Want, ZERO,
)
from tensorlib._core.graph.saved cimport as_counted, saved_value
from tensorlib._core.interpreters.foreign cimport as_proxy, is_tensor_like, representative
from tensorlib._core.interpreters.stack cimport made
from tensorlib._core.reduce.arrange cimport expand_over, reduced_dims, sum_to
from tensorlib._core.tensor.tensor cimport (
    Tensor, alias, new_like, new_scalar, new_tensor, over_storage, requires_grad, same_shape,
    track_tensor,
)
from tensorlib._core.tiles.copies cimport arranged_copy, new_arranged_as, zero
from tensorlib._core.tiles.flat cimport run_loop
from tensorlib._core.tiles.program cimport MAX_INPUTS, TileLoops
from tensorlib._core.tiles.run cimport run_program

from tensorlib._core.base.error_names import type_name
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.layout.views import zeros

cdef object BOOLS = dtype_object(BOOL)


class WrongGradient(RuntimeError, TypeError):
    """A gradient rule returned what is not a gradient. PyTorch's error for it, and Python's."""

    __module__ = "tensorlib"


# ---- what a rule needs ---------------------------------------------------------------------------

cdef object value_of(object source, int place, bint recorded):
    """An input (by its number) or output (OUTPUT) as it was; `recorded`: linked to the graph."""
    if isinstance(source, Node):
        return saved_value(<Node>source, place, recorded)
    return source.input(place) if place < OUTPUT else source.output(place - OUTPUT)


cdef object fact_of(object source, int i, Want want):
    """The dtype, number of dims or else the shape of input `i`."""
    cdef Edge* edge
    if not isinstance(source, Node):
        shape, dtype = source.facts[i]
        return dtype if want == DTYPE else len(shape) if want == NDIM else shape
    edge = &(<Node>source).edges[i]
    if want == NDIM:
        return edge.ndim
    return dtype_object(edge.dtype) if want == DTYPE else make_size(edge.ndim, edge_dims(edge))


cdef tuple facts_of(object source, int i):
    """Shape and dtype of input `i`."""
    return fact_of(source, i, SHAPE), fact_of(source, i, DTYPE)


cdef int count_inputs(object source) except -1:
    return (<Node>source).n_edges if isinstance(source, Node) else len(source.facts)


cdef tuple arguments(Rule rule, Op op, object source, object g, bint recorded):
    """The values of the parameters of a rule, in order; `g` may be a tuple, for tangents."""
    cdef tuple values = PyTuple_New(rule.n_wants)
    cdef dict known
    cdef int i, k, place
    for i in range(rule.n_wants):
        place = rule.places[i]
        if rule.wants[i] == GRADIENT:
            value = g
        elif rule.wants[i] == TANGENT:
            value = g[place]
        elif rule.wants[i] == SAVED:
            value = value_of(source, place, recorded)
        elif rule.wants[i] == INPUTS:
            value = tuple([value_of(source, k, recorded) for k in range(count_inputs(source))])
        elif rule.wants[i] == ATTRIBUTE:
            known = (<Node>source).attributes if isinstance(source, Node) else source.attributes
            value = op.defaults[place] if known is None else known.get(
                op.attributes[place], op.defaults[place])
            if isinstance(source, Node):
                value = as_counted(<Node>source, op.attributes[place], value, True)
        elif rule.wants[i] == NODE:
            value = source
        elif op.variadic:
            value = [fact_of(source, k, <Want>rule.wants[i]) for k in range(count_inputs(source))]
        else:
            value = fact_of(source, place, <Want>rule.wants[i])
        Py_INCREF(value)
        PyTuple_SET_ITEM(values, i, value)
    return in_float32(values) if rule.widens and has_half_inputs(source) else values


cdef bint has_half_inputs(object source) except -1:
    """Whether an input was of a half type. The rules of the library then compute in float32, and
    `fit` rounds once; except those of linear and affine operations, which only move or add
    elements."""
    cdef int i
    if isinstance(source, Node):
        for i in range((<Node>source).n_edges):
            if is_half((<Node>source).edges[i].dtype):
                return True
        return False
    for _, dtype in source.facts:
        if is_half(dtype_id(dtype)):
            return True
    return False


# ---- running a rule ------------------------------------------------------------------------------

def gradients(source, Op op, wanted, g, bint recorded):
    """The gradient of each `wanted` input, None for the others."""
    joint = joint_gradients(source, op, g, recorded)
    return [gradient(source, op, i, g, joint, recorded) if wanted[i] else None
            for i in range(count_inputs(source))]


def tangent(source, Op op, tuple tangents):
    """The result of the forward-mode rule of the operation."""
    cdef Rule rule = op.tangent_rule
    return rule.function(*arguments(rule, op, source, tangents, True))


cpdef object run_rule(object source, Op op, int i, object g, bint recorded):
    """The gradient of input `i`, before `fit`."""
    cdef Rule rule = <Rule>op.rules[i]
    if rule is None:
        raise RuntimeError(
            f"backward: {op.name} has no gradient for its argument {argument_name(op, i)}")
    if rule.kind == PASS:
        return g
    if rule.kind == ZERO:
        return zeros_for(source, i)
    if not recorded:
        if rule.kind == TILES and isinstance(g, Tensor):
            return run_tiles(source, rule, <Tensor>g)
        if rule.kind == TILES and isinstance(source, Node):
            return as_proxy(g, run_tiles(source, rule, representative("backward", g, True)))
        if rule.kind == SPREAD and isinstance(g, Tensor) and isinstance(source, Node):
            return spread_back(<Node>source, i, <Tensor>g)
    if not op.takes_complex:
        return by_formula(source, op, i, g, recorded)
    return conjugate_of(by_formula(source, op, i, all_conjugate(g), recorded))


cpdef object push_tangent(object source, Op op, int i, object tangent):
    """The tangent of an element-wise operation's result that follows from that of input `i`."""
    cdef Rule rule = <Rule>op.rules[i]
    if rule.kind == PASS:
        return tangent
    if rule.kind == ZERO:
        return zeros_for(source, i)
    return by_formula(source, op, i, tangent, True)


cdef object conjugate_of(object g):
    """The conjugate of complex values; others unchanged, including what is not a tensor."""
    if isinstance(g, Tensor):
        if KIND[(<Tensor>g).type] != COMPLEX_KIND:
            return g
    elif not is_tensor_like(g) or not g.dtype.is_complex:
        return g
    return registered(CONJUGATED)(g)


cdef object by_formula(object source, Op op, int i, object g, bint recorded):
    """The result of the function of a rule; of a formula, times `g`."""
    cdef Rule rule = <Rule>op.rules[i]
    cdef object result, values = arguments(rule, op, source, g, recorded)
    if rule.kind == TILES:
        g = in_float32(g)
        values = in_dtype_of(g, values)
    result = call_rule(op, i, rule, values)
    if rule.kind != TILES or "g" in rule.names:
        if recorded and op.linearity in ("deriv", "jvp") and is_linked(g) == is_linked(result):
            result = with_zero_slope(source, op, i, result)
        return result
    if recorded and not is_linked(result):
        result = with_zero_slope(source, op, i, result)
    if isinstance(g, Tensor) and isinstance(result, Tensor):
        return apply_binary(<Op>registered(ZMUL), g, result)
    return registered(ZMUL)(g, result)


cdef bint is_linked(object value) except -1:
    """Whether a gradient, or one in a tuple of them, requires grad."""
    if isinstance(value, tuple):
        return any([isinstance(part, Tensor) and requires_grad(<Tensor>part) for part in value])
    return isinstance(value, Tensor) and requires_grad(<Tensor>value)


cdef tuple in_dtype_of(object g, tuple values):
    """The arguments of a formula in the dtype in which tiles compute it: otherwise 1 / other of
    integers would only be as exact as the default float. Conditions stay bool."""
    cdef object dtype = g.dtype
    for value in values:
        if value.dtype.is_complex:
            dtype = dtype_object(promote("backward", dtype_id(dtype), dtype_id(value.dtype)))
    for value in values:
        if value is not g and value.dtype is not dtype and value.dtype is not BOOLS:
            return tuple([value if value is g or value.dtype is dtype or value.dtype is BOOLS else
                          registered(TO)(value, dtype) for value in values])
    return values


cdef object joint_gradients(object source, Op op, object g, bint recorded):
    """The result of a rule for all inputs at once; None if there is a rule for each input."""
    cdef Rule rule = <Rule>op.rules[0]
    if rule is None or not rule.joint:
        return None
    cdef int n = count_inputs(source)
    cdef object grads = call_rule(op, -1, rule, arguments(
        rule, op, source, all_conjugate(g) if op.takes_complex else g, recorded))
    if not isinstance(grads, (tuple, list)) or len(grads) != n:
        got = (f"{len(grads)} gradients" if isinstance(grads, (tuple, list))
               else type_name(grads))
        raise WrongGradient(f"backward: the gradient rule of {op.name} returned {got}; it has {n} "
                            "inputs and takes a tuple of as many")
    return all_conjugate(grads) if op.takes_complex else grads


cdef bint some_complex(tuple values) except -1:
    """Whether one of several values is a complex Tensor."""
    for value in values:
        if isinstance(value, Tensor) and KIND[(<Tensor>value).type] == COMPLEX_KIND:
            return True
    return False


cdef object all_conjugate(object values):
    """The conjugates of one value, or of several."""
    if not isinstance(values, (tuple, list)):
        return conjugate_of(values)
    for value in values:
        if is_tensor_like(value) and value.dtype.is_complex:
            return tuple([conjugate_of(value) for value in values])
    return values


cdef object call_rule(Op op, int i, Rule rule, tuple arguments):
    """The result of the rule of input i (-1: of all). Its errors get a note with the rule."""
    try:
        return rule.function(*arguments)
    except Exception as error:
        whose = f"its argument {argument_name(op, i)}" if i >= 0 else "all its arguments"
        note = f"backward: raised in the gradient rule of {op.name} for {whose}"
        if note not in getattr(error, "__notes__", ()):     # nested sweeps would repeat it
            error.add_note(note)
        raise


cdef str argument_name(Op op, int i):
    """The name of an input in messages."""
    if op.variadic:
        return f"'{op.arguments[0]}[{i}]'"
    return repr(op.arguments[i]) if i < op.n_args else f"{i}, a tensor from outside of it"


# ---- rules that need no call ---------------------------------------------------------------------

cdef Tensor zeros_for(object source, int i):
    """Zeros of the shape and dtype of input `i`."""
    cdef Edge* edge
    cdef Tensor x
    if not isinstance(source, Node):
        return zeros(*facts_of(source, i))
    edge = &(<Node>source).edges[i]
    x = new_tensor(edge.dtype, edge.ndim, edge_dims(edge))
    zero(x)
    if watched:
        made(x)
    return x


cdef Tensor spread_back(Node node, int i, Tensor g):
    """The gradient of a sum: `g` repeated over the dims that were summed."""
    cdef int reduced[MAX_NDIM]
    cdef Edge* edge = &node.edges[i]
    cdef dict attributes = node.attributes
    cdef int n = reduced_dims(attributes["dim"], edge.ndim, reduced)
    return expand_over(g, edge.ndim, edge_dims(edge), n, reduced, attributes["keepdim"])


cdef Tensor run_tiles(object source, Rule rule, Tensor g):
    """g times the derivative, in one pass of tiles. The program takes g and what it needs."""
    cdef PyObject* inputs[MAX_INPUTS]
    cdef char* pointers[3]
    cdef bint is_scalar[3]
    cdef Tensor x, out
    cdef int i, n = 1, dtype = compute_dtype(g.type), result = g.type
    cdef const TileLoops* program
    cdef bint simple = rule.program.one_loop and g.packed and g.type == dtype
    inputs[0] = <PyObject*>g
    pointers[0] = g.data_pointer
    is_scalar[0] = False
    for i in range(rule.n_wants):
        if rule.wants[i] == GRADIENT:
            continue
        x = <Tensor?>value_of(source, rule.places[i], False)
        inputs[n] = <PyObject*>x             # the source keeps it alive
        if n < 3:
            pointers[n] = x.data_pointer
            is_scalar[n] = x.ndim_ == 0 and g.numel_ != 1
        n += 1
        simple = simple and x.type == dtype and x.packed and (x.ndim_ == 0 or same_shape(x, g))
        if KIND[x.type] == COMPLEX_KIND:
            dtype = result = promote("backward", x.type, dtype)
    if KIND[dtype] == COMPLEX_KIND:
        simple = False
    program = rule.tiles_of(KIND[dtype] == COMPLEX_KIND).at(dtype)
    out = new_like(g, result) if g.packed else new_arranged_as(g, result)
    if simple:
        run_loop(&program.steps[0].loop, pointers, is_scalar, out.data_pointer, out.numel_)
    else:
        run_program(program, inputs, out)
    return out


# ---- in the shape and dtype of the input ---------------------------------------------------------

cdef object fit(object source, Op op, int i, object grad, bint recorded):
    """Sums over the dims that were broadcast, and casts to the dtype of the input."""
    cdef Edge* edge
    cdef Tensor g
    cdef bint same
    if isinstance(grad, Tensor) and isinstance(source, Node):
        g = <Tensor>grad
        edge = &(<Node>source).edges[i]
        same = is_alike(op, i, edge, g)
        if same and g.type == edge.dtype:
            return g
        if not recorded:
            g = g if same else sum_to(op.name, g, edge.ndim, edge_dims(edge))
            return g if g.type == edge.dtype else arranged_copy(g, edge.dtype)
    elif not is_tensor_like(grad):
        raise WrongGradient(
            f"backward: the gradient rule of {op.name} returned {type_name(grad)} for its "
            f"argument {argument_name(op, i)}, not a Tensor" + (
                ": a rule takes what its parameters name and returns the gradient, defvjp's "
                "takes (g, ans, *args), where autograd's takes (ans, *args) and returns a function"
                if callable(grad) else ""))
    shape, dtype = facts_of(source, i)
    if grad.shape != shape:
        grad = registered(SUM_TO_SIZE)(grad, shape)
    if grad.dtype.is_complex and not dtype.is_complex:
        grad = registered(REAL_PART)(grad)
    return grad if grad.dtype is dtype else registered(TO)(grad, dtype)


cdef bint is_alike(Op op, int i, Edge* edge, Tensor g) except -1:
    """Whether a gradient has the shape of its input. Raises unless the input broadcasts to it."""
    cdef const Py_ssize_t* dims = edge_dims(edge)
    cdef int d, extra = g.ndim_ - edge.ndim
    cdef bint same = extra == 0
    for d in range(edge.ndim):
        if extra >= 0 and dims[d] == g.dims[d + extra]:
            continue
        same = False
        if extra < 0 or dims[d] != 1:
            raise WrongGradient(
                f"backward: the gradient rule of {op.name} returned shape {tuple(g.shape)} for "
                f"its argument {argument_name(op, i)}, which does not reduce to the argument's "
                f"{tuple(make_size(edge.ndim, dims))}")
    return same


# ---- functions made of linear pieces -------------------------------------------------------------

# Links a value to a tensor of which it is piecewise constant: the derivative is zero.
cdef Op PIECES = Op("linear_pieces", "A value that depends on a tensor in steps.", ("input", "of"))
PIECES.add_rule("input", lambda g: g, constant=1)
PIECES.add_rule("of", lambda g: g * 0, constant=0)
PIECES.add_tangent(lambda d_input: d_input)


cdef object with_zero_slope(object source, Op op, int i, object value):
    """A recorded gradient, or derivative, which requires grad if it depends on an input that does.

    The gradient of a piecewise linear operation (relu, a max pool) is piecewise constant. The
    second derivative is then zero, as in PyTorch, and not an error about an unused input.
    """
    cdef Rule rule = <Rule>op.rules[i]
    cdef int k, place
    if not isinstance(source, Node) or not isinstance(value, Tensor) or not mode().grad or (
            (<Node>source).edges[i].target == NULL):
        return value
    for k in range(rule.n_wants):
        place = rule.places[k]
        if rule.wants[k] == SAVED and (
                place >= OUTPUT or (<Node>source).edges[place].target != NULL):
            return linked_in_steps(<Tensor>value, end_of(&(<Node>source).edges[i]))
    return value


cdef Tensor linked_in_steps(Tensor value, Tensor of):
    cdef Node node = new_node(PIECES, 2, 0, 1)
    cdef Tensor out = alias(value)
    set_edge(node, 0, value)
    set_edge(node, 1, of)
    out.grad_node, out.slot = node, 0
    track_tensor(out)
    if watched:
        tell("in_steps", value, of, out)
    return out


cdef Tensor end_of(Edge* edge):
    """A tensor with the shape, dtype and history of the target of an edge; a leaf itself."""
    cdef Node target = <Node>edge.target
    if target.is_leaf:
        return <Tensor>target.saved[0].tensor
    return valueless(edge.dtype, edge.ndim, edge_dims(edge), target, edge.slot)


cdef Tensor valueless(int dtype, int ndim, const Py_ssize_t* dims, Node node, int slot):
    """A tensor with a shape and a history, expanded from one element."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Tensor one = new_scalar(dtype), x
    cdef int d
    for d in range(ndim):
        steps[d] = 0
    x = over_storage(one.storage, one.data_pointer, dtype, ndim, dims, steps)
    x.grad_node, x.slot = node, slot
    return x
