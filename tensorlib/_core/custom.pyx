"""Doors for operations whose gradient one Python function computes: `Function`, `ops.compose`.

Their node has one rule for all inputs, which takes the node and the gradient that arrived. Beside the
edges the node keeps any number of tensors and a payload of Python's.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tensorlib._core.dtypes cimport FLOAT_KIND, KIND
from tensorlib._core.node cimport (
    Edge, Node, check_not_released, edge_dims, gradient_edge, keep, mode, new_node, saved_at,
    set_edge,
)
from tensorlib._core.op cimport Op
from tensorlib._core.operators cimport check_writable, rebase
from tensorlib._core.recording cimport record
from tensorlib._core.shape cimport MAX_NDIM
from tensorlib._core.sweep cimport retains_graph, run_backward
from tensorlib._core.tensor cimport Tensor, alias, new_scalar, over_storage

from tensorlib._core.node import _accumulate_op

cdef object accumulate = _accumulate_op


def custom_node(Op op, tuple inputs, tuple saved, int n_outputs, payload):
    """A node with an edge for each of the tensors `inputs`, which keeps the tensors `saved`."""
    cdef Node node = new_node(op, len(inputs), len(saved), n_outputs)
    cdef Tensor x
    cdef int i
    node.attributes = payload
    for i, x in enumerate(inputs):
        set_edge(node, i, x)
    for x in saved:
        keep(node, 0, x)
    node.kept = 0                    # they are known by their order, not by a place
    return node


def set_history(Node node, int slot, Tensor out):
    """Makes `out` output `slot` of a node, unless its dtype has no gradients."""
    if KIND[out.type] == FLOAT_KIND:
        out.grad_node, out.slot = node, slot


def rewrite_history(Node node, int slot, Tensor x):
    """Makes output `slot` of a node what `x`, written in place, is now; so too for its views."""
    cdef Tensor fresh = alias(x)
    set_history(node, slot, fresh)
    rebase(x, fresh)


def mark_written(str name, Tensor x):
    """Notes that a function has written into `x`. Raises for a leaf that requires grad."""
    check_writable(name, x, mode().grad)
    x.storage.version += 1


def saved_tensors(Node node):
    """What a custom node keeps, checked to be what it was."""
    cdef int i
    check_not_released(node)
    return tuple([saved_at(node, i, -1) for i in range(node.n_saved)])


def payload_of(Node node):
    """What a custom node was given to keep beside tensors."""
    return node.attributes


def wanted_inputs(Node node):
    """For each edge of a node that runs in a sweep, whether its gradient is wanted."""
    cdef int i
    return tuple([node.edges[i].target != NULL and (<Node>node.edges[i].target).needed
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

    It is recorded where the grad mode says so, and keeps saved values where they are `retained`.
    """
    return run_backward(roots, grads, retained, mode().grad, inputs, False, None, True)


def is_retained(Node node):
    """Whether what a node keeps outlives the sweep that runs now: another may come by as well."""
    return retains_graph() or mode().grad or node.displaced


def captured(tuple outputs, tuple inputs, int64_t since):
    """Tensors that stand for what a graph takes from outside beside `inputs`.

    The graph is what leads to `outputs` and is no older than the sequence number `since`.
    """
    cdef set own = {gradient_edge(x) for x in inputs}
    cdef set seen = set(own), places = set()
    cdef list stack = [], found = []
    cdef Node node, target
    cdef Tensor x
    cdef int i
    for x in outputs:
        node = gradient_edge(x)
        if node in seen:
            continue
        seen.add(node)
        if node.op is accumulate or node.sequence < since:
            places.add((node, x.slot))
            found.append(x)
        else:
            stack.append(node)
    while stack:
        node = stack.pop()
        for i in range(node.n_edges):
            if node.edges[i].target == NULL:
                continue
            target = <Node>node.edges[i].target
            if target.op is accumulate or target.sequence < since:
                place = (target, node.edges[i].slot)
                if place not in places and target not in own:
                    places.add(place)
                    found.append(stand_in(&node.edges[i]))
            elif target not in seen:
                seen.add(target)
                stack.append(target)
    return tuple(found)


cdef Tensor stand_in(Edge* edge):
    """A tensor with the shape, dtype and history of what an edge goes to, without its values."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Node target = <Node>edge.target
    cdef Tensor one, x
    cdef int d
    if target.op is accumulate:
        return <Tensor>target.saved[0].tensor
    for d in range(edge.ndim):
        steps[d] = 0
    one = new_scalar(edge.dtype)
    x = over_storage(one.storage, one.data_pointer, edge.dtype, edge.ndim, edge_dims(edge), steps)
    x.grad_node, x.slot = target, edge.slot
    return x
