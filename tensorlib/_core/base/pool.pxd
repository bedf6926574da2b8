"""The parallel pool, for other compiled modules."""

ctypedef void (*range_fn)(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef void parallel_for(range_fn fn, void* context, Py_ssize_t n, Py_ssize_t grain) noexcept nogil
