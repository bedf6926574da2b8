"""The backward sweep: gradients of roots with respect to what they were computed from.

One pass over the graph in reverse topological order, iterative and on the calling thread. First the
dependents of each node are counted (state.pyx); then a node runs when all of them have run, the
newest first. Gradients that arrive at the same output are summed (accumulate.pyx).
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t

from tensorlib._core.base.locks cimport FREE_THREADED
from tensorlib._core.base.upcalls cimport GETITEM, VIEW_SCATTER, registered
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport CHECKED, Mode, TRACED, TRACKED, mode
from tensorlib._core.graph.node cimport Edge, Node, gradient_node, release_saved
from tensorlib._core.graph.op cimport Op
from tensorlib._core.graph.saved cimport forget_unpacked
from tensorlib._core.interpreters.interception cimport executed, interpreted
from tensorlib._core.interpreters.profile cimport begin_event, end_event, observing
from tensorlib._core.sweep.accumulate cimport (
    accumulate, add_picked, add_to_place, drop_spread, hold_spread,
)
from tensorlib._core.sweep.hooks cimport (
    run_accumulated_hooks, run_after_hooks, run_before_hooks, run_tensor_hooks,
)
from tensorlib._core.sweep.rules cimport gradient, joint_gradients
from tensorlib._core.sweep.state cimport (
    AHEAD, PyThreadState, Sweep, active_sweep, begin, drop_grads, drop_walks, end, fetch_ahead,
    grad_at, grad_place, hold_walks, leads_on, move_on, own_sweep, pop_ready, push_ready, settle,
    wait_for, walk,
)
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.graph.anomalies import check_nan, explain
from tensorlib._core.sweep.rules import WrongGradient

cdef extern from "Python.h":
    PyThreadState* PyThreadState_Get()


# ---- gradients on their way ----------------------------------------------------------------------

cdef inline int deliver(Sweep* sweep, Node node, int slot, Tensor g) except -1:
    """Adds `g` to the gradient of one output of a node."""
    cdef PyObject** place = grad_place(node, slot)
    if place[0] != NULL and <object>place[0] is not None:
        if place[0] == sweep.spread:
            drop_spread(sweep)
        return add_to_place(place, g, sweep.create_graph)
    Py_XDECREF(place[0])
    Py_INCREF(g)
    place[0] = <PyObject*>g
    return 0


# ---- running a node ------------------------------------------------------------------------------

cdef list observed_gradients(Sweep* sweep, Node node, object g):
    """The gradients of the inputs of a node, after anomaly detection and hooks have seen them."""
    cdef Op op = <Op>node.op
    cdef PyObject* running = mode().running
    cdef int i
    if sweep.anomalies & TRACED:
        mode().running = <PyObject*>node
    try:
        joint = joint_gradients(node, op, g, sweep.create_graph)
        grads = [gradient(node, op, i, g, joint, sweep.create_graph)
                 if leads_on(sweep, &node.edges[i]) else None for i in range(node.n_edges)]
        if sweep.anomalies & CHECKED:
            check_nan(node, grads)
    except Exception:
        if sweep.anomalies & TRACED:
            explain(node)
        raise
    finally:
        mode().running = running
    return grads if node.hooks is None else run_after_hooks(node, grads, g)


cdef int run_node(Sweep* sweep, Node node) except -1:
    """Runs the rules of a node and delivers their results."""
    cdef bint moves = node.op is replayed and unfolded(sweep, node)
    if watched:
        run_observed(sweep, node)
    else:
        run_rules(sweep, node)
    if moves:
        move_on(node)
    return 0


cdef int run_observed(Sweep* sweep, Node node) except -1:
    """`run_rules`, as an event of a profile."""
    cdef list event
    if not observing:
        return run_rules(sweep, node)
    event = begin_event((<Op>node.op).node_name, ())
    try:
        return run_rules(sweep, node)
    finally:
        end_event(event)


cdef int run_rules(Sweep* sweep, Node node) except -1:
    cdef Op op = <Op>node.op
    cdef object g, joint, grad = None
    cdef bint observed = node.hooks is not None or sweep.anomalies
    cdef bint picks = not observed and not watched and op is registered(GETITEM)
    cdef bint in_part = op is replayed or op is passing      # not all results need all inputs
    cdef Edge* edge
    cdef Node target
    cdef int i
    if node.hooks is not None:
        run_before_hooks(node)
    g = None if node.visit.grads == NULL else <object>node.visit.grads
    drop_grads(node)
    if g is not None:
        joint = observed_gradients(sweep, node, g) if observed else joint_gradients(
            node, op, g, sweep.create_graph)
    for i in range(node.n_edges):
        edge = &node.edges[i]
        if not leads_on(sweep, edge):
            continue
        target = <Node>edge.target
        if g is not None and not (picks and target.visit.grads != NULL and isinstance(g, Tensor)
                                  and add_picked(sweep, node, <Tensor>g, target)):
            grad = joint[i] if observed else gradient(node, op, i, g, joint, sweep.create_graph)
        if grad is not None:
            if not isinstance(grad, Tensor):
                raise WrongGradient(f"backward: the gradient rule of {op.name} returned an example "
                                    "of a batch to a sweep that is not of this batch")
            deliver(sweep, target, edge.slot, <Tensor>grad)
            if picks or i == 0 and op is registered(VIEW_SCATTER) and not (observed or watched):
                hold_spread(sweep, <Tensor>grad, target, not picks)
            target.visit.idle = False
            grad = None
        elif not in_part:
            target.visit.idle = False
        target.visit.pending -= 1
        if target.visit.pending == 0:
            push_ready(&sweep.ready, target)
    return 0


cdef int pass_by(Sweep* sweep, Node node) except -1:
    """Skips a node to which nothing leads: it neither runs nor releases its saved values."""
    cdef Node target
    cdef int i
    for i in range(node.n_edges):
        if leads_on(sweep, &node.edges[i]):
            target = <Node>node.edges[i].target
            target.visit.pending -= 1
            if target.visit.pending == 0:
                push_ready(&sweep.ready, target)
    return 0


cdef int reach_leaf(Sweep* sweep, Node node) except -1:
    """Accumulates into a leaf, with its hooks."""
    if node.hooks is None or node.visit.grads == NULL:
        return accumulate(node, sweep.create_graph)
    run_before_hooks(node)
    g = grad_at(node, 0)
    accumulate(node, sweep.create_graph)
    run_accumulated_hooks(node)
    run_after_hooks(node, [], g)
    return 0


# ---- replayed calls ----

cdef object expand = None            # replaces nodes of replayed calls by those of operations
cdef object expand_result = None
cdef object replayed = None          # the operation of replayed calls in graphs
cdef object unfold = None            # does so during a sweep that needs it
cdef object passing = None           # the operation of nodes that only have hooks left


def set_expansion(below, result, under_way, *operations):
    """Sets the functions that expand nodes of replayed calls: one for the roots of a sweep with
    `create_graph`, one for a tensor that gets a hook or whose gradient is requested, and one for a
    node that a sweep reaches."""
    global expand, expand_result, unfold, replayed, passing
    expand, expand_result, unfold, (replayed, passing) = below, result, under_way, operations


cdef bint unfolded(Sweep* sweep, Node node) except -1:
    """Whether a node that a sweep has reached is replaced by others, to which its gradients are
    passed on: the sweep visits these, and no longer follows the edges of the node."""
    cdef list left = unfold(node)
    cdef Node target
    cdef int i
    if left is None:
        return False
    if FREE_THREADED:
        hold_walks()
    try:
        for i in range(node.n_edges):
            target = <Node>node.edges[i].target
            walk(sweep, target)
            target.visit.pending += 1
    finally:
        if FREE_THREADED:
            drop_walks()
    for target in left:
        target.visit.pending -= 1
        if target.visit.pending == 0:
            push_ready(&sweep.ready, target)
    return True


cpdef int own_node(Tensor x, bint hooked=False) except -1:
    """Links an intermediate result of a replayed call, or one that gets a hook, to the node of its
    operation."""
    cdef Node node = gradient_node(x)
    if node is not None and node.n_outputs > 1 and expand_result is not None:
        expand_result(x, hooked)
    settle(x)
    return 0


cdef int expanded(tuple roots, inputs, bint create_graph) except -1:
    """Replaces the nodes of replayed calls that a sweep reaches by those of their operations."""
    cdef Tensor x
    if create_graph:
        expand([gradient_node(x) for x in roots])
    for x in inputs or ():
        own_node(x)
    for x in roots:
        settle(x)
    return 0


# ---- the sweep -----------------------------------------------------------------------------------

cdef tuple run_backward(tuple roots, tuple grads, bint retain_graph, bint create_graph,
                        tuple inputs, bint accumulate_grads, set no_grad=None, bint shallow=False):
    """Sweeps from `roots` with the gradients `grads`.

    Without `inputs` the gradients of all leaves are accumulated into `.grad`. With `inputs` only
    nodes on paths to them run; the gradients of those that are leaves are accumulated, or those of
    all are returned as a tuple (None for an input that is not reached). `no_grad` are pairs (node,
    output) whose gradients are taken as zero. `shallow`: nodes below the inputs are not visited,
    as no input is below another.
    """
    cdef dict options
    if watched:
        options = {"retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs,
                   "accumulate_grads": accumulate_grads, "no_grad": no_grad}
        if shallow:                              # in a node: a part of a sweep
            return executed(None, "backward", (roots, grads), options, plain_sweep, shallow)
        return interpreted(None, "backward", (roots, grads), options, plain_sweep, shallow)
    return run_sweep(roots, grads, retain_graph, create_graph, inputs, accumulate_grads, no_grad,
                     shallow)


cdef object plain_sweep(object what, tuple args, dict kwargs):
    return run_sweep(args[0], args[1], kwargs["retain_graph"], kwargs["create_graph"],
                     kwargs["inputs"], kwargs["accumulate_grads"], kwargs["no_grad"], what)


cdef tuple run_sweep(tuple roots, tuple grads, bint retain_graph, bint create_graph, tuple inputs,
                     bint accumulate_grads, set no_grad, bint shallow):
    cdef Sweep sweep
    cdef Mode* current = mode()
    cdef bint grad_before = current.grad
    cdef int flags_before = current.node_flags
    cdef list found = None if inputs is None or accumulate_grads else [None] * len(inputs)
    cdef list targets
    cdef Node node
    cdef Tensor x
    cdef Py_ssize_t k
    if expand is not None:
        expanded(roots, inputs, create_graph)
    targets = None if inputs is None else [gradient_node(x) for x in inputs]
    sweep.since = 0
    sweep.thread = PyThreadState_Get()
    sweep.retain_graph = retain_graph
    sweep.create_graph = create_graph
    sweep.anomalies = flags_before & (TRACED | CHECKED)
    sweep.inputs = <PyObject*>inputs if inputs is not None else NULL
    sweep.no_grad = <PyObject*>no_grad if no_grad else NULL
    reach(&sweep, roots, targets, shallow)
    current.grad = create_graph
    current.node_flags = flags_before & ~TRACKED | (TRACKED if create_graph else 0)
    try:
        for k, x in enumerate(roots):
            node = gradient_node(x)
            node.visit.idle = False
            if no_grad is None or (node, x.slot) not in no_grad:
                deliver(&sweep, node, x.slot, <Tensor>grads[k])
            if node.visit.pending == 0:
                node.visit.pending = -1            # at most once in the heap
                push_ready(&sweep.ready, node)
        drain(&sweep, inputs, found, shallow)
    finally:
        current.grad, current.node_flags = grad_before, flags_before
        drop_spread(&sweep)
        end(&sweep)
    return None if found is None else tuple(found)


cdef int reach(Sweep* sweep, tuple roots, list targets, bint shallow) except -1:
    """Begins a sweep and walks over the nodes below the roots. Threads may share leaves: it waits
    for sweeps of others that reach these."""
    cdef Tensor x
    while True:
        if FREE_THREADED:
            hold_walks()
        try:
            begin(sweep, targets, shallow)
            for x in roots:
                walk(sweep, gradient_node(x))
        except BaseException:
            if FREE_THREADED:
                drop_walks()
            end(sweep)
            raise
        if FREE_THREADED:
            drop_walks()
        if sweep.meets == 0:
            return 0
        end(sweep)
        wait_for(sweep.meets)


def sweep(tuple roots, tuple grads, *, bint retain_graph, bint create_graph, inputs,
          bint accumulate_grads, no_grad):
    """`run_backward` for interpreters, to which a sweep was offered."""
    return run_backward(roots, grads, retain_graph, create_graph, inputs, accumulate_grads, no_grad)


cdef int drain(Sweep* sweep, tuple inputs, list found, bint shallow) except -1:
    """Runs nodes until none is ready."""
    cdef Node node
    cdef Py_ssize_t k, done = 0
    while sweep.ready.n:
        done += 1
        if done + AHEAD < sweep.visited.n:
            fetch_ahead(sweep, done)
        node = pop_ready(&sweep.ready)
        if node.visit.grads == sweep.spread:
            drop_spread(sweep)
        if node.hooks is not None:
            run_tensor_hooks(node)
        if node.visit.asked and found is not None:
            for k, target in enumerate(<list>sweep.targets):
                if target is node:
                    found[k] = grad_at(node, (<Tensor>inputs[k]).slot)
        if not node.visit.passes_on:
            if node.is_leaf and node.visit.asked and found is None:
                reach_leaf(sweep, node)
            drop_grads(node)
            continue
        if node.visit.idle:
            pass_by(sweep, node)
            continue
        run_node(sweep, node)
        if not sweep.retain_graph:
            # an outer sweep may reach nodes of a shallow one too, through saved values
            if not (shallow and node.visit.shared):
                release_saved(node)
        elif node.packs:
            forget_unpacked(node)
    return 0


def current_sweep():
    """The unique number of the innermost sweep of this thread; 0 outside of sweeps."""
    cdef Sweep* sweep = own_sweep()
    return 0 if sweep == NULL else sweep.id


def is_running(int64_t sweep):
    """Whether the sweep of this number is running, on any thread."""
    return active_sweep(sweep) != NULL


def is_reached(Node node):
    """Whether the running sweep visits a node."""
    cdef Sweep* sweep = own_sweep()
    return sweep != NULL and node.visit.sweep == sweep.id and node.visit.cursor >= 0 and (
        node.visit.asked or node.visit.passes_on)
