from tensorlib._core.tensor.tensor cimport Tensor

cdef bint fill_slices(Tensor x, int dim, Tensor places, Tensor out) except -1
