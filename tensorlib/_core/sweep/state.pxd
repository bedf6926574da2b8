"""The state of a sweep, and its arrays of nodes, one of them a heap with the newest node first.

Inline, since these functions are most of the overhead of a sweep.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tensorlib._core.base.pointers cimport Pointers, append, start, stop
from tensorlib._core.graph.node cimport Edge, Node, Visit, track
from tensorlib._core.tensor.tensor cimport Tensor

cdef extern from "Python.h":
    ctypedef struct PyThreadState

cdef extern from * nogil:
    void prefetch "__builtin_prefetch"(const void* memory)

cdef enum:
    AHEAD = 8                      # how many nodes ahead memory is prefetched
    CACHE_LINE = 64                # bytes
    TOLD_APART = 32                # the bits of Visit.beside


cdef inline int push(Pointers* nodes, Node node) except -1:
    if not append(nodes, <PyObject*>node):
        raise MemoryError()
    return 0


cdef inline int64_t age(PyObject* node) noexcept:
    return (<Node>node).sequence


cdef inline int push_ready(Pointers* heap, Node node) except -1:
    """Pushes a node to the heap."""
    cdef Py_ssize_t i, parent
    push(heap, node)
    i = heap.n - 1
    while i > 0:
        parent = (i - 1) >> 1
        if age(heap.items[parent]) >= age(heap.items[i]):
            break
        heap.items[parent], heap.items[i] = heap.items[i], heap.items[parent]
        i = parent
    return 0


cdef inline Node pop_ready(Pointers* heap):
    cdef PyObject* first = heap.items[0]
    cdef Py_ssize_t i = 0, child
    heap.n -= 1
    heap.items[0] = heap.items[heap.n]
    while True:
        child = 2 * i + 1
        if child >= heap.n:
            break
        if child + 1 < heap.n and age(heap.items[child + 1]) > age(heap.items[child]):
            child += 1
        if age(heap.items[i]) >= age(heap.items[child]):
            break
        heap.items[child], heap.items[i] = heap.items[i], heap.items[child]
        i = child
    return <Node>first


# ---- the state of a sweep ------------------------------------------------------------------------

# The saved state of a node in an outer sweep, which is still running on this thread.
cdef struct Aside:
    PyObject* node
    Visit visit
    Aside* next

cdef struct Sweep:
    int64_t id
    PyThreadState* thread          # NULL for a walk only, during which no other thread runs
    Sweep* outer                   # the sweep that was running when this one began
    Aside* aside                   # saved states of nodes that outer sweeps reach as well
    bint retain_graph
    bint create_graph
    int anomalies                  # whether they are looked for: flags of the thread's mode
    PyObject* targets              # list of the nodes whose gradients are asked for, or NULL
    PyObject* inputs               # tuple of the tensors of these nodes, or NULL
    PyObject* no_grad              # set of (node, output): gradients taken as zero; or NULL
    int64_t since                  # older nodes and leaves are left out; 0: none are
    bint left_out                  # a walk found such a node
    PyObject* spread               # of x[key], zero outside the key, until more is added
    bint overwritten          # `spread` is of a tensor that was written in part, and not zeros
    int64_t meets                  # a sweep of another thread that reaches the same leaf; 0: none
    Pointers visited                  # every node reached, owned
    Pointers ready                    # during the walk: its path

cdef int begin(Sweep* sweep, list targets, bint shallow) except -1
cdef int walk(Sweep* sweep, Node root) except -1
cdef void end(Sweep* sweep) noexcept
cdef PyObject** grad_place(Node node, int slot) except NULL
cdef object grad_at(Node node, int slot)
cdef tuple grads_of(Node node)
cdef void drop_grads(Node node) noexcept
cdef void hold_walks() noexcept
cdef void drop_walks() noexcept
cdef int wait_for(int64_t id) except -1
cdef Sweep* active_sweep(int64_t id) noexcept
cdef Sweep* own_sweep() noexcept
cdef tuple nodes_below(list roots, list inputs, int64_t since, bint between)
cdef int move(Node node, list made) except -1
cdef void move_on(Node node)
cdef int settle(Tensor x) except -1


cdef inline bint wants_all(Sweep* sweep) noexcept:
    """Whether the gradients of all leaves are needed, so that every node reached is."""
    return sweep.targets == NULL and sweep.no_grad == NULL


cdef inline bint is_zero(Sweep* sweep, Edge* edge) except -1:
    """Whether the gradient along an edge is taken as zero."""
    return sweep.no_grad != NULL and (
        <object>edge.target, edge.slot) in <set>sweep.no_grad


cdef inline bint leads_on(Sweep* sweep, Edge* edge) except -1:
    """Whether a gradient is needed along an edge."""
    cdef Visit* visit
    if edge.target == NULL:
        return False
    visit = &(<Node>edge.target).visit
    return (visit.asked or visit.passes_on) and visit.sweep == sweep.id and (
        not visit.beside or not lies_beside(edge)) and not is_zero(sweep, edge)


cdef inline bint lies_beside(Edge* edge) noexcept:
    """Whether an edge leads to an output that is left out."""
    return edge.slot < TOLD_APART and (<Node>edge.target).visit.beside >> edge.slot & 1


# For graphs larger than the caches: on 100,000 operations, this saves a fifth of the sweep.
cdef inline void fetch_ahead(Sweep* sweep, Py_ssize_t k) noexcept:
    """Prefetches the nodes that run soon, nearly in the order of `visited`."""
    cdef char* memory = <char*>sweep.visited.items[k + AHEAD]
    cdef Node node = <Node>sweep.visited.items[k + AHEAD // 2]
    cdef Tensor x
    cdef int i
    for i in range(4):
        prefetch(memory + i * CACHE_LINE)
    for i in range(node.n_saved):
        memory = <char*>node.saved[i].tensor
        prefetch(memory)
        prefetch(memory + CACHE_LINE)
        prefetch(memory + 3 * CACHE_LINE)
    node = <Node>sweep.visited.items[k + AHEAD // 4]
    if node.packs:
        return
    for i in range(node.n_saved):
        x = <Tensor>node.saved[i].tensor
        prefetch(<char*><PyObject*>x.storage)
        prefetch(x.data_pointer)
