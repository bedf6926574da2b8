"""A sweep's walk over the graph: which nodes it reaches, and what it notes in each.

Depth first and iterative, so that a graph of any depth takes constant stack. A sweep inside of a
hook of another may come by at the same nodes: what the outer one noted there is set aside, and put
back when the inner one ends.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, malloc
from libc.string cimport memset

cdef extern from "Python.h":
    PyThreadState* PyThreadState_Get()

cdef int64_t last_id = 0
cdef Sweep* active = NULL          # the newest sweep under way, on any thread


cdef Sweep* active_sweep(int64_t id) noexcept:
    """The sweep of this number if it is under way, on any thread; or NULL."""
    cdef Sweep* sweep = active
    while sweep != NULL and sweep.id != id:
        sweep = sweep.outer
    return sweep


cdef Sweep* own_sweep() noexcept:
    """The sweep that runs now on this thread, or NULL."""
    cdef Sweep* sweep = active
    while sweep != NULL and sweep.thread != PyThreadState_Get():
        sweep = sweep.outer
    return sweep


cdef int begin(Sweep* sweep, list targets, bint shallow) except -1:
    """Makes a sweep the newest one, as far as it is not set yet: for all leaves or for targets.

    The walk goes through the targets unless it is `shallow`. `end` must follow, also after errors.
    """
    global active, last_id
    cdef Node node
    last_id += 1
    sweep.id = last_id
    sweep.outer = active
    active = sweep
    start(&sweep.visited)
    start(&sweep.ready)
    if targets is not None:
        sweep.targets = <PyObject*>targets
        for node in targets:
            enter(sweep, node)
            node.visit.is_target = True
            node.visit.needed = node.visit.walked = shallow
    return 0


cdef int enter(Sweep* sweep, Node node) except -1:
    """Prepares a node for this sweep. Sets aside what an outer sweep notes in it."""
    cdef Sweep* other = active_sweep(node.visit.sweep)
    cdef Visit* outer = NULL
    cdef PyObject** grads = &node.visit.grad
    if other == sweep:
        return 0
    if other != NULL and other.thread != sweep.thread and sweep.thread != NULL:
        raise RuntimeError(
            "backward: another thread is running backward through a part of this graph; let "
            "one finish before the other begins")
    push(&sweep.visited, node)
    if other != NULL:
        outer = <Visit*>malloc(sizeof(Visit))
    if node.n_outputs > 1:
        grads = <PyObject**>calloc(node.n_outputs, sizeof(PyObject*))
    if grads == NULL or outer == NULL and other != NULL:
        sweep.visited.n -= 1
        free(outer)
        raise MemoryError()
    Py_INCREF(node)
    if outer != NULL:
        outer[0] = node.visit
    memset(&node.visit, 0, sizeof(Visit))
    node.visit.sweep = sweep.id
    node.visit.outer = outer
    node.visit.grads = grads
    node.visit.cursor = node.n_edges
    node.visit.needed = sweep.targets == NULL and sweep.no_grad == NULL
    node.visit.passes_on = node.visit.needed and not node.is_leaf
    if sweep.create_graph:
        track(node)
    return 0


cdef int go_into(Sweep* sweep, Node node) except -1:
    """Puts a node on the walk's path when the walk comes by for the first time."""
    if node.visit.sweep != sweep.id:
        enter(sweep, node)
    if not node.visit.walked:
        node.visit.walked = True
        push(&sweep.ready, node)
    return 0


cdef int walk(Sweep* sweep, Node root) except -1:
    """Reaches every node below a root, counts the dependents of each and finds which are needed."""
    cdef Nodes* path = &sweep.ready            # which is empty again when the walk ends
    cdef Node node, target
    cdef Edge* edge
    go_into(sweep, root)
    while path.n:
        node = <Node>path.items[path.n - 1]
        if node.visit.cursor == 0:
            if sweep.targets != NULL or sweep.no_grad != NULL:
                node.visit.passes_on = leads_anywhere(sweep, node)
                node.visit.needed = node.visit.passes_on or node.visit.is_target or (
                    node.is_leaf and sweep.targets == NULL)
            path.n -= 1
            if path.n > AHEAD:
                fetch(path.items[path.n - AHEAD])
            continue
        node.visit.cursor -= 1
        edge = &node.edges[node.visit.cursor]
        if edge.target == NULL or is_zero(sweep, edge):
            continue
        target = <Node>edge.target
        if target.visit.sweep != sweep.id and is_outside(target, sweep.since):
            sweep.left_out = True
            continue
        go_into(sweep, target)
        target.visit.pending += 1
    return 0


cdef bint leads_anywhere(Sweep* sweep, Node node) except -1:
    """Whether the gradient of an input of the node is wanted."""
    cdef int i
    for i in range(node.n_edges):
        if leads_on(sweep, &node.edges[i]):
            return True
    return False


cdef void end(Sweep* sweep) noexcept:
    """Lets go of everything the sweep holds, whether it ended or raised."""
    global active
    cdef Sweep** link = &active
    cdef Visit* outer
    cdef Node node
    cdef Py_ssize_t k
    for k in range(sweep.visited.n):
        node = <Node>sweep.visited.items[k]
        drop_grads(node)
        if node.n_outputs > 1:
            free(node.visit.grads)
        outer = node.visit.outer
        if outer != NULL:
            node.visit = outer[0]
            free(outer)
    while link[0] != sweep:
        link = &link[0].outer
    link[0] = sweep.outer
    for k in range(sweep.visited.n - 1, -1, -1):
        Py_DECREF(<object>sweep.visited.items[k])
    stop(&sweep.visited)
    stop(&sweep.ready)


cdef tuple grads_of(Node node):
    """For each output of a node the gradient that arrived, or None."""
    cdef int i
    return tuple([<object>node.visit.grads[i] if node.visit.grads[i] != NULL else None
                  for i in range(node.n_outputs)])


cdef void drop_grads(Node node) noexcept:
    """Lets go of the gradients that arrived at a node."""
    cdef PyObject* g
    cdef int i
    for i in range(node.n_outputs):
        g = node.visit.grads[i]
        node.visit.grads[i] = NULL
        Py_XDECREF(g)


# ---- walks without a sweep -----------------------------------------------------------------------

cdef list nodes_below(list roots, list inputs, int64_t since, bint between, bint* left_out):
    """The nodes that `roots` lead to, themselves included; `between`: that lead to the `inputs`.

    The inputs are no part of it, and what lies behind them is not looked at. With `since`, leaves
    and nodes from before it are left out as well; `left_out` says whether there are such.
    """
    cdef Sweep look
    cdef list found = []
    cdef Node node
    cdef Py_ssize_t k
    memset(&look, 0, sizeof(Sweep))
    look.since = since
    try:
        begin(&look, inputs, True)
        for node in roots:
            if node.visit.sweep == look.id or not is_outside(node, since):
                walk(&look, node)
            else:
                look.left_out = True
        for k in range(look.visited.n):
            node = <Node>look.visited.items[k]
            if node.visit.passes_on if between else not node.visit.is_target:
                found.append(node)
    finally:
        end(&look)
    left_out[0] = look.left_out
    return found
