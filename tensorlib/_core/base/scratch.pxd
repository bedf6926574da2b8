"""Memory that a kernel works in, kept for the next one: fresh memory costs page faults each time.

Any thread may take and give, without the GIL.
"""

# Uninitialised, of 64-byte alignment; NULL where there is none. It is given back with its size.
cdef char* take_scratch(size_t nbytes) noexcept nogil
cdef void give_scratch(char* block, size_t nbytes) noexcept nogil

cdef Py_ssize_t kept_scratch() noexcept nogil      # bytes
cdef void drop_scratch() noexcept nogil
