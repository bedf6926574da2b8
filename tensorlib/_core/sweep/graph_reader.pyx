"""Reading a recorded graph: the nodes between inputs and outputs, and what each has saved.

Forward mode and the functional transforms read the graph with these functions.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tensorlib._core.base.storage cimport next_epoch
from tensorlib._core.graph.modes cimport Mode, mode
from tensorlib._core.graph.node cimport OUTPUT, Edge, Node, classed, edge_dims, gradient_node
from tensorlib._core.graph.op cimport NODE, Op, PASS, Rule, ZERO
from tensorlib._core.graph.saved cimport as_counted, keeps_for_gradients, saved_facts
from tensorlib._core.sweep.rules cimport facts_of, value_of
from tensorlib._core.sweep.state cimport nodes_below
from tensorlib._core.tensor.tensor cimport Tensor


cdef enum:
    MANY = 1 << 13           # nodes, among which no places are told


# ---- where a transform runs its function ---------------------------------------------------------

def wanted_by_transform(bint forward, bint guarded=True):
    """The argument of `set_transform` for a transform that begins.

    forward: nodes keep what forward mode needs. guarded: tensors from before may not be written in
    place.
    """
    cdef Mode* now = mode()
    return True, now.forward_mode or forward, next_epoch() if guarded else now.epoch


def set_transform(tuple wanted):
    """Sets whether this thread records, forward mode and the epoch; returns the values before."""
    cdef Mode* now = mode()
    cdef tuple before = (now.grad, now.forward_mode, now.epoch)
    now.grad, now.forward_mode, now.epoch = wanted
    return before


def begin_epoch():
    """Begins an epoch, and returns its number."""
    return next_epoch()


def was_made_since(Tensor x, int64_t epoch):
    """Whether the memory of a tensor was made in this epoch or later."""
    return x.storage.born >= epoch


def was_recorded_since(Tensor x, int64_t number):
    """Whether a tensor's node has at least this sequence number."""
    return x.grad_node is not None and gradient_node(x).sequence >= number


def gradient_place(Tensor x):
    """The node that receives the gradient of `x`, and which of its outputs `x` is."""
    return classed(gradient_node(x)), x.slot


# ---- walks ---------------------------------------------------------------------------------------

def leads_outside(list roots, list inputs, int64_t since):
    """Whether nodes `roots` depend on a node from before `since` or a leaf.

    The nodes `inputs` do not count, and nodes behind them are not visited.
    """
    return nodes_below(roots, inputs, since, True)[1]


def nodes_between(list inputs, list roots, int64_t since):
    """The nodes, oldest first, on paths from nodes `roots` to nodes `inputs`.

    The inputs are excluded, and so are nodes from before `since`.
    """
    return sorted(nodes_below(roots, inputs, since, True)[0], key=age)


def are_as_saved(list roots, int64_t since, set changed):
    """Whether the saved values of the nodes below `roots`, from `since` on, are unchanged.

    changed: addresses of memory that was written without a change of its version.
    """
    cdef Node node
    cdef Tensor x
    cdef int i
    for node in nodes_below(roots, [], since, False)[0]:
        for i in range(0 if node.packs or node.released else node.n_saved):
            x = <Tensor>node.saved[i].tensor
            if x.storage.version != node.saved[i].version or <size_t>x.storage.data in changed:
                return False
    return True


def ids_of_held(list tensors, list roots, int64_t since):
    """The ids of the tensors that the nodes below `roots` hold, with repetitions; and of the bases
    of views among these and among `tensors`, once for each view."""
    cdef list found = []
    cdef dict bases = {}
    cdef PyObject* saved
    cdef Tensor x
    cdef Node node
    cdef int i
    for value in tensors:
        x = <Tensor?>value
        if x.base_ is not None:
            bases[id(x)] = id(x.base_)
    for node in nodes_below(roots, [], since, False)[0]:
        for i in range(0 if node.is_leaf or node.packs or node.released else node.n_saved):
            saved = node.saved[i].tensor
            found.append(<size_t>saved)
            if saved != NULL and isinstance(<object>saved, Tensor):
                x = <Tensor>saved
                if x.base_ is not None:
                    bases[id(x)] = id(x.base_)
    found.extend(bases.values())
    return found


def savers_above(list roots, int64_t since, list ends=[]):
    """Which nodes that need their saved values are on paths from the tensors `roots` to each end of
    their graph, a node from before `since`, one of `ends`, or a leaf.

    Returns the names of these nodes, oldest first, and a bit mask of those whose saved values were
    released; then for each root a dict from the ends to a bit mask of the nodes on the paths; then
    the leaves, as tensors.
    """
    cdef dict bits = {}, found, leaves = {}
    cdef list names = [], tables = []
    cdef Node node
    cdef object bit = 1, gone = 0        # ints: there may be many nodes
    cdef int i
    for node in sorted(nodes_below([gradient_node(x) for x in roots], ends, since, False)[0],
                       key=age):
        if keeps_for_gradients(node):
            bits[node] = bit
            bit = bit << 1
            gone |= bits[node] if node.released else 0
            names.append(node.name())
    for root in roots:
        found = {}
        for node in sorted(nodes_below([gradient_node(root)], ends, since, False)[0], key=age,
                           reverse=True):
            on_way = found.pop(node, 0) | bits.get(node, 0)
            for i in range(node.n_edges):
                if node.edges[i].target != NULL:
                    target = <Node>node.edges[i].target
                    inside = (<Node>target).sequence >= since and not (
                        <Node>target).is_leaf and target not in ends
                    place = target if inside else (target, node.edges[i].slot)
                    found[place] = found.get(place, 0) | on_way
                    if (<Node>target).is_leaf:
                        leaves[target] = <Tensor>(<Node>target).saved[0].tensor
        tables.append(found)
    return names, gone, tables, [*leaves.values()]


def ages_of_leaves(list roots, int64_t since, list ends=[]):
    """For each leaf that was first used since `since`, how many nodes below the tensors `roots`,
    from `since` on and above the nodes `ends`, are older than it; {} if the next node uses each
    leaf, or there are too many nodes.
    """
    cdef list nodes = sorted(nodes_below([gradient_node(x) for x in roots], ends, since, False)[0],
                             key=age)
    cdef dict found = {}, first = {}
    cdef Node node
    cdef int i
    for k, node in enumerate(nodes):
        for i in range(node.n_edges):
            if node.edges[i].target != NULL and (<Node>node.edges[i].target).is_leaf:
                first.setdefault(<object>node.edges[i].target, k)
    for node in first:
        if node.sequence >= since:
            found[node] = sum([age(other) < node.sequence for other in nodes])
    if len(nodes) >= MANY or all([first[leaf] == n for leaf, n in found.items()]):
        return {}
    return found


def are_released(list roots, int64_t since):
    """Whether no node below `roots`, from `since` on, has saved values."""
    cdef Node node
    for node in nodes_below(roots, [], since, False)[0]:
        if node.n_saved:
            return False
    return True


def age(Node node):
    """The sequence number of a node, which grows with time."""
    return node.sequence


# ---- what is known of one run of an operation ----------------------------------------------------
# The source of a rule, see rules.pyx: a node, or an object that represents a call.

def operation(Node node):
    """The operation that a node recorded."""
    return node.op


def attributes(source):
    """The attributes of the call; of a node, those that it keeps, which are none where it is not of
    an operation of the library."""
    if not isinstance(source, Node):
        return source.attributes
    kept = (<Node>source).attributes
    return {name: as_counted(<Node>source, name, x, False)
            for name, x in kept.items()} if type(kept) is dict else {}


def kept_input(source, int i):
    """Input `i` as it was, linked to the graph. Raises RuntimeError if overwritten since."""
    return value_of(source, i, True)


def input_facts(source, int i):
    """Shape and dtype of input `i`."""
    return facts_of(source, i)


def output_facts(source, int k):
    """Shape and dtype of output `k`, which may have been overwritten."""
    if isinstance(source, Node):
        return saved_facts(<Node>source, OUTPUT + k)
    return source.output(k).shape, source.output(k).dtype


def count_outputs(Node node):
    """The number of outputs of the operation."""
    return node.n_outputs


def widest(list nodes):
    """The largest number of elements of an input of the nodes that receives a gradient."""
    cdef Py_ssize_t most = 0, n
    cdef Edge* edge
    cdef Node node
    cdef int i, d
    for node in nodes:
        for i in range(node.n_edges):
            edge = &node.edges[i]
            n = edge.target != NULL
            for d in range(edge.ndim):
                n *= edge_dims(edge)[d]
            most = max(most, n)
    return most


def takes_batches(Node node):
    """Whether the node's rules can run on a batch of gradients at once.

    Rules from outside are arbitrary, and those of nodes like `Function`'s expect Tensors. Hooks
    must see each gradient.
    """
    cdef Rule rule
    cdef int i
    if node.hooks:
        return False
    if node.is_leaf:
        return True
    for rule in (<Op>node.op).rules:
        if rule is None or rule.kind == PASS or rule.kind == ZERO:
            continue
        if not rule.function.__module__.startswith("tensorlib."):
            return False
        for i in range(rule.n_wants):
            if rule.wants[i] == NODE:
                return False
    return True
