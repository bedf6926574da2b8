from cpython.object cimport PyObject

from tensorlib._core.graph.node cimport Node
from tensorlib._core.sweep.state cimport Sweep
from tensorlib._core.tensor.tensor cimport Tensor

cdef int add_to_place(PyObject** place, Tensor g, bint create_graph) except -1
cdef int accumulate(Node node, bint create_graph) except -1
cdef bint add_picked(Sweep* sweep, Node node, Tensor g, Node target) except -1
cdef int hold_spread(Sweep* sweep, Tensor g, Node target, bint overwritten) except -1
cdef void drop_spread(Sweep* sweep) noexcept

# The gradient of a leaf has the strides of the leaf if that has no gaps, and else is row-major.
cdef bint lies_for(Tensor g, Tensor leaf) noexcept
cdef Tensor copied_for(Tensor g, Tensor leaf)
