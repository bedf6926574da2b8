"""The backward sweep: gradients of roots with respect to what they were computed from.

One pass over the graph in reverse order of recording, iterative and on the calling thread. First
each node counts how many nodes will report to it; then nodes run when all have reported, newest
first. Gradients that meet are summed (accumulate.pyx).
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc

from tensorlib._core.graph.node cimport (
    CHECKED, Edge, IN_SWEEP, Mode, Node, TRACED, grad_place, gradient_edge, mode, watch,
)
from tensorlib._core.graph.op cimport Op
from tensorlib._core.graph.saved cimport forget_unpacked, release_saved
from tensorlib._core.sweep.accumulate cimport accumulate, add_to_place
from tensorlib._core.sweep.hooks cimport (
    check_nan, explain, run_accumulated_hooks, run_after_hooks, run_before_hooks, run_tensor_hooks,
)
from tensorlib._core.sweep.no_grad_set cimport count_again, cut_places
from tensorlib._core.sweep.rules cimport fit, run_joint, run_rule
from tensorlib._core.sweep.state cimport (
    AHEAD, Displaced, Nodes, PyThreadState, Sweep, fetch_ahead, leads_anywhere, leads_on, pop_ready,
    push, push_ready, start, stop,
)
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.graph.node import _accumulate_op

cdef extern from "Python.h":
    PyThreadState* PyThreadState_Get()

cdef object accumulate_op = _accumulate_op


# ---- the state of a sweep ------------------------------------------------------------------------

cdef int64_t next_id = 1
cdef Sweep* active = NULL          # the newest sweep under way, on any thread


cdef Sweep* active_sweep(int64_t id) noexcept:
    cdef Sweep* sweep = active
    while sweep != NULL and sweep.id != id:
        sweep = sweep.outer
    return sweep


cdef int enter(Sweep* sweep, Node node) except -1:
    """Prepares a node for this sweep. Sets aside what an outer sweep keeps in it."""
    cdef Sweep* other = active_sweep(node.sweep) if node.sweep else NULL
    cdef Displaced* grown
    cdef Displaced* kept
    if other != NULL:
        if other.thread != sweep.thread:
            raise RuntimeError(
                "backward: another thread is running backward through a part of this graph; let "
                "one finish before the other begins")
        grown = <Displaced*>realloc(
            sweep.displaced, (sweep.n_displaced + 1) * sizeof(Displaced))
        if grown == NULL:
            raise MemoryError()
        sweep.displaced = grown
        kept = &grown[sweep.n_displaced]
        kept.node, kept.sweep, kept.pending = <PyObject*>node, node.sweep, node.pending
        kept.needed, kept.is_target = node.needed, node.is_target
        kept.grads, kept.inline_grad = node.grads, node.inline_grad
        kept.displaced, node.displaced = node.displaced, True
        sweep.n_displaced += 1
    node.sweep = sweep.id
    node.pending = 0
    node.needed = True
    node.is_target = False
    node.inline_grad = NULL
    node.grads = NULL
    if sweep.create_graph:
        watch(node)
    node.cursor = 0
    return 0


cdef int finish(Sweep* sweep, Node node) except -1:
    """Notes a node whose edges have all been followed."""
    push(&sweep.visited, node)
    Py_INCREF(node)
    return 0


cdef int discover(Sweep* sweep, Node root) except -1:
    """Reaches every node below a root and counts the dependents of each.

    Depth first, so that each node comes into `visited` after all that it points to.
    """
    cdef Nodes stack
    cdef Node node, target
    cdef PyObject* next
    start(&stack)
    try:
        if root.sweep != sweep.id:
            enter(sweep, root)
            push(&stack, root)
        while stack.n:
            node = <Node>stack.items[stack.n - 1]
            if node.cursor == node.n_edges:
                stack.n -= 1
                finish(sweep, node)
                continue
            next = node.edges[node.cursor].target
            node.cursor += 1
            if next == NULL:
                continue
            target = <Node>next
            if target.sweep != sweep.id:
                enter(sweep, target)
                push(&stack, target)
            target.pending += 1
    finally:
        stop(&stack)
    return 0


cdef int keep_only_needed(Sweep* sweep, list targets) except -1:
    """Marks the nodes from which one of the targets is reached: the rest is not run.

    Without targets these are the leaves.
    """
    cdef Node node
    cdef Py_ssize_t k
    for k in range(sweep.visited.n):
        node = <Node>sweep.visited.items[k]
        node.needed = node.is_target or targets is None and node.op is accumulate_op
    # a node comes after those that it points to
    for k in range(sweep.visited.n):
        node = <Node>sweep.visited.items[k]
        node.needed = node.needed or leads_anywhere(sweep, node)
    return 0


cdef void leave(Sweep* sweep) noexcept:
    """Lets go of everything the sweep holds, whether it ended or raised."""
    global active
    cdef Py_ssize_t k
    cdef Sweep** link = &active
    cdef Displaced* kept
    cdef Node node
    for k in range(sweep.visited.n):
        drop_grads(<Node>sweep.visited.items[k])
        (<Node>sweep.visited.items[k]).sweep = 0
    for k in range(sweep.n_displaced - 1, -1, -1):
        kept = &sweep.displaced[k]
        node = <Node>kept.node
        node.sweep, node.pending = kept.sweep, kept.pending
        node.needed, node.is_target = kept.needed, kept.is_target
        node.grads, node.inline_grad = kept.grads, kept.inline_grad
        node.displaced = kept.displaced
    while link[0] != sweep:
        link = &link[0].outer
    link[0] = sweep.outer
    for k in range(sweep.visited.n):
        Py_DECREF(<object>sweep.visited.items[k])
    stop(&sweep.visited)
    stop(&sweep.ready)
    free(sweep.displaced)


cdef void drop_grads(Node node) noexcept:
    cdef int i
    Py_XDECREF(node.inline_grad)
    node.inline_grad = NULL
    if node.grads != NULL:
        for i in range(node.n_outputs):
            Py_XDECREF(node.grads[i])
        free(node.grads)
        node.grads = NULL


# ---- gradients on their way ----------------------------------------------------------------------

cdef inline int deliver(Sweep* sweep, Node node, int slot, Tensor g) except -1:
    """Adds `g` to the gradient of one output of a node."""
    cdef PyObject** place = grad_place(node, slot)
    if place[0] != NULL:
        return add_to_place(place, g, sweep.create_graph)
    Py_INCREF(g)
    place[0] = <PyObject*>g
    return 0


# ---- running a node -----------------------------------------------------------------------------

cdef object outgoing(Node node):
    """The gradient that arrived at a node: a Tensor, or a tuple with None for unused outputs."""
    cdef int i
    if node.n_outputs == 1:
        return <object>node.inline_grad if node.inline_grad != NULL else None
    if node.grads == NULL:
        return None
    return tuple([<object>node.grads[i] if node.grads[i] != NULL else None
                  for i in range(node.n_outputs)])


cdef int run_closely(Sweep* sweep, Node node) except -1:
    """`run_node` with hooks, with a search for anomalies, and with gradients taken as zero."""
    cdef Op op = <Op>node.op
    cdef object g, joint = None
    cdef list grads = [None] * node.n_edges
    cdef PyObject* running = mode().running
    cdef Edge* edge
    cdef int i
    if node.hooks is not None:
        run_before_hooks(node)
    g = outgoing(node)
    drop_grads(node)
    if g is not None:
        if sweep.watched & TRACED:
            mode().running = <PyObject*>node
        try:
            joint = run_joint(node, op, g, sweep.create_graph)
            for i in range(node.n_edges):
                if leads_on(sweep, &node.edges[i]):
                    grads[i] = joint[i] if joint is not None else run_rule(
                        node, op, i, g, sweep.create_graph)
                    if grads[i] is not None:
                        grads[i] = fit(node, i, grads[i], sweep.create_graph)
            if sweep.watched & CHECKED:
                check_nan(node, grads)
        except Exception:
            if sweep.watched & TRACED:
                explain(node)
            raise
        finally:
            mode().running = running
        if node.hooks is not None:
            grads = run_after_hooks(node, grads, g)
    for i in range(node.n_edges):
        edge = &node.edges[i]
        if not leads_on(sweep, edge):
            continue
        if grads[i] is not None:
            deliver(sweep, <Node>edge.target, edge.slot, <Tensor>grads[i])
        (<Node>edge.target).pending -= 1
        if (<Node>edge.target).pending == 0:
            push_ready(&sweep.ready, <Node>edge.target)
    return 0


cdef int run_node(Sweep* sweep, Node node) except -1:
    """Runs the rules of a node and delivers what they give."""
    cdef Op op = <Op>node.op
    cdef object g = outgoing(node), joint = None, grad
    cdef Node target
    cdef int i
    drop_grads(node)
    if g is not None:
        joint = run_joint(node, op, g, sweep.create_graph)
    for i in range(node.n_edges):
        if node.edges[i].target == NULL:
            continue
        target = <Node>node.edges[i].target
        if not target.needed:
            continue
        if g is not None:
            grad = joint[i] if joint is not None else run_rule(
                node, op, i, g, sweep.create_graph)
            if grad is not None:
                grad = fit(node, i, grad, sweep.create_graph)
                deliver(sweep, target, node.edges[i].slot, grad)
                grad = None
        target.pending -= 1
        if target.pending == 0:
            push_ready(&sweep.ready, target)
    return 0


# ---- the sweep -----------------------------------------------------------------------------------

cpdef tuple run_backward(tuple roots, tuple grads, bint retain_graph, bint create_graph,
                         tuple inputs, bint accumulate_grads, cut=None, bint shallow=False):
    """Sweeps from `roots` with the gradients `grads`.

    Without `inputs` the gradients of all leaves are accumulated into `.grad`. With `inputs` only
    what leads to them runs; the gradients of those that are leaves are accumulated, or those of all
    are returned as a tuple (None where an input is not reached). The gradients of the tensors and
    of the leaves named in `cut` are taken as zero. `shallow`: nothing below the inputs is looked
    at, as no input lies below another.
    """
    global active, next_id
    cdef Sweep sweep
    cdef Mode* current = mode()
    cdef bint grad_before = current.grad
    cdef int watched_before = current.watched
    cdef dict cut_nodes = None
    cdef list targets = None, found = None
    cdef Node node
    cdef Tensor x
    cdef Py_ssize_t k
    sweep.id = next_id
    next_id += 1
    sweep.thread = PyThreadState_Get()
    sweep.retain_graph = retain_graph
    sweep.create_graph = create_graph
    sweep.watched = watched_before & (TRACED | CHECKED)
    sweep.cut = NULL
    start(&sweep.visited)
    start(&sweep.ready)
    sweep.displaced = NULL
    sweep.n_displaced = 0
    sweep.outer = active
    active = &sweep
    current.grad = create_graph
    current.watched = watched_before & ~IN_SWEEP | (IN_SWEEP if create_graph else 0)
    try:
        if inputs is not None:
            targets = [gradient_edge(x) for x in inputs]
        if shallow:
            for node in targets:
                if node.sweep != sweep.id:
                    enter(&sweep, node)
                    finish(&sweep, node)
        for x in roots:
            discover(&sweep, gradient_edge(x))
        if inputs is not None:
            found = None if accumulate_grads else [None] * len(targets)
            for node in targets:
                node.is_target = node.sweep == sweep.id
        if cut:
            cut_nodes = cut_places(&sweep, cut)
            sweep.cut = <PyObject*>cut_nodes
        if inputs is not None or cut:
            keep_only_needed(&sweep, targets)
        if cut:
            count_again(&sweep, roots)
        for k in range(len(roots)):
            x = <Tensor>roots[k]
            node = gradient_edge(x)
            if not cut or x.slot not in cut_nodes.get(node, ()):
                deliver(&sweep, node, x.slot, <Tensor>grads[k])
        for k in range(len(roots)):
            node = gradient_edge(<Tensor>roots[k])
            if node.pending == 0:
                node.pending = -1            # in the heap once
                push_ready(&sweep.ready, node)
        drain(&sweep, inputs, targets, found, shallow)
    finally:
        current.grad, current.watched = grad_before, watched_before
        leave(&sweep)
    return None if found is None else tuple(found)


cdef Sweep* own_sweep() noexcept:
    """The sweep that runs now on this thread, or NULL."""
    cdef Sweep* sweep = active
    while sweep != NULL and sweep.thread != PyThreadState_Get():
        sweep = sweep.outer
    return sweep


cdef bint retains_graph() noexcept:
    """Whether the sweep that runs now on this thread keeps saved values."""
    cdef Sweep* sweep = own_sweep()
    return sweep != NULL and sweep.retain_graph


def current_sweep():
    """A number that only the sweep which runs now on this thread has; 0 outside of sweeps."""
    cdef Sweep* sweep = own_sweep()
    return 0 if sweep == NULL else sweep.id


def is_running(int64_t sweep):
    """Whether the sweep of this number is under way, on any thread."""
    return active_sweep(sweep) != NULL


def is_reached(Node node):
    """Whether the sweep that runs now comes by at a node."""
    return node.sweep != 0 and node.sweep == current_sweep() and node.needed


cdef int drain(Sweep* sweep, tuple inputs, list targets, list found, bint shallow) except -1:
    """Runs nodes until none is ready."""
    cdef Node node
    cdef bint closely = sweep.watched or sweep.cut != NULL
    cdef Py_ssize_t left = sweep.visited.n
    while sweep.ready.n:
        left -= 1
        if left > AHEAD:
            fetch_ahead(sweep, left - AHEAD)
        node = pop_ready(&sweep.ready)
        if node.hooks is not None:
            run_tensor_hooks(node)
        if node.is_target and found is not None:
            capture(node, inputs, targets, found)
        # nothing is wanted beyond the node of an input
        if not node.needed or targets is not None and node.n_edges and (
                shallow and node.is_target or not leads_anywhere(sweep, node)):
            drop_grads(node)
        elif node.op is accumulate_op:
            if found is None:
                reach_leaf(sweep, node)
            drop_grads(node)
        else:
            if closely or node.hooks is not None:
                run_closely(sweep, node)
            else:
                run_node(sweep, node)
            if not sweep.retain_graph:
                # a node inside of another may be reached from outside too, by its saved values
                if not (shallow and node.displaced):
                    release_saved(node)
            elif node.packs:
                forget_unpacked(node)
    return 0


cdef int reach_leaf(Sweep* sweep, Node node) except -1:
    """Accumulates into a leaf, with its hooks."""
    if node.hooks is None or node.inline_grad == NULL:
        return accumulate(node, sweep.create_graph)
    run_before_hooks(node)
    g = outgoing(node)
    accumulate(node, sweep.create_graph)
    run_accumulated_hooks(node.hooks, node.variable)
    run_after_hooks(node, [], g)
    return 0


cdef int capture(Node node, tuple inputs, list targets, list found) except -1:
    """Notes the gradients of those inputs that this node's outputs are."""
    cdef Py_ssize_t k
    cdef PyObject* g
    for k in range(len(targets)):
        if targets[k] is node:
            g = grad_place(node, (<Tensor>inputs[k]).slot)[0]
            found[k] = None if g == NULL else <object>g
    return 0
