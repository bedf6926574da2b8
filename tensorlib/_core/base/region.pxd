"""Addresses without memory: those of the elements of `meta` tensors."""

cdef char* region                  # its first address
cdef size_t region_size            # 0 until a tensor without memory is first asked for

cdef int* without_memory() noexcept nogil
cdef bint makes_meta() noexcept nogil
cdef char* reserve(Py_ssize_t nbytes) except NULL

cdef inline bint in_region(const void* address) noexcept nogil:
    """Whether an address is in the region, as those of tensors on `meta` are."""
    return <size_t>address - <size_t>region < region_size

cdef inline bint computes_nothing() noexcept nogil:
    """Whether this thread only infers shapes: its allocations have no memory."""
    return region_size != 0 and without_memory()[0]
