from tensorlib._core.index.gather cimport line
from tensorlib._core.tensor.tensor cimport Tensor

cdef int walk_over(line run, Tensor x, Tensor values, int dim, Tensor index) except -1
cdef Tensor written(line run, Tensor x, Tensor values, int dim, Tensor index)
