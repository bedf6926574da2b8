from cpython.object cimport PyObject

from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cdef bint is_expanded(Tensor x) noexcept
cdef int check_writable(str name, Tensor x, bint recorded) except -1
cdef int check_may_change(str name, Tensor x, bint recorded) except -1
cdef list copied_from(Tensor x, Tensor source)
cdef list new_histories(Tensor x, Tensor fresh)
cdef list follow(Tensor x, Tensor seen)
cdef void set_history(Tensor x, Tensor seen, list followed) noexcept
cdef void take_histories(list histories) noexcept
cdef int rebase(Tensor x, Tensor fresh) except -1
cdef object bind_inplace(Op op, PyObject** args)
