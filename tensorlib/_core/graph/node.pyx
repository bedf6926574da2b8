"""The graph: a Node for each recorded operation, and the grad mode of each thread.

A node points to the nodes that made its operation's inputs (`edges`) and keeps the values that its
gradient needs (`saved`). Neither is a Python list: a node with two inputs is one allocation.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc

import traceback
from functools import partial

from tensorlib._core.base.closed cimport close_type, quiet_type
from tensorlib._core.base.dtypes cimport dtype_object
from tensorlib._core.base.shape cimport make_size
from tensorlib._core.base.storage cimport first_version
from tensorlib._core.tensor.tensor cimport Tensor, alias, requires_grad, track_tensor

from tensorlib._core.graph.held import PLAIN, Notes, tensors_and_nodes

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
    #include <stdint.h>
    static __thread struct {
        int grad, node_flags, forward_mode;
        void *packing, *running;
        int64_t epoch;
    } thread_mode = {1};
    static void* thread_mode_address(void) { return &thread_mode; }
    """
    void* thread_mode_address()


cdef Mode* mode() noexcept nogil:
    return <Mode*>thread_mode_address()


def is_grad_enabled():
    """Whether operations on this thread are recorded for differentiation."""
    return mode().grad


def _set_grad_enabled(bint enabled):
    """Sets the grad mode of this thread and returns the one before."""
    cdef bint before = mode().grad
    mode().grad = enabled and first_version()[0] == 0
    return before


cdef int64_t next_sequence = 1


def recorded_so_far():
    """The number of the next node: those recorded from now on are not below it."""
    return next_sequence


@cython.final
@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.freelist(65536)
cdef class Node:
    """One recorded operation: what `grad_fn` of its outputs shows."""

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

    def name(self):
        """The name of the backward operation, such as `TanhBackward`."""
        return self.op.node_name

    @property
    def operation(self):
        """The name of the operation that was recorded, such as `tanh`."""
        return self.op.name

    @property
    def input_layouts(self):
        """For each input: its dtype and shape."""
        cdef int i
        return tuple([
            (dtype_object(self.edges[i].dtype),
             make_size(self.edges[i].ndim, edge_dims(&self.edges[i])))
            for i in range(self.n_edges)])

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
        if not self.is_leaf:
            raise AttributeError(f"{self.name()} has no variable; AccumulateGrad nodes have")
        return <object>self.saved[0].tensor

    @property
    def metadata(self):
        """A dict for notes of the user's."""
        track(self)
        if type(self.notes) is not Notes:
            self.notes = Notes(self.notes or {}, partial(track_note, self.sequence))
        return self.notes

    @property
    def saved_values(self):
        """The tensors kept for the gradient, by their names in the operation, outside the graph.

        Empty once a sweep has let them go.
        """
        cdef int i
        if self.is_leaf:
            return {}
        return {name: alias(<Tensor>self.saved[i].tensor)
                for i, name in enumerate(saved_names(self))
                if isinstance(<object>self.saved[i].tensor, Tensor)}

    @property
    def saved_bytes(self):
        """Bytes of the tensors that this node keeps for its gradient."""
        return sum([x.nbytes for x in self.saved_values.values()])

    def register_hook(self, hook):
        """Calls `hook(grad_inputs, grad_outputs)` after this node has run in a sweep.

        A tuple that it returns takes the place of the gradients of the inputs.
        Returns a handle with `remove()`.

        >>> x = tensorlib.tensor(2.0, requires_grad=True)
        >>> y = x * x
        >>> handle = y.grad_fn.register_hook(lambda to_inputs, of_outputs: print(of_outputs))
        >>> y.backward()
        (tensor(1.),)
        """
        return hook_node(self, AFTER, 0, hook)

    def register_prehook(self, hook):
        """Calls `hook(grad_outputs)` before this node runs in a sweep.

        A tuple that it returns takes the place of the gradients of the outputs.
        Returns a handle with `remove()`.
        """
        return hook_node(self, BEFORE, 0, hook)

    def __repr__(self):
        return f"<{self.name()} object at {<size_t><PyObject*>self:#x}>"


cdef list saved_names(Node node):
    """What the saved values are in the operation: `input`, `out`; else their numbers."""
    cdef int bit
    cdef list names = [
        node.op.outputs[bit - OUTPUT] if bit >= OUTPUT else
        f"{node.op.arguments[0]}[{bit}]" if node.op.variadic else node.op.arguments[bit]
        for bit in range(32) if node.kept >> bit & 1]
    return names if len(names) == node.n_saved else [str(bit) for bit in range(node.n_saved)]


class _Accumulate:
    """Stands where an operation stands in other nodes."""

    node_name = "AccumulateGrad"
    name = "accumulate_grad"


cdef object accumulate = _Accumulate()


# ---- references held in C arrays -----------------------------------------------------------------

cdef void release_saved(Node node) noexcept:
    """Lets go of the saved values."""
    cdef int i, n = node.n_saved
    node.n_saved = 0
    node.released = node.released or n > 0
    for i in range(n):
        Py_DECREF(<object>node.saved[i].tensor)


# What a dying node holds is put on one list, which the outermost dying node empties. So a chain of
# ten million nodes is freed in constant stack.

cdef PyObject** dying = NULL
cdef Py_ssize_t n_dying = 0, room_dying = 0
cdef bint emptying = False


cdef void die_later(PyObject* value) noexcept:
    """Puts a reference on the list; where there is no memory for that it is let go at once."""
    global dying, n_dying, room_dying
    cdef PyObject** grown
    if n_dying == room_dying:
        grown = <PyObject**>realloc(dying, (2 * room_dying + 64) * sizeof(PyObject*))
        if grown == NULL:
            Py_DECREF(<object>value)
            return
        dying, room_dying = grown, 2 * room_dying + 64
    dying[n_dying] = value
    n_dying += 1


cdef void drop_references(Node node) noexcept:
    """Lets go of all that the node holds in its C arrays."""
    global n_dying, emptying
    cdef PyObject* value
    cdef int i
    if node.is_leaf and node.n_saved:
        (<Tensor>node.saved[0].tensor).accumulator = NULL
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            value = node.edges[i].target
            node.edges[i].target = NULL
            die_later(value)
    while node.n_saved:
        node.n_saved -= 1
        die_later(node.saved[node.n_saved].tensor)
    if emptying:
        return
    emptying = True
    while n_dying:
        n_dying -= 1
        Py_DECREF(<object>dying[n_dying])
    emptying = False


cdef TypeSlots* type_slots = <TypeSlots*><PyObject*>Node
# The garbage collector looks after a node only once it can be part of a cycle. A recorded operation
# points to older ones alone, so that a chain of a million nodes costs the collector nothing. A leaf
# whose `.grad` has a graph (create_graph) can point back to it, and so can hooks and what a
# `Function` keeps: these nodes are tracked, and those that are built on them.

cdef void track(Node node) noexcept:
    """Shows a node and what it saves to the garbage collector, and all that will be built on it."""
    cdef int i
    node.tracked = True
    if not PyObject_GC_IsTracked(node):
        PyObject_GC_Track(node)
    for i in range(node.n_saved):
        if not node.packs:
            track_tensor(<Tensor>node.saved[i].tensor)


# What the user hangs on a node or a tensor may hold tensors that were recorded on it before: these
# and the nodes between are shown to the collector then.

cdef int track_newer(Node root, int64_t since) except -1:
    """Tracks what leads from `root` to nodes not older than the sequence number `since`."""
    cdef list stack = [root]
    cdef set seen = {root}
    cdef Node node, target
    cdef int i
    while stack:
        node = stack.pop()
        if node.sequence < since:
            continue
        track(node)
        for i in range(node.n_edges):
            if node.edges[i].target != NULL:
                target = <Node>node.edges[i].target
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
    return 0


cdef int track_all(object held, int64_t since) except -1:
    """Tracks the tensors in an object, and what they have in the graph since a sequence number."""
    cdef Tensor x
    if type(held) in PLAIN:
        return 0
    for found in (held,) if type(held) is Tensor else tensors_and_nodes(held, Node):
        if isinstance(found, Node):
            track_newer(found, since)
            continue
        x = found
        track_tensor(x)
        if x.grad_node is not None:
            track_newer(x.grad_node, since)
    return 0


cdef int track_held(Tensor holder, object held) except -1:
    """Tracks what a tensor is about to hold: see `track_all`."""
    cdef int64_t since = next_sequence
    if holder.grad_node is not None:
        since = (<Node>holder.grad_node).sequence
    elif holder.accumulator != NULL:
        since = 0                      # this node is younger than the first one that led to it
    if type(held) not in PLAIN:
        track_tensor(holder)
        track_all(held, since)
    return 0


def track_note(int64_t since, note):
    """Tracks what is noted at a node of this sequence number."""
    track_all(note, since)


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
    drop_references(<Node>self)
    return clear_fields(self)


type_slots.tp_traverse = traverse
type_slots.tp_clear = clear
close_type(Node)
quiet_type(Node)


# ---- building the graph --------------------------------------------------------------------------

cdef Node new_node(object op, int n_edges, int n_saved, int n_outputs):
    """A node whose edges and saved values are still to be set."""
    global next_sequence
    cdef Node node = Node.__new__(Node)
    cdef int i
    cdef int flags = mode().node_flags
    node.tracked = flags != 0
    if not flags:
        PyObject_GC_UnTrack(node)
    elif flags & TRACED and op is not accumulate:
        node.notes = {"traceback_": traceback.format_stack()}
        if mode().running != NULL:
            node.notes["parent_"] = <object>mode().running
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
        target = gradient_node(x)
        Py_INCREF(target)
        edge.target = <PyObject*>target
        node.tracked |= (<Node>target).tracked
    return 0


cdef Node accumulator_of(Tensor leaf):
    """The node that accumulates into `leaf.grad`: one for as long as a graph needs it."""
    cdef Node node
    if leaf.accumulator != NULL:
        return <Node>leaf.accumulator
    node = new_node(accumulate, 0, 1, 1)
    Py_INCREF(leaf)
    node.saved[0].tensor = <PyObject*>leaf
    node.n_saved = 1
    node.hooks = leaf.hooks
    leaf.accumulator = <void*>node
    if node.hooks is not None:
        track(node)
    return node


cpdef Node gradient_node(Tensor x):
    """The node that receives the gradient of `x`, or None if it requires none."""
    if x.grad_node is not None:
        return <Node>x.grad_node
    return accumulator_of(x) if x.wants_grad else None


# ---- hooks ---------------------------------------------------------------------------------------

class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook off again."""

    def __init__(self, hooks, key):
        self.hooks = hooks
        self.key = key

    def remove(self):
        """Takes the hook off. Doing so twice is no error."""
        self.hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


cdef object hook_node(Node node, HookKind kind, int slot, object hook):
    """Notes a hook of a node. Those of a leaf live on the tensor, which its nodes share."""
    cdef Tensor leaf
    if node.hooks is None:
        node.hooks = {}
        if node.is_leaf:
            leaf = <Tensor>node.saved[0].tensor
            leaf.hooks = node.hooks
    track(node)
    if kind != RETAINS:                # that one holds its tensor weakly
        track_all(hook, 0 if node.is_leaf else node.sequence)
    key = object()
    node.hooks[key] = (<int>kind, slot, hook)
    return RemovableHandle(node.hooks, key)
