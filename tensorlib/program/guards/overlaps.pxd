from tensorlib._core.tensor.tensor cimport Tensor

cdef struct Place:               # where the elements of a tensor lie, and its storage
    size_t elements, storage, nbytes

cdef class Overlaps:
    cdef list values, excluded
    cdef dict distances
    cdef Py_ssize_t count, total
    cdef bint* written
    cdef bint* linked                # with a gradient
    cdef Place* places
    cpdef bint hold(self, tuple tensors) except -1
    cdef bint lies_as_before(self, Tensor x, Py_ssize_t i, tuple tensors) except -1
    cdef bint matters(self, Py_ssize_t i, Py_ssize_t k) noexcept
