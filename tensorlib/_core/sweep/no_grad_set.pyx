"""Gradients that a sweep takes as zero: `no_grad_set`."""

from tensorlib._core.graph.node cimport Node, gradient_edge
from tensorlib._core.sweep.state cimport Nodes, Sweep, leads_on, push, start, stop
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.graph.node import _accumulate_op

cdef object accumulate = _accumulate_op


cdef dict cut_places(Sweep* sweep, cut):
    """The outputs of nodes whose gradients are taken as zero, by node."""
    cdef dict places = {}
    cdef set names = {value for value in cut if isinstance(value, str)}
    cdef Tensor x
    cdef Node node
    cdef Py_ssize_t k
    for value in cut:
        if isinstance(value, Tensor):
            x = <Tensor>value
            node = gradient_edge(x)
            if node is not None:
                places.setdefault(node, set()).add(x.slot)
    known = []
    for k in range(sweep.visited.n if names else 0):
        node = <Node>sweep.visited.items[k]
        if node.op is accumulate and node.variable.name is not None:
            known.append(node.variable.name)
            if node.variable.name in names:
                places.setdefault(node, set()).add(0)
    unknown = sorted(names.difference(known))
    if unknown:
        raise ValueError(f"backward: no_grad_set names {unknown[0]!r}, but no leaf of this graph "
                         f"has this name; the named ones are {sorted(known)}")
    return places


cdef int count_again(Sweep* sweep, tuple roots) except -1:
    """Counts the dependents of each node that will run: not those beyond a gradient of zero."""
    cdef Nodes stack
    cdef Node node, target
    cdef Py_ssize_t k
    cdef int i
    for k in range(sweep.visited.n):
        (<Node>sweep.visited.items[k]).pending = -1          # not reached
    start(&stack)
    try:
        for x in roots:
            node = gradient_edge(x)
            if node.pending < 0:
                node.pending = 0
                push(&stack, node)
        while stack.n:
            stack.n -= 1
            node = <Node>stack.items[stack.n]
            for i in range(node.n_edges):
                if not leads_on(sweep, &node.edges[i]):
                    continue
                target = <Node>node.edges[i].target
                if target.pending < 0:
                    target.pending = 0
                    push(&stack, target)
                target.pending += 1
    finally:
        stop(&stack)
    return 0
