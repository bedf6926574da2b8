"""Looking into a recorded graph: what leads from inputs to outputs, and what one node kept.

Forward mode and the functional transforms read the graph with these functions.
"""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport FLOAT_KIND, KIND, dtype_object
from tensorlib._core.base.shape cimport make_size
from tensorlib._core.base.storage cimport next_epoch
from tensorlib._core.graph.node cimport (
    OUTPUT, Edge, Mode, Node, edge_dims, gradient_edge, mode,
)
from tensorlib._core.graph.op cimport FUNCTION, NODE, Op, PASS, Rule, TILES, ZERO
from tensorlib._core.graph.saved cimport saved_facts, saved_value
from tensorlib._core.sweep.rules cimport (
    call_rule, rule_arguments, run_joint, run_rule, run_tiles, zeros_for,
)
from tensorlib._core.sweep.state cimport nodes_below
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.graph.op import find


# ---- where a transform runs its function ---------------------------------------------------------

def enter_transform(bint complete, bint guarded=True):
    """Has this thread record as a transform needs it; returns what `leave_transform` takes.

    complete: nodes keep what forward mode needs. guarded: tensors from before may not be written in
    place.
    """
    cdef Mode* now = mode()
    cdef tuple before = (now.grad, now.complete, now.epoch)
    now.grad = True
    now.complete = now.complete or complete
    if guarded:
        now.epoch = next_epoch()
    return before


def leave_transform(tuple before):
    """Sets the modes of this thread back to what `enter_transform` found."""
    cdef Mode* now = mode()
    now.grad, now.complete, now.epoch = before


def gradient_place(Tensor x):
    """The node that takes the gradient of `x`, and which of its outputs `x` is."""
    return gradient_edge(x), x.slot


# ---- walks ---------------------------------------------------------------------------------------

def leads_outside(list roots, list inputs, int64_t since):
    """Whether nodes `roots` depend on a node from before `since` or a leaf.

    The nodes `inputs` are no such leaves, and what lies behind them is not looked at.
    """
    cdef bint outside
    nodes_below(roots, inputs, since, True, &outside)
    return outside


def nodes_between(list inputs, list roots, int64_t since):
    """The nodes, oldest first, through which nodes `roots` depend on nodes `inputs`.

    Those are left out themselves. None was recorded before `since`.
    """
    cdef bint outside
    return sorted(nodes_below(roots, inputs, since, True, &outside), key=age)


def age(Node node):
    """When a node was recorded, as a number that grows with time."""
    return node.sequence


# ---- what one node kept --------------------------------------------------------------------------

def operation(Node node):
    """The operation that a node recorded."""
    return node.op


def attributes(Node node):
    """What the operation took beside tensors: those attributes that were kept."""
    return node.attributes or {}


def kept_input(Node node, int i):
    """Input `i` as it was, linked to the graph. Raises RuntimeError if overwritten since."""
    return saved_value(node, i, True)


def kept_output(Node node, int k):
    """Output `k` as it was, linked to the graph. Raises RuntimeError if overwritten since."""
    cdef Tensor out = saved_value(node, OUTPUT + k, False)
    return saved_value(node, OUTPUT + k, True) if KIND[out.type] == FLOAT_KIND else out


def output_facts(Node node, int k):
    """Shape and dtype of output `k`, which hold also where it was overwritten."""
    return saved_facts(node, OUTPUT + k)


def count_outputs(Node node):
    """How many outputs the operation had."""
    return node.n_outputs


def input_facts(Node node, int i):
    """Shape and dtype of input `i`."""
    cdef Edge* edge = &node.edges[i]
    return make_size(edge.ndim, edge_dims(edge)), dtype_object(edge.dtype)


def widest(list nodes):
    """The most elements that an input of one of the nodes has, of those that gradients go to."""
    cdef Py_ssize_t most = 0, n
    cdef Edge* edge
    cdef Node node
    cdef int i, d
    for node in nodes:
        for i in range(node.n_edges):
            edge = &node.edges[i]
            n = edge.target != NULL
            for d in range(edge.ndim):
                n *= edge_dims(edge)[d]
            most = max(most, n)
    return most


def takes_batches(Node node):
    """Whether the node's rules can run on a batch of gradients at once.

    Rules from outside may do anything, and those of nodes like `Function`'s work on Tensors. Hooks
    want to see each gradient.
    """
    cdef Rule rule
    cdef int i
    if node.hooks:
        return False
    if node.is_leaf:
        return True
    for rule in (<Op>node.op).rules:
        if rule is None or rule.kind == PASS or rule.kind == ZERO:
            continue
        if not rule.function.__module__.startswith("tensorlib."):
            return False
        for i in range(rule.n_wants):
            if rule.wants[i] == NODE:
                return False
    return True


def input_gradients(Node node, tuple wanted, object g, object seen, bint recorded):
    """For each `wanted` input its gradient by the node's rules, in its shape and dtype; or None.

    `g` is the gradient of the output, or a tuple with one or None for each output: any values that
    operations take. Where it has a `value`, a Tensor with one more dim before those of the output,
    `seen` makes such a value of a Tensor, and formulas run on that.
    """
    cdef Op op = <Op>node.op
    cdef Rule rule
    cdef list grads = [None] * node.n_edges
    cdef object joint = run_joint(node, op, g, recorded)
    cdef object grad
    cdef int i
    for i in range(node.n_edges):
        if not wanted[i]:
            continue
        rule = None if joint is not None else <Rule>op.rules[i]
        if joint is not None:
            grad = joint[i]
        elif rule is None or rule.kind == PASS or rule.kind == FUNCTION:
            grad = run_rule(node, op, i, g, recorded)
        elif rule.kind == ZERO:
            grad = None
        elif rule.kind == TILES and seen is not None and not recorded:
            grad = seen(run_tiles(node, rule, <Tensor?>g.value))
        else:
            grad = of_formula(node, op, i, rule, g, recorded)
        if grad is not None:
            grads[i] = fitted(&node.edges[i], grad)
    return grads


cdef object of_formula(Node node, Op op, int i, Rule rule, object g, bint recorded):
    """The gradient by a formula, evaluated on values."""
    cdef bint whole = "g" in rule.names
    cdef object slope = call_rule(
        op, i, rule, rule_arguments(rule, node, g if whole else None, recorded))
    return slope if whole else find("zmul").function(g, slope)


cdef object fitted(Edge* edge, object grad):
    """A gradient summed over what was broadcast, in the dtype of the input."""
    shape, dtype = make_size(edge.ndim, edge_dims(edge)), dtype_object(edge.dtype)
    if grad.shape != shape:
        grad = grad.sum_to_size(shape)
    return grad if grad.dtype is dtype else grad.to(dtype)


def zeros_of(Node node, int i):
    """Zeros of the shape and dtype of input `i`."""
    return zeros_for(&node.edges[i])
