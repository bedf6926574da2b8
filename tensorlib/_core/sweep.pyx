"""The backward sweep: gradients of roots with respect to what they were computed from.

One pass over the graph in reverse order of recording, iterative and on the calling thread. First
each node counts how many nodes will report to it; then nodes run when all have reported, newest
first. Gradients that meet are summed; a buffer that nobody else holds is added to in place.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, qsort, realloc

from tensorlib._core.copies cimport packed_copy
from tensorlib._core.cuts cimport count_again, cut_places
from tensorlib._core.elementwise cimport apply_binary
from tensorlib._core.hooks cimport (
    check_nan, explain, run_accumulated_hooks, run_after_hooks, run_before_hooks, run_tensor_hooks,
)
from tensorlib._core.loops cimport Loop, find_loop, loop_id
from tensorlib._core.node cimport (
    CHECKED, Edge, IN_SWEEP, Mode, Node, TRACED, forget_unpacked, grad_place, gradient_edge, mode,
    release_saved, watch,
)
from tensorlib._core.op cimport Op
from tensorlib._core.rules cimport fit, run_joint, run_rule
from tensorlib._core.tensor cimport Tensor, requires_grad, same_shape
from tensorlib._core.tile cimport run_loop
from tensorlib._core.worklist cimport (
    Displaced, Nodes, PyThreadState, Sweep, leads_anywhere, leads_on, pop_ready, push, push_ready,
    start, stop,
)

from tensorlib._core.node import _accumulate_op
from tensorlib._core.op import find

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* value)
    PyThreadState* PyThreadState_Get()

cdef object accumulate = _accumulate_op


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
        kept.needed, kept.grads, kept.inline_grad = node.needed, node.grads, node.inline_grad
        kept.displaced, node.displaced = node.displaced, True
        sweep.n_displaced += 1
    node.sweep = sweep.id
    node.pending = 0
    node.needed = True
    node.inline_grad = NULL
    node.grads = NULL
    if sweep.create_graph:
        watch(node)
    Py_INCREF(node)
    push(&sweep.visited, node)
    return 0


cdef int discover(Sweep* sweep, Node root) except -1:
    """Reaches every node below a root and counts the dependents of each."""
    cdef Nodes stack
    cdef Node node, target
    cdef int i
    start(&stack)
    try:
        if root.sweep != sweep.id:
            enter(sweep, root)
            push(&stack, root)
        while stack.n:
            stack.n -= 1
            node = <Node>stack.items[stack.n]
            for i in range(node.n_edges):
                if node.edges[i].target == NULL:
                    continue
                target = <Node>node.edges[i].target
                if target.sweep != sweep.id:
                    enter(sweep, target)
                    push(&stack, target)
                target.pending += 1
    finally:
        stop(&stack)
    return 0


cdef int older(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<Node>(<PyObject**>a)[0]).sequence, y = (<Node>(<PyObject**>b)[0]).sequence
    return (x > y) - (x < y)


cdef int keep_only_needed(Sweep* sweep, list targets) except -1:
    """Marks the nodes from which one of the targets is reached: the rest is not run.

    Without targets these are the leaves.
    """
    cdef Node node
    cdef Py_ssize_t k
    qsort(sweep.visited.items, sweep.visited.n, sizeof(PyObject*), older)
    for k in range(sweep.visited.n):
        node = <Node>sweep.visited.items[k]
        node.needed = targets is None and node.op is accumulate
    for node in targets or ():
        if node.sweep == sweep.id:
            node.needed = True
    # a node is younger than the nodes it points to, except leaves, which point nowhere
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
        node.sweep, node.pending, node.needed = kept.sweep, kept.pending, kept.needed
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

cdef inline bint only_ours(PyObject* g) noexcept:
    """Whether a gradient held once here has a buffer that nobody else can see."""
    cdef Tensor x = <Tensor>g
    return (x.packed and x.storage.capacity != 0
            and Py_REFCNT(<PyObject*>x.storage) == 1)


cdef int deliver(Sweep* sweep, Node node, int slot, Tensor g) except -1:
    """Adds `g` to the gradient of one output of a node."""
    cdef PyObject** place = grad_place(node, slot)
    cdef object total
    if place[0] == NULL:
        Py_INCREF(g)
        place[0] = <PyObject*>g
        return 0
    if (not sweep.create_graph and Py_REFCNT(place[0]) == 1 and only_ours(place[0])
            and add_in_place(<PyObject*>place[0], g)):
        return 0
    total = apply_binary(<Op>ADD, <object>place[0], g)
    Py_DECREF(<object>place[0])
    Py_INCREF(total)
    place[0] = <PyObject*>total
    return 0


cdef bint add_in_place(PyObject* total, Tensor g) except -1:
    """total += g where both are plain buffers of one dtype; False where they are not."""
    cdef Tensor x = <Tensor>total
    cdef Loop* loop = find_loop(ADD_LOOP, x.type)
    cdef char* inputs[2]
    cdef bint is_scalar[2]
    if loop.run == NULL or g.type != x.type or not g.packed or not same_shape(x, g):
        return False
    inputs[0], inputs[1] = x.data_pointer, g.data_pointer
    is_scalar[0] = is_scalar[1] = False
    run_loop(loop, inputs, is_scalar, x.data_pointer, x.numel_)
    x.storage.version += 1
    return True


cdef object ADD = None
cdef int ADD_LOOP = loop_id("add")


cdef int accumulate_leaf(Sweep* sweep, Node node) except -1:
    """leaf.grad += the gradient that arrived; a buffer of the sweep's own becomes the grad."""
    cdef Tensor leaf = <Tensor>node.saved[0].tensor
    cdef PyObject* g = node.inline_grad
    if g == NULL:
        return 0
    if leaf.gradient is None and Py_REFCNT(g) == 1 and only_ours(g):
        leaf.gradient = <Tensor>g
        return 0
    return add_gradient(leaf, <Tensor>g, sweep.create_graph)


cdef bint add_to_grad(Tensor gradient, Tensor g) except -1:
    """In place, so that whoever holds `.grad` sees it grow, as in PyTorch."""
    if requires_grad(gradient) or not gradient.packed or not gradient.storage.writable:
        return False
    return add_in_place(<PyObject*>gradient, g)


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
        for x in roots:
            discover(&sweep, gradient_edge(x))
        if inputs is not None and not accumulate_grads:
            found = [None] * len(targets)
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


cdef int add_gradient(Tensor x, Tensor g, bint create_graph) except -1:
    """x.grad += g, where `g` may be shared with others."""
    if x.gradient is None:
        x.gradient = g if create_graph else packed_copy(g, g.type)
    elif create_graph or not add_to_grad(<Tensor>x.gradient, g):
        x.gradient = apply_binary(<Op>ADD, x.gradient, g)
    return 0


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
    while sweep.ready.n:
        node = pop_ready(&sweep.ready)
        if node.hooks is not None:
            run_tensor_hooks(node)
        if found is not None:
            capture(node, inputs, targets, found)
        # nothing is wanted beyond the node of an input
        if not node.needed or targets is not None and node.n_edges and (
                shallow and node in targets or not leads_anywhere(sweep, node)):
            drop_grads(node)
        elif node.op is accumulate:
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
        return accumulate_leaf(sweep, node)
    run_before_hooks(node)
    g = outgoing(node)
    accumulate_leaf(sweep, node)
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


def connect_sweep():
    """Finds the operation by which gradients are summed."""
    global ADD
    ADD = find("add")
