from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor

cdef struct Turned:
    bint is_turned
    bint is_reduced[MAX_NDIM]        # of the dims in their order in memory
    int order[MAX_NDIM]              # which dim of the tensor each of these is
    int dims[MAX_NDIM]               # to reduce

cdef Tensor turn(Turned* turned, Tensor x, int n, const int* dims)
cdef Tensor turn_back(const Turned* turned, Tensor out, bint keepdim)
