"""`linear`, and what it makes of its weight."""

from tensorlib._core.tensor.tensor cimport Tensor

# A view of a matrix with rows for columns.
cdef Tensor transposed(Tensor x)
