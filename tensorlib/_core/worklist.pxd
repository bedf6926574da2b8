"""Growing arrays of nodes: a stack, and a heap whose first item is the newest node.

Inline, since a sweep does little else beside the arithmetic.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from tensorlib._core.node cimport Node

cdef enum:
    FEW = 16

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
