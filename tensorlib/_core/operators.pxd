from tensorlib._core.op cimport Op
from tensorlib._core.tensor cimport Tensor

cdef int check_writable(str name, Tensor x, bint recorded) except -1
cdef int rebase(Tensor x, Tensor fresh) except -1
cdef object apply_inplace(Op op, Tensor x, tuple others)
