"""What a sweep works through: growing arrays of nodes (a stack, and a heap whose first item is the
newest node), and its state.

Inline, since a sweep does little else beside the arithmetic.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from tensorlib._core.graph.node cimport Edge, Node
from tensorlib._core.tensor.tensor cimport Tensor

cdef extern from "Python.h":
    ctypedef struct PyThreadState

cdef extern from * nogil:
    void prefetch "__builtin_prefetch"(const void* memory)

cdef enum:
    FEW = 16
    AHEAD = 8                      # how many nodes ahead of the sweep memory is fetched
    CACHE_LINE = 64                # bytes

cdef struct Nodes:
    PyObject** items
    Py_ssize_t n, room
    PyObject* few[FEW]             # small graphs need no memory beside the stack


cdef inline void start(Nodes* nodes) noexcept:
    nodes.items = nodes.few
    nodes.n, nodes.room = 0, FEW


cdef inline void stop(Nodes* nodes) noexcept:
    if nodes.items != nodes.few:
        free(nodes.items)


cdef inline int push(Nodes* nodes, Node node) except -1:
    cdef PyObject** grown
    if nodes.n == nodes.room:
        grown = <PyObject**>realloc(NULL if nodes.items == nodes.few else nodes.items,
                                    2 * nodes.room * sizeof(PyObject*))
        if grown == NULL:
            raise MemoryError()
        if nodes.items == nodes.few:
            memcpy(grown, nodes.few, FEW * sizeof(PyObject*))
        nodes.items = grown
        nodes.room *= 2
    nodes.items[nodes.n] = <PyObject*>node
    nodes.n += 1
    return 0


cdef inline int64_t age(PyObject* node) noexcept:
    return (<Node>node).sequence


cdef inline int push_ready(Nodes* heap, Node node) except -1:
    """Adds to the heap whose first item is the newest node."""
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


cdef inline Node pop_ready(Nodes* heap):
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

# What a node held for an outer sweep that is still under way on this thread.
cdef struct Displaced:
    PyObject* node
    int64_t sweep
    int pending
    bint needed
    bint displaced
    bint is_target
    PyObject** grads
    PyObject* inline_grad


cdef struct Sweep:
    int64_t id
    PyThreadState* thread
    Sweep* outer                   # the sweep that was under way when this one began
    bint retain_graph
    bint create_graph
    int watched                    # what the thread's mode says of anomalies
    PyObject* cut                  # dict from nodes to outputs whose gradients are zero, or NULL
    Nodes visited                  # every node reached, owned
    Nodes ready
    Displaced* displaced
    Py_ssize_t n_displaced


cdef inline bint leads_on(Sweep* sweep, Edge* edge) except -1:
    """Whether a gradient is wanted along an edge."""
    if edge.target == NULL or not (<Node>edge.target).needed:
        return False
    return sweep.cut == NULL or edge.slot not in (<dict>sweep.cut).get(<Node>edge.target, ())


cdef inline bint leads_anywhere(Sweep* sweep, Node node) except -1:
    """Whether the gradient of an input of the node is wanted."""
    cdef int i
    for i in range(node.n_edges):
        if leads_on(sweep, &node.edges[i]):
            return True
    return False


# A graph beyond the caches: measured on 100,000 operations, this takes a fifth off the sweep.
cdef inline void fetch_ahead(Sweep* sweep, Py_ssize_t k) noexcept:
    """Has the caches fetch what is used soon: nodes run nearly in reverse order of `visited`."""
    cdef char* memory = <char*>sweep.visited.items[k]
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
    node = <Node>sweep.visited.items[k + AHEAD // 4 * 3]
    if node.packs:
        return
    for i in range(node.n_saved):
        x = <Tensor>node.saved[i].tensor
        prefetch(<char*><PyObject*>x.storage)
        prefetch(x.data_pointer)
