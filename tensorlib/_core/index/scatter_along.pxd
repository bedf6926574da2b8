from tensorlib._core.index.gather cimport line_loop
from tensorlib._core.tensor.tensor cimport Tensor

cdef int walk_over(line_loop run, Tensor x, Tensor values, int dim, Tensor index) except -1
cdef Tensor written_copy(line_loop run, Tensor x, Tensor values, int dim, Tensor index)
cdef bint fits_flat(Tensor x, index, source, accumulate) except -1
cdef int put_flat(Tensor x, Tensor index, Tensor values, bint adds) except -1
cpdef int add_half_slices(Tensor x, str name, Tensor values, int dim, Tensor index) except -1
