"""A sweep's walk over the graph: which nodes it reaches, and the state it keeps in each.

Depth first and iterative, so that a graph of any depth takes constant stack. A sweep inside of a
hook of another may come by at the same nodes: what the outer one noted there is set aside, and put
back when the inner one ends.
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
    POLL = 20                      # microseconds between two looks at another thread's sweep

cdef extern from "Python.h":
    PyThreadState* PyThreadState_Get()
    int PyErr_CheckSignals() except -1
    ctypedef struct TupleItems "PyTupleObject":
        PyObject** ob_item

cdef int64_t last_id = 0
cdef Sweep* active = NULL          # the newest sweep under way, on any thread

# Without a global lock a walk holds this one, so that it finds each node free or taken by another
# thread's sweep. It is held while a sweep begins and ends, and not while its nodes run: these are
# its own by then.
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
    """The sweep of this number if it is under way, on any thread; or NULL."""
    cdef Sweep* sweep
    hold(&walking)
    sweep = find_sweep(id)
    drop(&walking)
    return sweep


cdef Sweep* own_sweep() noexcept:
    """The sweep that runs now on this thread, or NULL."""
    cdef Sweep* sweep
    hold(&walking)
    sweep = active
    while sweep != NULL and sweep.thread != PyThreadState_Get():
        sweep = sweep.outer
    drop(&walking)
    return sweep


cdef int begin(Sweep* sweep, list targets, bint shallow) except -1:
    """Makes a sweep the newest one, as far as it is not set yet: for all leaves or for targets.

    The walk goes through the targets unless it is `shallow`. `end` must follow, also after errors.
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
    """Prepares a node for this sweep. Sets aside what an outer sweep notes in it.

    Without a global lock a leaf that another thread's sweep leads to is left as it is: 1.
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
            if FREE_THREADED:              # the other one works with what it notes there
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
    """Puts a node on the walk's path when the walk comes by for the first time.

    False where it is left out, as a leaf or as one that was recorded before `since`.
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
    """Reaches every node below a root, counts the dependents of each and finds which are needed."""
    cdef Pointers* path = &sweep.ready            # which is as it was when the walk ends
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
    """Lets go of everything the sweep holds, whether it ended or raised."""
    global active
    cdef Sweep** link = &active
    cdef Aside* aside
    cdef Node node
    cdef Py_ssize_t k
    # what dies here may run a sweep of its own: this one is under way until its nodes are let go
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
    """Where the gradient of one output of a node is kept: NULL or None before one arrived."""
    if node.n_outputs == 1:
        return &node.visit.grads
    if node.visit.grads == NULL:
        nothing = (None,) * node.n_outputs
        Py_INCREF(nothing)
        node.visit.grads = <PyObject*>nothing
    return &(<TupleItems*>node.visit.grads).ob_item[slot]


cdef object grad_at(Node node, int slot):
    """The gradient of one output that arrived, or None."""
    cdef PyObject* g = grad_place(node, slot)[0]
    return <object>g if g != NULL else None


cdef tuple grads_of(Node node):
    """For each output of a node the gradient that arrived, or None."""
    cdef int i
    return tuple([grad_at(node, i) for i in range(node.n_outputs)])


cdef void drop_grads(Node node) noexcept:
    """Lets go of the gradients that arrived at a node."""
    cdef PyObject* grads = node.visit.grads
    node.visit.grads = NULL
    Py_XDECREF(grads)


# ---- outputs of which not all need all inputs ----------------------------------------------------
# A call that was replayed is one node. In the graph of the eager call, nothing runs that leads only
# to results of which no gradient depends that is asked for.

cdef tuple parted = ()             # operations of such nodes
cdef object ways_of = None         # gives of such a node, for each output, the edges behind it


def set_ways(function, *operations):
    """Has a function called with nodes of some operations, which gives for each output for each
    edge whether the gradient of what it leads to depends on that output."""
    global ways_of, parted
    ways_of, parted = function, operations


cdef unsigned int outputs_beside(Sweep* sweep, Node node) except? 0:
    """What `Visit.beside` is of a node, when the walk is done with what lies below."""
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
    """Has nobody wait for a node that reports to an output beside those that are needed."""
    cdef Visit* visit
    if edge.target != NULL:
        visit = &(<Node>edge.target).visit
        if visit.sweep == sweep.id and visit.beside and lies_beside(edge) and not (
                is_zero(sweep, edge)):
            visit.pending -= 1
    return 0


# ---- nodes whose place others take --------------------------------------------------------------
# A call that was replayed is one node. Where its gradient is to have a graph, nodes of its
# operations take that place: what led to output i leads to the node of edge i from then on.

class _Moved:
    """In the place of the operation of a replayed call that its own operations have replaced."""

    node_name = "CompiledBackward0"
    name = "compiled"


cdef object MOVED = _Moved()


cdef int move(Node node, list made) except -1:
    """Has the nodes of `made`, one for each output, take the place of a node. Its hooks stay, and
    with them the node, which passes on what it is given."""
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
    """Has nobody come by at a node whose place others took, unless it has hooks."""
    if node.hooks is None:
        node.op = MOVED


cdef inline int follow(Edge* edge) except -1:
    """Has an edge lead to what took the place of its target."""
    cdef Node node = <Node>edge.target
    cdef Edge* further = &node.edges[edge.slot]
    Py_INCREF(<object>further.target)
    edge.target, edge.slot = further.target, further.slot
    Py_DECREF(node)
    return 0


cdef int settle(Tensor x) except -1:
    """Links a tensor to what took the place of the node that made it."""
    cdef Edge* further
    if x.grad_node is not None and (<Node>x.grad_node).op is MOVED:
        further = &(<Node>x.grad_node).edges[x.slot]
        x.slot, x.grad_node = further.slot, <object>further.target
    return 0


# ---- walks without a sweep -----------------------------------------------------------------------

cdef tuple nodes_below(list roots, list inputs, int64_t since, bint between):
    """The nodes that `roots` lead to, themselves included; `between`: that lead to the `inputs`.

    The inputs are no part of it, and what lies beyond them is not visited. With `since`, leaves
    and nodes from before it are left out as well: the second result says whether there are such.
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
    """The walk of `nodes_below` where sweeps of other threads go on meanwhile."""
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
    """Waits until the sweep of another thread has ended, which leads to the same leaf."""
    if own_sweep() != NULL:                # one that others may wait for must not wait itself
        raise RuntimeError("backward: another thread is running backward to a leaf of this "
                           "one, which runs in a hook; let one finish before the other begins")
    while active_sweep(id) != NULL:
        with nogil:
            usleep(POLL)
        PyErr_CheckSignals()
    return 0


# ---- fork ----------------------------------------------------------------------------------------

def forget_sweeps():
    """In a forked child: the sweeps of other threads do not go on, and new threads get the stacks
    on which they were recorded."""
    global active
    cdef Sweep** link = &active
    while link[0] != NULL:
        if link[0].thread == PyThreadState_Get():
            link = &link[0].outer
        else:
            link[0] = link[0].outer


os.register_at_fork(after_in_child=forget_sweeps)
