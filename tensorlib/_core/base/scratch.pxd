"""Scratch memory of kernels, which is kept for reuse, since fresh memory costs page faults.

Thread-safe without the GIL.
"""

# Uninitialised and aligned to 64 bytes; NULL if there is none. To be returned with its size.
cdef char* take_scratch(size_t nbytes) noexcept nogil
cdef void give_scratch(char* block, size_t nbytes) noexcept nogil

cdef Py_ssize_t kept_scratch() noexcept nogil      # bytes
cdef void drop_scratch() noexcept nogil
