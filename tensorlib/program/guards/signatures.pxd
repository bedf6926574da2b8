from libc.stdint cimport int64_t
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib.program.guards.guarded cimport Guards

cdef class Signature:
    cdef object structure               # nested tuples: what `structure_of` gives
    cdef readonly list examples      # the tensors, without memory, each once
    cdef list requires, kinds        # of each tensor its place in a graph, and its class
    cdef readonly list others
    cdef bint grad, flat             # flat: the arguments are tensors, no two of them the same
    cdef int default_dtype
    cdef int64_t inference           # what inference mode begins versions with, else 0
    cdef readonly str opaque
    cdef public tuple bare
    cdef list sources, more          # of what else is given, and that, without memory
    cdef tuple with_more(self, tuple tensors)
    cdef tuple structure_of(self, value, list seen)
    cpdef tuple tensors_of(self, tuple args, dict kwargs)
    cdef bint are_bare(self, tuple tensors) except -1
    cdef bint matches_tensors(self, tuple args) except -1
    cdef bint fits(self, Tensor x, Py_ssize_t i) except -1
    cdef bint matches(self, tuple structure, value, list found) except -1
    cdef tuple structure_of_parts(self, container, list seen)
    cdef bint parts_match(self, tuple structure, value, list found) except -1

cdef class Conditions:
    cdef readonly list values, inspected, examples, requires, leaves, bare
    cdef readonly Guards guards
    cdef list all
    cdef dict pairs
    cdef size_t* addresses
    cdef bint lie_as_before(self) except -1
    cdef bint is_as_inspected(self, Tensor x, Py_ssize_t i) noexcept
    cpdef bint hold(self) except -1

cdef bint laid_out_as(Tensor x, Tensor y) noexcept
cdef Tensor like_on_meta(Tensor x)

cdef Py_ssize_t APART            # how far apart those lie that share no memory
cdef Py_ssize_t overlap(Tensor x, Tensor y) noexcept
cdef bint is_like(Tensor x, Tensor example, int place) noexcept
cdef int place_in_graph(Tensor x) noexcept
