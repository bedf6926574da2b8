from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    EDGE_NDIM = 3
    N_INLINE = 2
    OUTPUT = 24          # the place of the first output in a mask of kept values

# One input of the forward operation: where its gradient goes, and what that must look like.
cdef struct Edge:
    PyObject* target     # Node, owned; NULL where no gradient is needed
    int slot             # which output of the target
    short dtype
    short ndim
    Py_ssize_t dims[EDGE_NDIM]     # the sizes, or in dims[0] a pointer to them

# A value kept for the gradient, as it was when the operation ran.
cdef struct Saved:
    PyObject* tensor     # owned
    int64_t version

# The gradients that arrived at a node, owned; NULL before the first.
cdef union Grads:
    PyObject* only       # that of the only output
    PyObject** each      # those of several outputs, NULL where none arrived

# What the sweep that is under way notes in a node; a sweep inside of a hook sets it aside.
cdef struct Visit:
    int64_t sweep        # the number of the sweep
    int pending          # dependents that have not reported
    int cursor           # edges that the walk has still to follow; -1: it has not come by
    char asked           # its own gradients are asked for
    char passes_on       # a gradient that is asked for depends on its own
    char shared          # an outer sweep, whose visit is set aside, comes by as well
    Grads grads

# 256 bytes with the collector's header. Tensors have 272: were nodes as large, the two would lie
# among each other in memory, and a sweep through a million nodes would take a fifth longer.
cdef class Node:
    cdef object op
    cdef object attributes         # what the rules need beside tensors, or None
    cdef object hooks              # or None
    cdef object notes              # metadata dict, or None
    cdef int64_t sequence          # grows with time
    cdef unsigned int kept         # which inputs and outputs are saved, a bit each
    cdef int n_edges
    cdef int n_outputs
    cdef int n_saved
    cdef char released             # the saved values were let go by a sweep
    cdef char packs                # its values are saved through hooks
    cdef char tracked              # by the garbage collector, and what is built on it too
    cdef char is_leaf              # AccumulateGrad: saves the leaf whose .grad takes the gradient
    cdef Edge* edges
    cdef Saved* saved
    cdef Edge inline_edges[N_INLINE]
    cdef Saved inline_saved[N_INLINE]
    cdef Visit visit

# What else is done with a new node.
cdef enum NodeFlag:
    TRACKED = 1          # shown to the garbage collector as it is made
    TRACED = 2           # notes where it was made, for the detection of anomalies
    CHECKED = 4          # and its gradients are searched for NaN
    PACKED = 8           # saves its values through hooks

# Kinds of hooks of a node, in the order in which they run.
cdef enum HookKind:
    ON_TENSOR            # with the gradient of one output
    RETAINS              # the same, for retain_grad: after all others
    BEFORE               # with the gradients of all outputs, before the node runs
    ACCUMULATED          # with the leaf, after its .grad was computed
    AFTER                # with the gradients of the inputs and outputs

# What holds for operations that run on this thread.
cdef struct Mode:
    bint grad            # operations are recorded
    int node_flags       # what else is done with new nodes: of NodeFlag
    bint forward_mode    # nodes keep what forward-mode rules may need as well
    PyObject* packing    # (pack, unpack) of saved_tensors_hooks, owned, or NULL
    PyObject* running    # the node whose gradient is computed and searched for anomalies, or NULL
    int64_t epoch        # tensors born before it must not be written in place

cdef Mode* mode() noexcept nogil

cdef Node new_node(object op, int n_edges, int n_saved, int n_outputs)
cdef int set_edge(Node node, int i, Tensor x) except -1
cdef void track(Node node) noexcept
cdef int track_held(Tensor holder, object held) except -1
cdef void release_saved(Node node) noexcept
cdef object hook_node(Node node, HookKind kind, int slot, object hook)
cdef Node accumulator_of(Tensor leaf)
cpdef Node gradient_node(Tensor x)

cdef inline const Py_ssize_t* edge_dims(Edge* edge) noexcept nogil:
    return &edge.dims[0] if edge.ndim <= EDGE_NDIM else <Py_ssize_t*>edge.dims[0]
