"""The graph: a Node for each recorded operation.

A node points to the nodes that made its operation's inputs (`edges`) and keeps the values that its
gradient needs (`saved`). Neither is a Python list: a node with two inputs is one allocation.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from tensorlib._core.base.closed cimport close_type, quiet_type
from tensorlib._core.base.locks cimport (
    FREE_THREADED, drop, fetch_add, hold, is_linked, links, revive,
)
from tensorlib._core.graph.modes cimport PACKED, TRACED, mode
from tensorlib._core.tensor.tensor cimport Tensor, requires_grad, track_tensor

from tensorlib._core.graph.anomalies import first_notes

ctypedef int (*visitproc)(PyObject*, void*) noexcept
ctypedef int (*traverseproc)(PyObject*, visitproc, void*) noexcept
ctypedef int (*inquiry)(PyObject*) noexcept
ctypedef void (*destructor)(PyObject*) noexcept

cdef extern from "Python.h":
    void PyObject_GC_Track(object value)
    void PyObject_GC_UnTrack(object value)
    bint PyObject_GC_IsTracked(object value)
    Py_ssize_t Py_REFCNT(PyObject* value)
    ctypedef struct TypeSlots "PyTypeObject":
        traverseproc tp_traverse
        inquiry tp_clear
        destructor tp_dealloc
    void Py_SET_TYPE(object value, TypeSlots* type)
    void untrack "PyObject_GC_UnTrack"(PyObject* value)

cdef extern from *:
    """
    static __thread struct Freeing { int depth; PyObject* waiting; } freeing;
    """
    struct Freeing:
        int depth
        PyObject* waiting      # the first of a linked list
    Freeing freeing            # the nodes that this thread is about to free

cdef enum:
    DEEP = 8                   # nested deallocations, beyond which others are deferred

cdef int64_t next_sequence = 1


cpdef int64_t recorded_so_far() noexcept:
    """The sequence number of the next node; nodes recorded later have larger ones."""
    return next_sequence


def leave_out(int64_t count):
    """Reserves sequence numbers, and returns the first of them."""
    return fetch_add(&next_sequence, count)


@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.freelist(65536)
cdef class Node:
    """One recorded operation: what `grad_fn` of its outputs shows, in a class named after it."""

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_edges):
            if self.edges[i].ndim > EDGE_NDIM:
                free(<void*>self.edges[i].dims[0])
        drop_references(self)
        if self.edges != self.inline_edges:
            free(self.edges)
        if self.saved != self.inline_saved:
            free(self.saved)

    def __repr__(self):
        return f"<{self.op.node_name} object at {<size_t><PyObject*>self:#x}>"

    def __getattr__(self, name):
        """Attributes of the `ctx` of a `Function`, which in PyTorch is the node itself."""
        ctx = self.attributes
        if hasattr(type(ctx), "save_for_backward") and not name.startswith("_"):
            if name == "saved_tensors":
                return ctx.kept_by(self)
            if hasattr(ctx, name):
                return getattr(ctx, name)
        if name == "variable":          # its getter raised, so that Python calls __getattr__
            raise AttributeError(
                f"{self.op.node_name} has no variable; AccumulateGrad nodes have")
        if name.startswith("_saved_") and not self.is_leaf:      # PyTorch's names of these values
            wanted = {"self": self.op.arguments[0], "result": self.op.outputs[0]}
            saved = self._kept_value(wanted.get(name[7:], name[7:]))
            if saved is not None:
                return saved
        raise AttributeError(f"{self.op.node_name} has no attribute {name!r}")


class _Accumulate:
    """The operation of nodes that accumulate into a leaf."""

    node_name = "AccumulateGrad"
    name = "accumulate_grad"


cdef object accumulate = _Accumulate()


# ---- references held in C arrays -----------------------------------------------------------------

cdef void release_saved(Node node) noexcept:
    """Releases the saved values."""
    cdef int i, n = node.n_saved
    node.n_saved = 0
    node.released = node.released or n > 0
    for i in range(n):
        Py_DECREF(<object>node.saved[i].tensor)


cdef void forget_node(PyObject* node) noexcept:
    """Clears the pointer of a leaf to the node that accumulates into it."""
    cdef PyObject* leaf = (<Node>node).saved[0].tensor
    hold(&links)
    if (<Tensor>leaf).accumulator == <void*>node:
        (<Tensor>leaf).accumulator = NULL
    drop(&links)


cdef void drop_references(Node node) noexcept:
    """Releases all references in the C arrays of the node."""
    cdef PyObject* target
    cdef int i
    if node.is_leaf and node.n_saved:
        forget_node(<PyObject*>node)
    for i in range(node.n_edges):
        target = node.edges[i].target
        node.edges[i].target = NULL
        Py_XDECREF(target)
    release_saved(node)


cdef int renew_edges(Node node, int n) except -1:
    """Gives a node `n` empty edges, and releases those that it had."""
    cdef Edge* before = node.edges
    cdef Edge* edges = <Edge*>malloc(max(n, 1) * sizeof(Edge))
    cdef int i, n_before = node.n_edges
    if edges == NULL:
        raise MemoryError()
    for i in range(n):
        edges[i].target, edges[i].slot, edges[i].ndim = NULL, 0, 0
    node.edges, node.n_edges = edges, n
    for i in range(n_before):
        if before[i].ndim > EDGE_NDIM:
            free(<void*>before[i].dims[0])
        Py_XDECREF(before[i].target)
    if before != node.inline_edges:
        free(before)
    release_saved(node)
    node.released = False
    return 0


# The garbage collector tracks a node only once it can be part of a cycle. A recorded operation
# points only to older ones, so a chain of a million nodes costs the collector nothing. A leaf
# whose `.grad` has a graph (create_graph) can point back to it, and so can hooks and what a
# `Function` keeps: these nodes are tracked, and so are nodes built on them.

cdef void track(Node node) noexcept:
    """Has the garbage collector track a node, what it saves, and all nodes built on it later."""
    cdef int i
    node.tracked = True
    hold(&links)
    if not PyObject_GC_IsTracked(node):
        PyObject_GC_Track(node)
    drop(&links)
    for i in range(node.n_saved):
        if not node.packs:
            track_tensor(<Tensor>node.saved[i].tensor)


cdef TypeSlots* type_slots = <TypeSlots*><PyObject*>Node
cdef traverseproc traverse_fields = type_slots.tp_traverse
cdef inquiry clear_fields = type_slots.tp_clear
cdef destructor free_node = type_slots.tp_dealloc


cdef int traverse(PyObject* self, visitproc visit, void* arg) noexcept:
    """Traverses the references in the C arrays, for the garbage collector."""
    cdef Node node = <Node>self
    cdef int i, stop
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            stop = visit(node.edges[i].target, arg)
            if stop:
                return stop
    for i in range(node.n_saved):
        stop = visit(node.saved[i].tensor, arg)
        if stop:
            return stop
    return traverse_fields(self, visit, arg)


cdef int clear(PyObject* self) noexcept:
    drop_references(<Node>self)
    return clear_fields(self)


cdef void dealloc(PyObject* self) noexcept:
    """Frees a node, or defers that if too many deallocations are nested.

    The last reference to a node may be in another node, in a value that it saves, or in what a
    `Function` or a hook keeps. Python has such a mechanism itself (the trashcan), but 3.13 nests
    thousands of deallocations before it defers one, too many for the stack of a thread.
    """
    if FREE_THREADED and (<Node>self).is_leaf and (<Node>self).n_saved:
        forget_node(self)                  # before it gets a temporary reference
    if freeing.depth >= DEEP:
        untrack(self)
        (<Node>self).sequence = <int64_t>freeing.waiting
        freeing.waiting = self
        return
    freeing.depth += 1
    free_node(self)
    if freeing.depth == 1:
        while freeing.waiting != NULL:
            self = freeing.waiting
            freeing.waiting = <PyObject*>(<Node>self).sequence
            free_node(self)
    freeing.depth -= 1


cdef void set_slots(object cls) noexcept:
    cdef TypeSlots* slots = <TypeSlots*><PyObject*>cls
    slots.tp_traverse, slots.tp_clear, slots.tp_dealloc = traverse, clear, dealloc
    close_type(cls)


set_slots(Node)
quiet_type(Node)


# ---- classes of nodes ----------------------------------------------------------------------------
# `type(y.grad_fn).__name__` is the name of the backward operation, as in PyTorch. Recording makes
# plain nodes, and a node gets its class when Python code first sees it.

cdef dict classes = {}             # by name, never freed: nodes hold no reference to them


cpdef Node classed(Node node):
    """The node, in the class of its operation."""
    cdef str name
    if node is None or type(node) is not Node:
        return node
    name = node.op.node_name
    cls = classes.get(name)
    if cls is None:
        cls = type(name, (Node,), {"__slots__": (), "__module__": "builtins",
                                   "__doc__": f"The node of an operation: {name}."})
        set_slots(cls)
        cls = classes.setdefault(name, cls)
    Py_SET_TYPE(node, <TypeSlots*><PyObject*>cls)
    return node


# ---- building the graph --------------------------------------------------------------------------

cdef Node new_node(object op, int n_edges, int n_saved, int n_outputs):
    """A new node, whose edges and saved values are not set yet."""
    cdef Node node = Node.__new__(Node)
    cdef int i
    cdef int flags = mode().node_flags
    node.tracked = flags != 0
    if not flags:
        PyObject_GC_UnTrack(node)
    elif flags & TRACED and op is not accumulate:
        node.notes = first_notes(None if mode().running == NULL else <object>mode().running)
    node.packs = flags & PACKED and op is not accumulate
    node.edges = node.inline_edges
    node.saved = node.inline_saved
    if n_edges > N_INLINE:
        node.edges = <Edge*>malloc(n_edges * sizeof(Edge))
    if n_saved > N_INLINE:
        node.saved = <Saved*>malloc(n_saved * sizeof(Saved))
    if node.edges == NULL or node.saved == NULL:
        raise MemoryError()
    for i in range(n_edges):
        node.edges[i].target = NULL
        node.edges[i].slot = 0
        node.edges[i].ndim = 0
    node.n_edges = n_edges
    node.n_outputs = n_outputs
    node.op = op
    node.is_leaf = op is accumulate
    node.sequence = fetch_add(&next_sequence, 1)
    return node


cdef int set_edge(Node node, int i, Tensor x) except -1:
    """Records dtype and shape of input `i`, and links it to the node that receives its gradient."""
    cdef Edge* edge = &node.edges[i]
    cdef object target
    cdef Py_ssize_t* dims
    cdef int d
    dims = edge.dims
    if x.ndim_ > EDGE_NDIM:
        dims = <Py_ssize_t*>malloc(x.ndim_ * sizeof(Py_ssize_t))
        if dims == NULL:
            raise MemoryError()
        edge.dims[0] = <Py_ssize_t>dims
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    edge.ndim = x.ndim_
    edge.dtype = x.type
    edge.slot = x.slot
    if requires_grad(x):
        target = gradient_node(x)
        Py_INCREF(target)
        edge.target = <PyObject*>target
        node.tracked |= (<Node>target).tracked
    return 0


cdef Node accumulator_of(Tensor leaf):
    """The node that accumulates into `leaf.grad`: one for as long as a graph needs it."""
    cdef Node node
    if FREE_THREADED:
        node = live_accumulator(leaf, None)
        if node is not None:
            return node
    elif leaf.accumulator != NULL and Py_REFCNT(<PyObject*>leaf.accumulator) > 0:    # else dying
        return <Node>leaf.accumulator
    node = new_node(accumulate, 0, 1, 1)
    Py_INCREF(leaf)
    node.saved[0].tensor = <PyObject*>leaf
    node.n_saved = 1
    node.hooks = leaf.hooks
    if node.hooks is not None:
        track(node)
    if FREE_THREADED:
        return live_accumulator(leaf, node)
    leaf.accumulator = <void*>node
    return node


cdef Node live_accumulator(Tensor leaf, Node fresh):
    """The accumulator of a leaf: `fresh`, if it has none that is alive."""
    cdef PyObject* found = NULL
    cdef Node node = fresh
    if fresh is not None:
        is_linked(<PyObject*>fresh)
    hold(&links)
    if leaf.accumulator != NULL and revive(<PyObject*>leaf.accumulator):
        found = <PyObject*>leaf.accumulator
    elif fresh is not None:
        leaf.accumulator = <void*>fresh
    drop(&links)
    if found != NULL:
        node = <Node>found
        Py_DECREF(node)                    # the reference from taking it
    return node


cpdef Node gradient_node(Tensor x):
    """The node that receives the gradient of `x`, or None if it requires none."""
    if x.grad_node is not None:
        return <Node>x.grad_node
    return accumulator_of(x) if x.wants_grad else None
