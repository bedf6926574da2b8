"""A replay as one node of the caller's autograd graph.

The node keeps the tensors that the backward part reads. Its one gradient rule runs that part.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport Edge, Node, gradient_node, recorded_so_far
from tensorlib._core.graph.op cimport Op
from tensorlib._core.interpreters.levels cimport maps_over_batches
from tensorlib._core.sweep.python_nodes cimport (
    custom_node, payload_of, saved_tensors, set_history, view_of_input,
)
from tensorlib._core.sweep.state cimport (
    active_sweep, grad_at, grad_place, move, nodes_below,
)
from tensorlib._core.tensor.tensor cimport Tensor

from tensorlib._core.graph.node import leave_out
from tensorlib._core.sweep.sweep import set_expansion
from tensorlib.autograd.batch import outside_of_all
from tensorlib.program.ir.stacks import flattened, restored

cdef enum:
    NUMBERS = 1 << 20        # of nodes, which those of the operations of a call have between them

cdef Op passing = Op("compiled", "A replayed call, of which only the hooks are left.", ("inputs",),
                     variadic=True, linearity="function")
cdef Op compiled = Op("compiled", "A function that is replayed.", ("inputs",), variadic=True,
                      linearity="function")


@cython.binding(False)            # methods check their `self`
cdef class Links:
    """How the calls of one replay are linked to the graph.

    n_outputs: how many of the values that a run gives are results; the others are kept. roots: the
    places of those results that get a gradient. sources, direct, again: the places among what a run
    is given of what gets a gradient, of what the backward part reads, and of what gradients that
    have gradients are computed of. passed: for each result that is something given, its place
    there, else -1. several: which of the sources are used several times.
    """

    cdef Py_ssize_t n_outputs
    cdef list roots, sources, direct, again, passed, several

    def __init__(self, Py_ssize_t n_outputs, list roots, list sources, list direct, list again,
                 list passed, list several):
        self.n_outputs, self.roots, self.sources = n_outputs, roots, sources
        self.direct, self.again, self.passed, self.several = direct, again, passed, several

    def run(self, replay, tuple given, bint retries):
        """The results of `replay.values_for(given, retries)`, linked to a new node."""
        cdef Node node
        cdef list found, kept, results
        cdef Kept payload
        cdef Py_ssize_t i, place
        cdef bint before = mode().grad
        set_expansion(expand_below)
        mode().grad = False
        try:
            found = replay.values_for(given, retries)
        finally:
            mode().grad = before
        if found is None:
            return None
        payload = Kept.__new__(Kept)
        payload.replay, payload.versions, payload.several = replay, [], self.several
        payload.again = [given[place] for place in self.again]
        for value in payload.again:
            payload.versions.append((<Tensor?>value).storage.version)
        kept = payload.flat(found[self.n_outputs:])
        for place in self.direct:
            kept.append(given[place])
        leave_out(NUMBERS)
        node = custom_node(compiled, tuple([given[place] for place in self.sources]), tuple(kept),
                           len(self.roots), payload)
        for i in range(len(self.roots)):
            place = self.roots[i]
            found[place] = outward(<Tensor?>found[place], given)
            set_history(node, i, <Tensor>found[place])
        results = found[:self.n_outputs]
        for i in range(self.n_outputs):
            if <Py_ssize_t>self.passed[i] >= 0:           # no operation made it
                results[i] = given[<Py_ssize_t>self.passed[i]]
        return results


cdef Tensor outward(Tensor x, tuple given):
    """A result as a view of what is given, where it lies in its memory: into that no one may write
    behind the back of the node."""
    for source in given:
        if isinstance(source, Tensor) and (<Tensor>source).storage is x.storage:
            return view_of_input(x, <Tensor>source)
    return x


@cython.final
@cython.binding(False)            # methods check their `self`
cdef class Kept:
    """What the node of a call keeps beside the tensors that it saves.

    again: what gradients that have gradients are computed of, as given; versions: what each was.
    nesting: how the saved tensors lie in stacks, None where there are no stacks.
    """

    cdef readonly object replay
    cdef readonly list again, versions
    cdef list several
    cdef object nesting

    cdef list flat(self, list values):
        """The tensors in values and in stacks of them."""
        cdef list found = []
        for value in values:
            if not isinstance(value, Tensor):
                self.nesting = [flattened(x, found) for x in values]
                return found
        return values

    cdef list values(self, list tensors):
        """The values of which `flat` gave the first of these tensors; then the others."""
        if self.nesting is None:
            return tensors
        rest = iter(tensors)
        return [*[restored(x, rest) for x in self.nesting], *rest]

    def was_written(self):
        """Whether what was given was written in place since."""
        return [x._version for x in self.again] != self.versions


def gradients(Node node, g):
    """The gradients of the sources of a replayed call."""
    cdef Kept kept = payload_of(node)
    cdef list grads = list(g) if isinstance(g, tuple) else [g]
    cdef list values = kept.values(list(saved_tensors(node)))
    cdef dict before = {}
    if mode().grad:                              # else its operations had taken its place
        raise RuntimeError(f"compile: {why_not_again(kept)}")
    for i in kept.several:
        g = taken(&node.edges[<Py_ssize_t>i])
        if g is not None:
            before[i] = g
    if not maps_over_batches():
        return kept.replay.gradients(grads, values, kept, before)
    with outside_of_all():            # what a node keeps and is given are whole batches
        return kept.replay.gradients(grads, values, kept, before)


cdef str why_not_again(Kept kept):
    """Why a call has no gradient that can be differentiated."""
    if kept.replay.written:
        return (f"{kept.replay.written[0].name} is written in the compiled function, so that its "
                "gradient can't be differentiated; differentiate the function itself")
    if kept.was_written():
        return ("one of the variables needed for gradient computation has been modified by an "
                "inplace operation after the compiled call")
    return ("a sweep that is under way comes by at this call as well, so that its gradient can't "
            "be differentiated in a hook of that sweep")


cdef object taken(Edge* edge):
    """The gradient that arrived where an edge leads to, which is no longer there; or None."""
    cdef PyObject** place
    if edge.target == NULL or (<Node>edge.target).visit.grads == NULL:
        return None
    g = grad_at(<Node>edge.target, edge.slot)
    if g is not None:
        place = grad_place(<Node>edge.target, edge.slot)
        Py_DECREF(g)
        if (<Node>edge.target).n_outputs > 1:
            Py_INCREF(None)
            place[0] = <PyObject*>None
        else:
            place[0] = NULL
    return g


def pass_on(Node node, g):
    """What arrived, for the nodes of the operations."""
    return list(g) if isinstance(g, tuple) else [g]


compiled.add_rule(None, gradients, names=("node", "g"))
passing.add_rule(None, pass_on, names=("node", "g"))


# ---- gradients that have gradients ---------------------------------------------------------------

def number_of(Node node):
    """The number of a node, which grows with time."""
    return node.sequence


def expand_below(list roots):
    """Has nodes of operations take the place of those of replayed calls that lead to roots. So
    gradients of gradients are those of the eager call, in the same order."""
    cdef Node node
    for node in nodes_below(roots, [], 0, False)[0]:
        if node.op is compiled:
            expand(node)


cdef int expand(Node node) except -1:
    cdef Kept kept = payload_of(node)
    cdef int64_t since
    cdef Node inner
    cdef list made, nodes
    if node.released or active_sweep(node.visit.sweep) != NULL or kept.was_written() or (
            kept.replay.written):            # it says so if the sweep does run it
        return 0
    since = recorded_so_far()
    made = kept.replay.with_graph(kept.values(list(saved_tensors(node))), kept)
    nodes = nodes_below([gradient_node(<Tensor?>x) for x in made], [], since, False)[0]
    for i, inner in enumerate(sorted(nodes, key=number_of)):
        inner.sequence = node.sequence - NUMBERS + i
    if node.hooks is not None:
        node.op = passing
    move(node, made)
    node.attributes = None
    return 0

