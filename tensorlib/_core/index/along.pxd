from tensorlib._core.index.gather cimport line
from tensorlib._core.tensor.tensor cimport Tensor

cdef int walk_over(line run, Tensor x, Tensor values, int dim, Tensor index) except -1
cdef Tensor written(line run, Tensor x, Tensor values, int dim, Tensor index)
cdef bint fits_flat(Tensor x, index, source, accumulate) except -1
cdef int put_flat(Tensor x, Tensor index, Tensor values, bint adds) except -1
cpdef int add_half_slices(Tensor x, str name, Tensor values, int dim, Tensor index) except -1
