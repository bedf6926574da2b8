"""`linear`, and the transposed view of its weight."""

from tensorlib._core.tensor.tensor cimport Tensor

# The transpose of a matrix, as a view.
cdef Tensor transposed(Tensor x)
