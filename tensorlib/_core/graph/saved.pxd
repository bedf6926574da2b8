from libc.stdint cimport int64_t
from tensorlib._core.base.storage cimport Storage
from tensorlib._core.graph.node cimport Node
from tensorlib._core.tensor.tensor cimport Tensor

cdef class Counted:
    cdef Tensor tensor
    cdef int64_t version

cdef object counted(object x)
cdef object as_counted(Node node, str name, object x, bint checked)
cdef int keep(Node node, int bit, Tensor x) except -1
cdef void note_written(Node node, Storage storage) noexcept
cdef void forget_unpacked(Node node)
cdef str released(name)
cdef int check_not_released(Node node) except -1
cdef bint keeps_for_gradients(Node node) noexcept
cdef Tensor saved_at(Node node, int i, int bit)
cdef str modified(str which, Tensor x, int64_t version, str where=*)
cdef tuple saved_facts(Node node, int bit)
cdef Tensor saved_value(Node node, int bit, bint as_recorded)
