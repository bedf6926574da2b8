from cpython.object cimport PyObject

from tensorlib._core.graph.node cimport Node
from tensorlib._core.tensor.tensor cimport Tensor

cdef int add_to_place(PyObject** place, Tensor g, bint create_graph) except -1
cdef int accumulate(Node node, bint create_graph) except -1
