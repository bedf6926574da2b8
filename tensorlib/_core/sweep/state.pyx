"""A sweep's walk over the graph: which nodes it reaches, and the state it keeps in each.

The walk is depth-first and iterative, so it needs constant stack for a graph of any depth. A sweep
inside a hook of another one may reach the same nodes: the state of the outer sweep is saved, and
restored when the inner one ends.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import os

from tensorlib._core.base.locks cimport FREE_THREADED, Lock, drop, hold
from tensorlib._core.graph.node cimport gradient_node, renew_edges, set_edge

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int microseconds)

cdef enum:
    POLL = 20                      # microseconds between polls of another thread's sweep

cdef extern from "Python.h":
    PyThreadState* PyThreadState_Get()
    int PyErr_CheckSignals() except -1
    ctypedef struct TupleItems "PyTupleObject":
        PyObject** ob_item

cdef int64_t last_id = 0
cdef Sweep* active = NULL          # the newest running sweep, on any thread

# Without a GIL a walk holds this lock, so that it finds each node either free or taken by the sweep
# of another thread. It is held while a sweep begins and ends, but not while its nodes run, which it
# owns by then.
cdef Lock walking


cdef void hold_walks() noexcept:
    hold(&walking)


cdef void drop_walks() noexcept:
    drop(&walking)


cdef Sweep* find_sweep(int64_t id) noexcept:
    cdef Sweep* sweep = active
    while sweep != NULL and sweep.id != id:
        sweep = sweep.outer
    return sweep


cdef Sweep* active_sweep(int64_t id) noexcept:
    """The sweep of this number if it is running, on any thread; or NULL."""
    cdef Sweep* sweep
    hold(&walking)
    sweep = find_sweep(id)
    drop(&walking)
    return sweep


cdef Sweep* own_sweep() noexcept:
    """The innermost sweep of this thread, or NULL."""
    cdef Sweep* sweep
    hold(&walking)
    sweep = active
    while sweep != NULL and sweep.thread != PyThreadState_Get():
        sweep = sweep.outer
    drop(&walking)
    return sweep


cdef int begin(Sweep* sweep, list targets, bint shallow) except -1:
    """Begins a sweep, for all leaves or for targets, and makes it the newest one.

    The walk continues behind the targets unless it is `shallow`. `end` must follow, also after
    errors.
    """
    global active, last_id
    cdef Node node
    cdef int taken
    last_id += 1
    sweep.id = last_id
    sweep.aside = NULL
    sweep.spread = NULL
    sweep.meets = 0
    sweep.outer = active
    active = sweep
    start(&sweep.visited)
    start(&sweep.ready)
    sweep.targets = <PyObject*>targets if targets is not None else NULL
    if targets is not None:
        for node in targets:
            taken = enter(sweep, node)
            if FREE_THREADED and taken:
                continue
            node.visit.asked = True
            node.visit.cursor = 0 if shallow else -1
    return 0


cdef int enter(Sweep* sweep, Node node) except -1:
    """Prepares a node for this sweep, saving the state of an outer one.

    Without a GIL it returns 1 for a leaf that the sweep of another thread reaches, unchanged.
    """
    cdef Sweep* other = find_sweep(node.visit.sweep)
    cdef Aside* aside
    if other == sweep:
        return 0
    if other != NULL:
        if other.thread != sweep.thread and sweep.thread != NULL:
            if not node.is_leaf:
                raise RuntimeError(
                    "backward: another thread is running backward through a part of this graph; "
                    "let one finish before the other begins")
            sweep.meets = other.id
            if FREE_THREADED:              # the other sweep is using its state
                return 1
        aside = <Aside*>malloc(sizeof(Aside))
        if aside == NULL:
            raise MemoryError()
        aside.node, aside.visit, aside.next = <PyObject*>node, node.visit, sweep.aside
        sweep.aside = aside
    push(&sweep.visited, node)
    Py_INCREF(node)
    node.visit.sweep = sweep.id
    node.visit.pending = 0
    node.visit.cursor = node.n_edges
    node.visit.asked = node.is_leaf and sweep.targets == NULL
    node.visit.passes_on = not node.is_leaf and wants_all(sweep)
    node.visit.shared = other != NULL
    node.visit.idle = True
    node.visit.beside = 0
    node.visit.grads = NULL
    if sweep.create_graph:
        track(node)
    return 0


cdef bint go_into(Sweep* sweep, Node node) except -1:
    """Puts a node on the path of the walk when it is reached for the first time.

    False if it is left out, as a leaf or as a node from before `since`.
    """
    cdef int taken
    if node.visit.sweep != sweep.id:
        if sweep.since > 0 and (node.is_leaf or node.sequence < sweep.since):
            sweep.left_out = True
            return False
        taken = enter(sweep, node)
        if FREE_THREADED and taken:
            return False
    elif node.visit.cursor < 0:
        node.visit.cursor = node.n_edges
    else:
        return True
    push(&sweep.ready, node)
    return True


cdef int walk(Sweep* sweep, Node root) except -1:
    """Visits every node below a root, counts the dependents of each and finds which are needed."""
    cdef Pointers* path = &sweep.ready            # restored when the walk ends
    cdef Node node, target
    cdef Edge* edge
    cdef Py_ssize_t bottom = path.n
    cdef int i
    go_into(sweep, root)
    while path.n > bottom:
        node = <Node>path.items[path.n - 1]
        if node.visit.cursor == 0:
            path.n -= 1
            for i in range(node.n_edges):
                if leads_on(sweep, &node.edges[i]):
                    node.visit.passes_on = True
                else:
                    leave(sweep, &node.edges[i])
            if node.n_outputs > 1 and node.op in parted:
                node.visit.beside = outputs_beside(sweep, node)
            continue
        node.visit.cursor -= 1
        if node.visit.cursor == 0 and wants_all(sweep):
            path.n -= 1                        # nothing to come back for
        edge = &node.edges[node.visit.cursor]
        if edge.target == NULL or is_zero(sweep, edge):
            continue
        target = <Node>edge.target
        if target.op is MOVED:
            follow(edge)
            target = <Node>edge.target
        if go_into(sweep, target):
            target.visit.pending += 1
    return 0


cdef void end(Sweep* sweep) noexcept:
    """Releases everything that the sweep holds, whether it ended or raised."""
    global active
    cdef Sweep** link = &active
    cdef Aside* aside
    cdef Node node
    cdef Py_ssize_t k
    # this may run another sweep, so this one counts as running until its nodes are released
    for k in range(sweep.visited.n):
        node = <Node>sweep.visited.items[k]
        drop_grads(node)
        Py_DECREF(node)
    hold(&walking)
    while sweep.aside != NULL:
        aside = sweep.aside
        (<Node>aside.node).visit = aside.visit
        sweep.aside = aside.next
        free(aside)
    while link[0] != sweep:
        link = &link[0].outer
    link[0] = sweep.outer
    drop(&walking)
    stop(&sweep.visited)
    stop(&sweep.ready)


# ---- the gradients that arrived at a node --------------------------------------------------------

cdef PyObject** grad_place(Node node, int slot) except NULL:
    """The slot for the gradient of an output of a node: NULL or None before one arrived."""
    if node.n_outputs == 1:
        return &node.visit.grads
    if node.visit.grads == NULL:
        nothing = (None,) * node.n_outputs
        Py_INCREF(nothing)
        node.visit.grads = <PyObject*>nothing
    return &(<TupleItems*>node.visit.grads).ob_item[slot]


cdef object grad_at(Node node, int slot):
    """The gradient that arrived at an output, or None."""
    cdef PyObject* g = grad_place(node, slot)[0]
    return <object>g if g != NULL else None


cdef tuple grads_of(Node node):
    """The gradient that arrived at each output of a node, or None."""
    cdef int i
    return tuple([grad_at(node, i) for i in range(node.n_outputs)])


cdef void drop_grads(Node node) noexcept:
    """Releases the gradients that arrived at a node."""
    cdef PyObject* grads = node.visit.grads
    node.visit.grads = NULL
    Py_XDECREF(grads)


# ---- outputs of which not all need all inputs ----------------------------------------------------
# A replayed call is one node. In the graph of the eager call, nodes do not run if no requested
# gradient depends on their outputs.

cdef tuple parted = ()             # operations of such nodes
cdef object ways_of = None         # returns for such a node the edges behind each output


def set_ways(function, *operations):
    """Sets the function for nodes of some operations that returns, for each output and each edge,
    whether the gradient along the edge depends on that output."""
    global ways_of, parted
    ways_of, parted = function, operations


cdef unsigned int outputs_beside(Sweep* sweep, Node node) except? 0:
    """The value of `Visit.beside` for a node, after the walk has visited the nodes below it."""
    cdef unsigned int found = 0
    cdef int i, slot
    cdef list wanted
    cdef Tensor x
    cdef set asked
    if node.visit.asked and sweep.inputs == NULL or not (node.visit.asked or node.visit.passes_on):
        return 0
    asked = {x.slot for x in <tuple>sweep.inputs if x.grad_node is node} if (
        node.visit.asked) else set()
    wanted = [leads_on(sweep, &node.edges[i]) for i in range(node.n_edges)]
    for slot, ways in enumerate(ways_of(node)):
        if slot < TOLD_APART and slot not in asked and not any(
                [way and is_wanted for way, is_wanted in zip(ways, wanted)]):
            found |= <unsigned int>1 << slot
    return found


cdef int leave(Sweep* sweep, Edge* edge) except -1:
    """Removes the dependence on a node that reports only to outputs that are not needed."""
    cdef Visit* visit
    if edge.target != NULL:
        visit = &(<Node>edge.target).visit
        if visit.sweep == sweep.id and visit.beside and lies_beside(edge) and not (
                is_zero(sweep, edge)):
            visit.pending -= 1
    return 0


# ---- nodes whose place others take --------------------------------------------------------------
# A replayed call is one node. If its gradient is to have a graph, the nodes of its operations
# replace it: edges to output i then lead to the target of edge i.

class _Moved:
    """The operation of the node of a replayed call that others have replaced."""

    node_name = "CompiledBackward0"
    name = "compiled"


cdef object MOVED = _Moved()


cdef int move(Node node, list made) except -1:
    """Replaces a node by the nodes of `made`, one for each output. If it has hooks it stays, and
    passes its gradients on."""
    cdef Tensor x
    cdef int i
    if not all([gradient_node(x) is not None for x in made]):
        raise RuntimeError("backward: what is computed again has no gradient")
    renew_edges(node, <int>len(made))
    for i, x in enumerate(made):
        set_edge(node, i, x)
    track(node)
    move_on(node)
    return 0


cdef void move_on(Node node):
    """Bypasses a node that was replaced, unless it has hooks."""
    if node.hooks is None:
        node.op = MOVED


cdef inline int follow(Edge* edge) except -1:
    """Redirects an edge to the node that replaced its target."""
    cdef Node node = <Node>edge.target
    cdef Edge* further = &node.edges[edge.slot]
    Py_INCREF(<object>further.target)
    edge.target, edge.slot = further.target, further.slot
    Py_DECREF(node)
    return 0


cdef int settle(Tensor x) except -1:
    """Links a tensor to the node that replaced its own."""
    cdef Edge* further
    if x.grad_node is not None and (<Node>x.grad_node).op is MOVED:
        further = &(<Node>x.grad_node).edges[x.slot]
        x.slot, x.grad_node = further.slot, <object>further.target
    return 0


# ---- walks without a sweep -----------------------------------------------------------------------

cdef tuple nodes_below(list roots, list inputs, int64_t since, bint between):
    """The nodes below `roots`, these included; with `between` only those on paths to `inputs`.

    The inputs are excluded, and nodes behind them are not visited. With `since`, leaves and nodes
    from before it are left out as well: the second result says whether there were any.
    """
    cdef Sweep look
    cdef list found = []
    cdef Node node
    cdef Py_ssize_t k
    memset(&look, 0, sizeof(Sweep))
    look.since = since
    if FREE_THREADED:
        look_alone(&look, roots, inputs)
    try:
        if not FREE_THREADED:
            begin(&look, inputs, True)
            for node in roots:
                walk(&look, node)
        for k in range(look.visited.n):
            node = <Node>look.visited.items[k]
            if node.visit.passes_on if between else not node.visit.asked:
                found.append(node)
    finally:
        end(&look)
    return found, look.left_out


cdef int look_alone(Sweep* look, list roots, list inputs) except -1:
    """The walk of `nodes_below` while sweeps of other threads may run."""
    cdef Node node
    look.thread = PyThreadState_Get()
    while True:
        hold(&walking)
        try:
            begin(look, inputs, True)
            for node in roots:
                walk(look, node)
        except BaseException:
            drop(&walking)
            end(look)
            raise
        drop(&walking)
        if look.meets == 0:
            return 0
        end(look)
        wait_for(look.meets)


cdef int wait_for(int64_t id) except -1:
    """Waits for the end of a sweep of another thread that reaches the same leaf."""
    if own_sweep() != NULL:                # a sweep that others may wait for must not wait itself
        raise RuntimeError("backward: another thread is running backward to a leaf of this "
                           "one, which runs in a hook; let one finish before the other begins")
    while active_sweep(id) != NULL:
        with nogil:
            usleep(POLL)
        PyErr_CheckSignals()
    return 0


# ---- fork ----------------------------------------------------------------------------------------

def forget_sweeps():
    """Resets the sweeps in a forked child: those of other threads do not continue, and new threads
    may get the stacks on which they are."""
    global active
    cdef Sweep** link = &active
    while link[0] != NULL:
        if link[0].thread == PyThreadState_Get():
            link = &link[0].outer
        else:
            link[0] = link[0].outer


os.register_at_fork(after_in_child=forget_sweeps)
