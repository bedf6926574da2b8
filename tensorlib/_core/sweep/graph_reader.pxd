from libc.stdint cimport int64_t

from tensorlib._core.graph.node cimport Node

cdef int64_t new_mark() noexcept
cdef bint is_outside(Node node, int64_t since) noexcept
cdef list reached(list roots, int64_t since, int64_t mark, list borders)
