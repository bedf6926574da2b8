"""A replay as one node of the caller's autograd graph.

The node keeps the tensors that the backward part reads. Its one gradient rule runs that part.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from tensorlib._core.base.storage cimport UNTRACKED
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport Edge, Node, gradient_node, recorded_so_far, release_saved
from tensorlib._core.graph.op cimport Op
from tensorlib._core.graph.saved cimport modified, released, saved_at
from tensorlib._core.interpreters.levels cimport maps_over_batches
from tensorlib._core.sweep.python_nodes cimport (
    custom_node, payload_of, saved_tensors, set_history, view_of_input,
)
from tensorlib._core.sweep.state cimport (
    active_sweep, grad_at, grad_place, grads_of, move, nodes_below,
)
from tensorlib._core.tensor.tensor cimport Tensor, alias
from tensorlib.program.run.arena cimport do_meet

from tensorlib._core.graph.node import leave_out
from tensorlib._core.sweep.python_nodes import is_retained, linked_alias, wanted_inputs
from tensorlib._core.sweep.state import set_ways
from tensorlib._core.sweep.sweep import set_expansion
from tensorlib.autograd.batch import outside_of_all
from tensorlib.autograd.gradients import grad
from tensorlib.ops.calls import ARGUMENT
from tensorlib.program.compiled.rebuilt import keep_the_same, let_go, number_of
from tensorlib.program.ir.stacks import count, flattened, restored
from tensorlib.program.run.dispatch import set_versions

cdef enum:
    NUMBERS = 1 << 20        # sequence numbers that stay free for the nodes of a call's operations
    APART = 64               # of these, the distance of two nodes, so that leaves fit between them
    SURE = 8                 # repeated calls from which on replays may count as no gain (`outdone`)

cdef Op passing = Op("compiled", "A replayed call, of which only the hooks are left.", ("inputs",),
                     variadic=True, linearity="function")
cdef Op compiled = Op("compiled", "A function that is replayed.", ("inputs",), variadic=True,
                      linearity="function")


@cython.binding(False)            # methods check their `self`
cdef class Links:
    """How the results of a replay are linked to the graph. Values are named by their indices.

    A run has inputs, and returns n_outputs results, then the values to keep for the backward part,
    and last n_made values that become leaves. roots: the results that have a gradient. sources:
    the inputs, or leaves (numbered after the inputs), that get a gradient; own: which of these are
    leaves. direct: the inputs that the backward part reads. again: the inputs that a differentiable
    backward part is computed from. passed: for each result that is an input its index, else -1.
    several: the sources that are used several times. ages: for each source that is a leaf how many
    operations come before its first use, else -1; [] where that does not matter. outdone: most
    calls had to be repeated, or a backward part has no machine, so that eager calls cost less.
    """

    cdef Py_ssize_t n_outputs, n_made, runs, done_again
    cdef list roots, sources, own, direct, again, passed, several, ages
    cdef public bint outdone

    def __init__(self, Py_ssize_t n_outputs, Py_ssize_t n_made, list roots, list sources, list own,
                 list direct, list again, list passed, list several, list ages):
        self.n_outputs, self.n_made, self.roots, self.sources = n_outputs, n_made, roots, sources
        self.own = own if any(own) else []
        self.ages = ages if len(ages) < APART and all([n < NUMBERS // APART for n in ages]) else []
        self.direct, self.again, self.passed, self.several = direct, again, passed, several
        set_expansion(expand_below, expand_result, unfold, compiled, passing)
        set_ways(ways_of, compiled, passing)

    def run(self, replay, tuple given, bint retries):
        """The results of `replay.values_for(given, retries)`, linked to a new node; None if the
        caller has to make an eager call."""
        cdef Node node, target
        cdef int64_t since
        cdef list found, kept
        cdef dict sharing = {}
        cdef Kept payload
        cdef Py_ssize_t i, place
        cdef bint before = mode().grad
        if self.outdone and retries:
            return None
        self.runs += 1
        for place in self.direct:                   # the eager call refuses it by its name
            if (<Tensor?>given[place]).storage.version == UNTRACKED:
                return None
        mode().grad = False
        try:
            found = replay.values_for(given, retries)
        finally:
            mode().grad = before
        if found is None:
            return None
        set_versions(replay.versions, found)        # before the node saves them
        payload = Kept.__new__(Kept)
        payload.replay, payload.links, payload.n_direct = replay, self, len(self.direct)
        payload.several, payload.over = self.several, replay.gone
        payload.again = [given[place] for place in self.again]
        payload.versions = [(<Tensor?>value).storage.version for value in payload.again]
        payload.required = [(<Tensor>value).wants_grad for value in payload.again]
        kept = payload.flat(found[self.n_outputs:len(found) - self.n_made])
        for place in self.direct:
            kept.append(given[place])
        since = leave_out(NUMBERS)
        node = custom_node(compiled, tuple(self.leaves(given, found) if self.own else
                                           [given[place] for place in self.sources]),
                           tuple(kept), len(self.roots), payload)
        for i in range(len(self.ages)):              # a leaf whose node was made for this call
            target = <Node>node.edges[i].target
            if <Py_ssize_t>self.ages[i] >= 0 and target.sequence >= since:
                target.sequence = node.sequence - NUMBERS + <Py_ssize_t>self.ages[i] * APART + i
        for i in range(len(self.roots)):
            place = self.roots[i]
            found[place] = outward(<Tensor?>found[place], given, sharing)
            set_history(node, i, <Tensor>found[place])
        return [x if place < 0 else given[place]              # an input
                for x, place in zip(found, self.passed)]

    cdef list leaves(self, tuple given, list found):
        """The sources, of which some are new leaves."""
        cdef list each = [*given, *found[len(found) - self.n_made:]], sources = []
        for place, is_own in zip(self.sources, self.own):
            x = each[place]
            if is_own:
                x = alias(<Tensor?>x)
                (<Tensor>x).wants_grad = True
            sources.append(x)
        return sources


cdef Tensor outward(Tensor x, tuple given, dict results):
    """A result, as a view if it shares memory with an input or with one of the `results` before it,
    so that writes to it are noticed. These are kept by their memory."""
    for source in given:
        if isinstance(source, Tensor) and (<Tensor>source).storage is x.storage:
            return view_of_input(x, <Tensor>source)
    before = <list>results.setdefault(id(x.storage), [])
    for source in before:
        if do_meet(x, <Tensor>source):
            x = view_of_input(x, <Tensor>source)
            break
    before.append(x)
    return x


@cython.final
@cython.binding(False)            # methods check their `self`
cdef class Kept:
    """What the node of a call keeps besides the tensors that it saves.

    again, versions, required: the inputs of a differentiable backward part, their versions, and
    whether each required a gradient. n_direct: how many of the saved tensors, the last ones, are
    inputs. over: a bit for each node of the eager graph that would have released its values. After
    a sweep that computed only some gradients, ran: the calls whose gradients were computed; left:
    the saved tensors, each with its version, that the other calls need, or None; in an eager graph
    their nodes would not have run, or not released their values. nesting: the structure of saved
    tensors in stacks, or None.
    """

    cdef readonly object replay
    cdef Links links
    cdef readonly list again, versions
    cdef list several, required
    cdef Py_ssize_t n_direct
    cdef object nesting
    cdef list left
    cdef frozenset ran
    cdef object over

    cdef list flat(self, list values):
        """The tensors in values, some of which are stacks; notes their nesting."""
        cdef list found = []
        for value in values:
            if not isinstance(value, Tensor):
                self.nesting = [flattened(x, found) for x in values]
                return found
        return values

    cdef list values(self, list tensors):
        """The values that `flat` turned into the first of these tensors; then the other tensors."""
        if self.nesting is None:
            return tensors
        rest = iter(tensors)
        return [*[restored(x, rest) for x in self.nesting], *rest]

    cdef list sizes(self):
        """The number of tensors in each value, if some are stacks; else []."""
        return [] if self.nesting is None else [count(x) for x in self.nesting]

    cdef int leave(self, Node node, frozenset ran) except -1:
        """Notes the calls whose gradients are computed now, and what the others need."""
        cdef Py_ssize_t i
        if node.released and is_retained(node):
            return 0
        self.ran = self.ran | ran if node.released else ran
        needed = self.replay.needed_after(self.ran, self.sizes())
        if node.released:
            self.left = [x if is_needed else None for x, is_needed in zip(self.left, needed)]
        else:
            self.left = [(<Tensor>node.saved[i].tensor, node.saved[i].version) if is_needed
                         else None for i, is_needed in enumerate(needed)]
        return 0

    cdef list places_before(self, Node node):
        """The sources used several times for which gradients of other nodes have arrived."""
        cdef list found = []
        cdef Edge* edge
        for i in self.several:
            edge = &node.edges[<Py_ssize_t>i]
            if edge.target != NULL and (<Node>edge.target).visit.grads != NULL and (
                    grad_at(<Node>edge.target, edge.slot) is not None):
                found.append(i)
        return found

    cdef tuple entry(self, Node node, Py_ssize_t i):
        """A kept tensor and the version that was saved; None if it was released."""
        if node.released:
            return None if self.left is None else self.left[i]
        return <Tensor>node.saved[i].tensor, node.saved[i].version

    cdef list tensors(self, Node node):
        """The kept tensors."""
        cdef Py_ssize_t i
        if node.released:
            return [None if x is None else x[0] for x in self.left]
        return [<Tensor>node.saved[i].tensor for i in range(node.n_saved)]

    cdef list as_given(self, Node node):
        """The inputs of a differentiable backward part, with the places in the graph that they had
        in the call: a tensor that was written since has another one."""
        cdef list found = []
        cdef Tensor x, other
        cdef Edge* edge
        cdef Py_ssize_t i
        for i, x in enumerate(self.again):
            if x.storage.version != <int64_t>self.versions[i] and x.grad_node is not None:
                other = alias(x)
                place = self.replay.places_again[i]
                if place >= 0 and node.edges[<Py_ssize_t>place].target != NULL:
                    edge = &node.edges[<Py_ssize_t>place]
                    other.slot, other.grad_node = edge.slot, <object>edge.target
                x = other
            found.append(x)
        return found


def gradients(Node node, g):
    """The gradients of the sources of a replayed call."""
    cdef Kept kept = payload_of(node)
    cdef list grads = list(g) if isinstance(g, tuple) else [g]
    cdef list tensors, values
    cdef dict before = {}
    cdef tuple wanted = wanted_inputs(node)
    cdef bint in_part = False in wanted or any([x is None for x in grads])
    error = refusal(node, kept, grads, kept.places_before(node), wanted)
    if error is not None:
        raise error
    if node.packs:
        try:
            tensors = list(saved_tensors(node))
        except RuntimeError as changed:
            raise kept.replay.named(changed, kept.sizes()) from None
    else:
        tensors = kept.tensors(node)
    for i in kept.several:
        g = taken(&node.edges[<Py_ssize_t>i])
        if g is not None:
            before[i] = g
    if node.released or not node.packs and (in_part or kept.replay.positions):
        kept.leave(node, kept.replay.reached(grads, before, wanted))
    else:
        kept.left = None
    if not is_retained(node):
        kept.over = kept.over | (
            kept.replay.asked(grads, wanted) if in_part else kept.replay.on_any_way)
    values = kept.values(tensors)
    if mode().grad:                              # the node could not be expanded (`expand_below`)
        return differentiated(node, kept, grads, before)
    if not maps_over_batches():
        return kept.replay.gradients(grads, values, kept, before, wanted)
    with outside_of_all():            # the node's values are whole batches
        return kept.replay.gradients(grads, values, kept, before, wanted)


cdef object refusal(Node node, Kept kept, list grads, before, tuple wanted):
    """The error if the wanted gradients can't be computed from those that arrived, as in an eager
    sweep; or None."""
    cdef Tensor x
    cdef Py_ssize_t i
    if kept.over:
        over = kept.over & kept.replay.asked(grads, wanted)
        if over:
            return RuntimeError(released(kept.replay.savers[over.bit_length() - 1]))
    if node.released and kept.left is None:
        return RuntimeError(released(node.name()))
    if node.packs or not node.released and is_unchanged(node):
        return None
    for i, is_needed in enumerate(kept.replay.needed(grads, before, wanted, kept.sizes())):
        if is_needed:                            # others may have been overwritten
            entry = kept.entry(node, i)
            if entry is None:
                return RuntimeError(released(node.name()))
            x, version = entry
            if x.storage.version != <int64_t>version:
                return kept.replay.named(RuntimeError(modified(
                    f"saved tensor {i} of compiled", x, version)), kept.sizes())
    return None


cdef bint is_unchanged(Node node) noexcept:
    """Whether no value that a node saved was overwritten."""
    cdef int i
    for i in range(node.n_saved):
        if (<Tensor>node.saved[i].tensor).storage.version != node.saved[i].version:
            return False
    return True


def ways_of(Node node):
    """For each root of a call, and each of its sources, whether the graph leads from the one to the
    other."""
    if node.op is passing:
        return [[i == place for i in range(node.n_edges)] for place in range(node.n_outputs)]
    return (<Kept>payload_of(node)).replay.leads


cdef str why_not_again(dict before):
    """Why a call has no differentiable gradient."""
    if before:
        return ("a sweep that is under way comes by at this call as well, and adds to what it uses "
                "several times, so that its gradient can't be differentiated in a hook of that "
                "sweep")
    return ("one of the variables needed for the gradient of a gradient has been modified by an "
            "inplace operation, in the compiled function or after it")


cdef object taken(Edge* edge):
    """The gradient that had arrived at the end of an edge, taken away from there; or None."""
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
    """The gradients that arrived, passed on to the nodes of the operations."""
    return list(g) if isinstance(g, tuple) else [g]


compiled.add_rule(None, gradients, names=("node", "g"))
passing.add_rule(None, pass_on, names=("node", "g"))


# ---- gradients that have gradients ---------------------------------------------------------------

def expand_below(list roots):
    """Replaces the nodes of replayed calls below the roots by those of their operations, so that
    gradients of gradients are computed as in an eager graph, and in the same order."""
    cdef Node node
    for node in nodes_below(roots, [], 0, False)[0]:
        if node.op is compiled:
            expand(node)


def expand_result(Tensor x, bint hooked):
    """Replaces the node of the replayed call that returned `x` by those of its operations, if some
    results of the call depend on others. Then hooks would run in another order than in an eager
    graph. Raises: RuntimeError where others depend on `x` itself, and a value needed is gone."""
    cdef Node node = gradient_node(x)
    if node.op is not compiled:
        return
    cdef Kept kept = payload_of(node)
    if not kept.replay.is_passed[x.slot]:
        if hooked or any(kept.replay.is_passed):       # another result may get a hook later
            expand(node)
        return
    if not node.hooks:
        expand(node)
    if node.op is compiled:
        raise RuntimeError(f"compile: {why_not_again({})}")


cdef list run_again(Node node, Kept kept, list grads=None):
    """Repeats a call with the graph of its operations, whose nodes save what they saved then.

    Returns the roots and the nodes; with `grads`, which arrived at the roots, the gradients of the
    sources. None where a value that the graph needs is gone."""
    cdef Tensor x
    cdef Py_ssize_t i
    cdef list each = kept.replay.kept_by_node(kept.sizes()), values = [], same = [], nodes
    cdef set gone = set()
    cdef int64_t since = recorded_so_far()
    for i in range(len(each) - kept.n_direct):
        entry = (saved_at(node, i, -1), 0) if node.packs else kept.entry(node, i)
        if entry is not None and not node.packs:
            same.append((each[i], entry))
            if (<Tensor>entry[0]).storage.version != <int64_t>entry[1]:
                entry = None
        if entry is None:
            gone.add(each[i])
        values.append(None if entry is None else entry[0])
    if kept.nesting is not None and any([value is None for value in values]):
        return None
    cdef list given = kept.as_given(node), others = []
    try:
        for i, x in enumerate(given):            # leaves require a gradient as they did then
            if x.grad_node is None and x.wants_grad != <bint>kept.required[i]:
                x.wants_grad = not x.wants_grad
                others.append(x)
        if grads is not None:                    # so that the sweep ends at the inputs
            given = [linked_alias(ARGUMENT, x) if x.requires_grad else x for x in given]
        found = kept.replay.with_graph(kept.values(values), kept, given, gone)
        if found is None:
            return None
        made = [found[root] for root in kept.replay.roots]
        nodes = sorted(nodes_below([gradient_node(x) for x in made], [], since, False)[0],
                       key=number_of)
        if kept.nesting is None:
            keep_the_same(nodes, [(found[y], *entry) for y, entry in same if y in found])
        if kept.over and not let_go(nodes, kept.replay.savers, kept.over):
            if not kept.replay.all_gone:
                return None
            for each_node in nodes:
                release_saved(each_node)
        if grads is None:
            return [made, nodes]
        pairs = [(y, g) for y, g in zip(made, grads) if g is not None]
        return list(grad([y for y, _ in pairs], [given[i] for i in kept.replay.places_of_sources],
                         [g for _, g in pairs], create_graph=True, allow_unused=True,
                         retain_graph=is_retained(node)))
    finally:
        for x in others:
            x.wants_grad = not x.wants_grad


cdef list differentiated(Node node, Kept kept, list grads, dict before):
    """The differentiable gradients of the sources, in a sweep that has arrived at the node itself,
    so that it can't be replaced."""
    cdef list found = None
    if not before and -1 not in kept.replay.places_of_sources:
        found = run_again(node, kept, grads)
    if found is None:
        raise RuntimeError(f"compile: {why_not_again(before)}")
    return found


cdef bint expand(Node node) except -1:
    """Replaces the node of a replayed call by those of its operations, if that is possible."""
    return active_sweep(node.visit.sweep) == NULL and take_place(node)


def unfold(Node node):
    """The same in a sweep, for a node with a value that was overwritten or released: where an eager
    sweep would raise, it first runs the nodes before. Returns what the node led to where gradients
    are wanted; None if it stays."""
    cdef Kept kept = payload_of(node)
    cdef tuple wanted
    if node.visit.shared or node.packs or maps_over_batches() or (
            not node.released and not kept.over and is_unchanged(node)):
        return None
    wanted = wanted_inputs(node)
    left = [<object>node.edges[i].target for i in range(node.n_edges) if wanted[i]]
    if refusal(node, kept, list(grads_of(node)), kept.places_before(node), wanted) is None or (
            not take_place(node)):
        return None
    node.op = passing                            # for the rest of this sweep
    return left


cdef bint take_place(Node node) except -1:
    cdef Kept kept = payload_of(node)
    cdef Node inner
    cdef list made, nodes, found
    found = run_again(node, kept)
    if found is None:
        return False
    made, nodes = found
    kept.links.done_again += 1
    kept.links.outdone |= (kept.links.done_again >= SURE
                           and 2 * kept.links.done_again > kept.links.runs)
    for i, inner in enumerate(nodes):
        inner.sequence = node.sequence - NUMBERS + ((i + 1) * APART - 1 if kept.links.ages else i)
    if node.hooks is not None:
        node.op = passing
    move(node, made)
    node.attributes = None
    return True
