from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor product(str name, Tensor a, Tensor b)
cdef object apply_product(Op op, object a, object b)
cdef tuple promoted(Tensor a, Tensor b)
