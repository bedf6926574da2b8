"""The graph: a Node for each recorded operation, and the grad mode of each thread.

A node points to the nodes that made its operation's inputs (`edges`) and keeps the values that its
gradient needs (`saved`). Neither is a Python list: a node with two inputs is one allocation.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc

from tensorlib._core.tensor cimport Tensor, alias, requires_grad

ctypedef int (*visitproc)(PyObject*, void*) noexcept
ctypedef int (*traverseproc)(PyObject*, visitproc, void*) noexcept
ctypedef int (*inquiry)(PyObject*) noexcept

cdef extern from "Python.h":
    void PyObject_GC_Track(object value)
    void PyObject_GC_UnTrack(object value)
    bint PyObject_GC_IsTracked(object value)
    ctypedef struct TypeSlots "PyTypeObject":
        traverseproc tp_traverse
        inquiry tp_clear

cdef extern from * nogil:
    """
    static __thread struct { int grad, watched; } thread_mode = {1, 0};
    static void* thread_mode_address(void) { return &thread_mode; }
    """
    void* thread_mode_address()
    int __builtin_popcount(unsigned int bits)


cdef Mode* mode() noexcept nogil:
    return <Mode*>thread_mode_address()


def is_grad_enabled():
    """Whether operations on this thread are recorded for differentiation."""
    return mode().grad


def _set_grad_enabled(bint enabled):
    """Sets the grad mode of this thread and returns the one before."""
    cdef bint before = mode().grad
    mode().grad = enabled
    return before


cdef int64_t next_sequence = 0


def recorded_so_far():
    """How many nodes were made: the sequence number of the next one."""
    return next_sequence


@cython.final
@cython.freelist(1024)
cdef class Node:
    """One recorded operation: what `grad_fn` of its outputs shows."""

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_edges):
            if self.edges[i].ndim > EDGE_NDIM:
                free(<void*>self.edges[i].dims[0])
        bury(self)
        if self.edges != self.inline_edges:
            free(self.edges)
        if self.saved != self.inline_saved:
            free(self.saved)

    def name(self):
        """The name of the backward operation, such as `TanhBackward`."""
        return self.op.node_name

    @property
    def next_functions(self):
        """For each input: the node that its gradient goes to (or None) and which of its outputs."""
        cdef int i
        return tuple([
            (<object>self.edges[i].target if self.edges[i].target != NULL else None,
             self.edges[i].slot)
            for i in range(self.n_edges)])

    @property
    def variable(self):
        """The leaf that an AccumulateGrad node accumulates into."""
        if self.op is not accumulate:
            raise AttributeError(f"{self.name()} has no variable; AccumulateGrad nodes have")
        return <object>self.saved[0].tensor

    @property
    def metadata(self):
        """A dict for notes of the user's."""
        if self.notes is None:
            self.notes = {}
        return self.notes

    @property
    def saved_bytes(self):
        """Bytes of the tensors that this node keeps for its gradient."""
        cdef int i
        return 0 if self.op is accumulate else sum(
            [(<Tensor>self.saved[i].tensor).nbytes for i in range(self.n_saved)])

    def __repr__(self):
        return f"<{self.name()} object at {<size_t><PyObject*>self:#x}>"


class _Accumulate:
    """Stands where an operation stands in other nodes."""

    node_name = "AccumulateGrad"
    name = "accumulate_grad"


_accumulate_op = _Accumulate()
cdef object accumulate = _accumulate_op


# ---- reference counts held in C arrays -----------------------------------------------------------
# Freed without recursion: what a dying node holds is put on one list, which the outermost dying
# node empties. So a chain of ten million nodes is freed in constant stack.

cdef PyObject** buried = NULL
cdef Py_ssize_t n_buried = 0, room_buried = 0
cdef bint burying = False


cdef void bury_one(PyObject* value) noexcept:
    global buried, n_buried, room_buried
    if n_buried == room_buried:
        room_buried = 2 * room_buried if room_buried else 64
        buried = <PyObject**>realloc(buried, room_buried * sizeof(PyObject*))
    buried[n_buried] = value
    n_buried += 1


cdef void bury(Node node) noexcept:
    """Gives up every reference that the node holds in its C arrays."""
    global n_buried, burying
    cdef int i
    if node.op is accumulate and node.n_saved:
        (<Tensor>node.saved[0].tensor).accumulator = NULL
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            bury_one(node.edges[i].target)
            node.edges[i].target = NULL
    for i in range(node.n_saved):
        bury_one(node.saved[i].tensor)
    node.n_saved = 0
    if burying:
        return
    burying = True
    while n_buried:
        n_buried -= 1
        Py_DECREF(<object>buried[n_buried])
    burying = False


cdef TypeSlots* type_slots = <TypeSlots*><PyObject*>Node
# The garbage collector looks after a node only once it can be part of a cycle. A recorded operation
# points to older ones alone, so that a chain of a million nodes costs the collector nothing. A leaf
# whose `.grad` has a graph (create_graph) can point back to it, and so can hooks.

cdef void watch(Node node) noexcept:
    """Shows a node to the garbage collector."""
    if not PyObject_GC_IsTracked(node):
        PyObject_GC_Track(node)


cdef traverseproc traverse_fields = type_slots.tp_traverse
cdef inquiry clear_fields = type_slots.tp_clear


cdef int traverse(PyObject* self, visitproc visit, void* arg) noexcept:
    """Shows the garbage collector the references in the C arrays."""
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
    bury(<Node>self)
    return clear_fields(self)


type_slots.tp_traverse = traverse
type_slots.tp_clear = clear


# ---- building the graph --------------------------------------------------------------------------

cdef Node new_node(object op, int n_edges, int n_saved, int n_outputs):
    """A node whose edges and saved values are still to be set."""
    global next_sequence
    cdef Node node = Node.__new__(Node)
    cdef int i
    if not mode().watched:
        PyObject_GC_UnTrack(node)
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
    node.sequence = next_sequence
    next_sequence += 1
    return node


cdef int set_edge(Node node, int i, Tensor x) except -1:
    """Notes the dtype and shape of input `i`, and links it to the node that takes its gradient."""
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
        target = gradient_edge(x)
        Py_INCREF(target)
        edge.target = <PyObject*>target
    return 0


cdef void keep(Node node, int bit, Tensor x) noexcept:
    """Saves a value. Bits must come in ascending order."""
    cdef Saved* saved = &node.saved[node.n_saved]
    Py_INCREF(x)
    saved.tensor = <PyObject*>x
    saved.version = x.storage.version
    node.n_saved += 1
    node.kept |= <unsigned int>1 << bit


cdef void release_saved(Node node) noexcept:
    cdef int i, n = node.n_saved
    node.n_saved = 0
    if n:
        node.released = True
    for i in range(n):
        Py_DECREF(<object>node.saved[i].tensor)


cdef int check_not_released(Node node) except -1:
    if node.released:
        raise RuntimeError(
            f"backward: the values that {node.name()} saved were released by the first backward "
            "through it. To go through the graph a second time, call the first backward with "
            "retain_graph=True")
    return 0


cdef Tensor saved_at(Node node, int i, int bit):
    """The i-th saved value, checked to be what it was. `bit` (or -1) says which it is."""
    cdef Saved* saved = &node.saved[i]
    cdef Tensor x = <Tensor>saved.tensor
    if x.storage.version != saved.version:
        which = (f"saved tensor {i}" if bit < 0 else "its output" if bit >= OUTPUT
                 else f"input {bit}")
        raise RuntimeError(
            f"backward: one of the variables needed for gradient computation has been modified by "
            f"an inplace operation: {which} of {node.op.name}, of shape {tuple(x.shape)}, is at "
            f"version {x.storage.version} but was saved at version {saved.version}. "
            f"Use the out-of-place form of the later operation, or clone() the value first")
    return x


cdef Tensor saved_value(Node node, int bit, bint as_recorded):
    """The saved input (by its number) or output (OUTPUT), checked to be what it was.

    With `as_recorded` the value is linked to the graph as it was when the operation ran, so that
    the gradient can itself be differentiated.
    """
    cdef Tensor x, linked
    cdef Edge* edge
    cdef int i
    check_not_released(node)
    i = __builtin_popcount(node.kept & ((<unsigned int>1 << bit) - 1))
    x = saved_at(node, i, bit)
    if not as_recorded:
        return x
    if bit >= OUTPUT:
        linked = alias(x)
        linked.grad_node = node
        linked.slot = bit - OUTPUT
        return linked
    edge = &node.edges[bit]
    if edge.target != NULL and x.grad_node is not <object>edge.target and not (
            x.accumulator == <void*>edge.target):
        linked = alias(x)
        linked.grad_node = <object>edge.target
        linked.slot = edge.slot
        return linked
    return x


cdef Node accumulator_of(Tensor leaf):
    """The node that accumulates into `leaf.grad`: one for as long as a graph needs it."""
    cdef Node node
    if leaf.accumulator != NULL:
        return <Node>leaf.accumulator
    node = new_node(accumulate, 0, 1, 1)
    keep(node, 0, leaf)
    node.hooks = leaf.hooks
    leaf.accumulator = <void*>node
    return node


cdef Node gradient_edge(Tensor x):
    """The node that receives the gradient of `x`, or None if it requires none."""
    if x.grad_node is not None:
        return <Node>x.grad_node
    return accumulator_of(x) if x.wants_grad else None


# ---- hooks ---------------------------------------------------------------------------------------

def add_hook(Tensor x, hook):
    """Has `hook` called with the gradient of `x`; returns the dict that holds it, and its key.

    The hooks of a leaf live on the tensor, and its node shares them for as long as it lives.
    """
    cdef Node node = gradient_edge(x)
    cdef dict hooks
    if node.op is accumulate:
        if x.hooks is None:
            x.hooks = {}
        hooks = x.hooks
        node.hooks = hooks
    else:
        if node.hooks is None:
            node.hooks = {}
        hooks = node.hooks
    watch(node)
    key = object()
    hooks[key] = (x.slot, hook)
    return hooks, key


def mark_retained(Tensor x):
    """Notes that `x` keeps its gradient; False if it was noted before."""
    cdef bint before = x.keeps_grad
    x.keeps_grad = True
    return not before
