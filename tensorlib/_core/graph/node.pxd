from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    EDGE_NDIM = 3
    N_INLINE = 2
    OUTPUT = 24          # the place of the first output in a mask of kept values

# One input of the forward operation: where its gradient goes, and the dtype and shape of that.
cdef struct Edge:
    PyObject* target     # Node, owned; NULL where no gradient is needed
    int slot             # which output of the target
    short dtype
    short ndim
    Py_ssize_t dims[EDGE_NDIM]     # the sizes, or in dims[0] a pointer to them

# A saved value, as it was when the operation ran.
cdef struct Saved:
    PyObject* tensor     # owned
    int64_t version

# The state of the running sweep in a node; a sweep inside a hook saves and restores it.
cdef struct Visit:
    int64_t sweep        # the number of the sweep
    int pending          # dependents that have not reported
    int cursor           # edges that the walk has still to follow; -1: it has not come by
    char asked           # its own gradients are asked for
    char passes_on       # a gradient that is asked for depends on its own
    char shared          # an outer sweep, whose visit is set aside, comes by as well
    char idle            # nothing that ran leads to it: only a result of a call that others made
    unsigned int beside  # a bit for each of the first outputs of which nothing depends that is
                         # asked for, where something does of others; of replayed calls alone
    PyObject* grads      # that arrived, owned: one, or for several outputs a tuple; NULL before

# 256 bytes with the collector's header; tensors have 272. With one size class for both they would
# be interleaved in memory, and a sweep through a million nodes would take a fifth longer.
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
    cdef char released             # a sweep has released the saved values
    cdef char packs                # its values are saved through hooks
    cdef char tracked              # by the garbage collector, as are nodes built on it
    cdef char is_leaf              # AccumulateGrad: saves the leaf whose .grad takes the gradient
    cdef Edge* edges
    cdef Saved* saved
    cdef Edge inline_edges[N_INLINE]
    cdef Saved inline_saved[N_INLINE]
    cdef Visit visit

cdef Node new_node(object op, int n_edges, int n_saved, int n_outputs)
cdef int set_edge(Node node, int i, Tensor x) except -1
cdef void track(Node node) noexcept
cdef int renew_edges(Node node, int n) except -1
cdef void release_saved(Node node) noexcept
cpdef Node classed(Node node)
cdef Node accumulator_of(Tensor leaf)
cpdef Node gradient_node(Tensor x)
cpdef int64_t recorded_so_far() noexcept

cdef inline const Py_ssize_t* edge_dims(Edge* edge) noexcept nogil:
    return &edge.dims[0] if edge.ndim <= EDGE_NDIM else <Py_ssize_t*>edge.dims[0]
