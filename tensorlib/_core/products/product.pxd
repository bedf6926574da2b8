from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef Tensor product(str name, Tensor a, Tensor b)
cdef Tensor wide_product(str name, Tensor a, Tensor b)
cdef object bind_product(Op op, object a, object b)
cdef tuple promoted(Tensor a, Tensor b)
cdef bint is_plain_product(Tensor a, Tensor b) noexcept
cdef int product_to(Tensor a, Tensor b, Tensor out) except -1
cdef bint is_rows_product(Tensor a, Tensor b) noexcept
cdef int rows_product_to(Tensor a, Tensor b, Tensor out) except -1
cdef bint product_adds(Tensor a, Tensor b, Tensor row, Tensor out) except -1
