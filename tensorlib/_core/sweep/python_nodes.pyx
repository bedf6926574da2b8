"""Nodes whose gradient one Python function computes, for `Function` and `ops.compose`.

Their node has one rule for all inputs, which takes the node and the incoming gradient. Besides the
edges the node keeps any number of tensors and one Python object.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tensorlib._core.apply.inplace cimport check_writable, rebase
from tensorlib._core.base.dtypes cimport FLOAT_KIND, KIND
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport (
    Node, gradient_node, new_node, set_edge, track,
)
from tensorlib._core.graph.op cimport Op
from tensorlib._core.graph.saved cimport check_not_released, keep, saved_at
from tensorlib._core.interpreters.recording cimport record
from tensorlib._core.sweep.rules cimport end_of, valueless
from tensorlib._core.sweep.state cimport Sweep, leads_on, nodes_below, own_sweep
from tensorlib._core.sweep.sweep cimport run_backward
from tensorlib._core.tensor.tensor cimport IN_FUNCTION, Tensor, alias, set_base, track_tensor

from tensorlib._core.base.error_names import type_name


cpdef Node custom_node(Op op, tuple inputs, tuple saved, int n_outputs, payload):
    """A node with an edge for each of the tensors `inputs`, which keeps the tensors `saved`."""
    cdef Node node = new_node(op, len(inputs), len(saved), n_outputs)
    cdef Tensor x
    cdef int i
    node.attributes = payload
    for i, x in enumerate(inputs):
        set_edge(node, i, x)
    for x in saved:
        keep(node, 0, x)
    node.kept = 0                    # they are identified by order, not by input or output
    track(node)                      # the payload may hold any object of the user
    return node


cpdef set_history(Node node, int slot, Tensor out):
    """Makes `out` output `slot` of a node, unless its dtype has no gradients."""
    if KIND[out.type] >= FLOAT_KIND:
        out.grad_node, out.slot = node, slot
        track_tensor(out)


def rewrite_history(Node node, int slot, Tensor x):
    """Makes `x`, written in place, output `slot` of a node, and updates its views."""
    cdef Tensor fresh = alias(x)
    set_history(node, slot, fresh)
    rebase(x, fresh)


cpdef Tensor view_of_input(Tensor x, Tensor source):
    """The elements of `x` as a view of `source` that a `Function` made."""
    cdef Tensor out = alias(x)
    set_base(out, source)
    out.origin = IN_FUNCTION
    return out


def mark_written(str name, Tensor x):
    """Records that a function has written into `x`. Raises for a leaf that requires grad."""
    check_writable(name, x, mode().grad)
    x.storage.version += 1


cpdef tuple saved_tensors(Node node):
    """The saved tensors of a custom node, after their versions are checked."""
    cdef int i
    check_not_released(node)
    return tuple([saved_at(node, i, -1) for i in range(node.n_saved)])


cpdef payload_of(Node node):
    """The payload of a custom node."""
    return node.attributes


def wanted_inputs(Node node):
    """For each edge of a node that runs in a sweep, whether its gradient is needed."""
    cdef Sweep* sweep = own_sweep()
    cdef int i
    return tuple([sweep != NULL and leads_on(sweep, &node.edges[i])
                  for i in range(node.n_edges)])


# ---- graphs inside a node ------------------------------------------------------------------------

def linked_alias(Op op, Tensor x):
    """The elements of `x` as a new tensor, which is linked to `x` by the operation `op`."""
    cdef PyObject* args[1]
    cdef Tensor out = alias(x)
    args[0] = <PyObject*>x
    record(op, args, 1, out, None)
    return out


def sweep_inside(tuple roots, tuple grads, tuple inputs, bint retained=False):
    """The gradients of `inputs` by a sweep through the graph between them and `roots` alone.

    It is recorded if grad mode is on, and keeps saved values if `retained`.
    """
    for x in (*roots, *grads, *inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"sweep_inside: expected Tensors, got {type_name(x)}")
    return run_backward(roots, grads, retained, mode().grad, inputs, False, None, True)


def is_forward_mode():
    """Whether nodes recorded now keep what forward mode needs."""
    return mode().forward_mode


def is_retained(Node node):
    """Whether the saved values of a node outlive the running sweep, since another may need them."""
    cdef Sweep* sweep = own_sweep()
    return sweep != NULL and sweep.retain_graph or node.visit.shared


def captured(tuple outputs, tuple inputs, int64_t since):
    """Tensors that represent the inputs of a graph other than `inputs`.

    The graph consists of the nodes below `outputs` from the sequence number `since` on.
    """
    cdef list own = [gradient_node(x) for x in inputs]
    cdef list roots = [gradient_node(x) for x in outputs]
    cdef dict found = {}                     # by node and number of the output
    cdef Node node
    cdef Tensor x
    cdef int i
    nodes, outside = nodes_below(roots, own, since, False)
    inside = {*own, *nodes}
    for x, node in zip(outputs, roots):
        if node not in inside:
            found.setdefault((node, x.slot), x)
    for node in nodes if outside else ():
        for i in range(node.n_edges):
            if node.edges[i].target != NULL and <object>node.edges[i].target not in inside:
                place = <object>node.edges[i].target, node.edges[i].slot
                if place not in found:
                    found[place] = end_of(&node.edges[i])
    return tuple(found.values())


def without_values(Tensor x):
    """A tensor with the shape, dtype and history of `x`, but not its memory; a leaf is itself."""
    if x.grad_node is None:
        return x
    return valueless(x.type, x.ndim_, x.dims, x.grad_node, x.slot)
