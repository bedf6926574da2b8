from libc.stdint cimport int64_t

cdef enum:
    LINE = 64                      # bytes: the alignment of blocks, and their smallest size

cdef class Storage:
    cdef char* data
    cdef Py_ssize_t nbytes
    cdef Py_ssize_t capacity       # bytes of the block, 0 for borrowed memory
    cdef int64_t version           # counts in-place writes
    cdef int64_t born              # the epoch in which it was made
    cdef bint writable
    cdef object owner              # who owns borrowed memory

# The version of inference tensors, which are not tracked: it stays negative.
cdef enum:
    UNTRACKED = -(1 << 30)

cdef int64_t* first_version() noexcept nogil

cdef inline bint untracked(Storage storage) noexcept nogil:
    return storage.version < 0

cdef inline bint holds(Storage storage, char* data, Py_ssize_t low, Py_ssize_t high,
                       Py_ssize_t itemsize) noexcept:
    """Whether elements from `low` to `high`, counted from `data`, are in a storage."""
    cdef Py_ssize_t offset = <Py_ssize_t>(<size_t>data - <size_t>storage.data)
    # not more elements than bytes, so the products can't overflow
    if offset < 0 or offset > storage.nbytes or low < -offset or high > storage.nbytes:
        return False
    return low * itemsize >= -offset and (high + 1) * itemsize <= storage.nbytes - offset

cdef int64_t next_epoch() noexcept
cdef Storage allocate(Py_ssize_t nbytes)
cdef Storage allocate_whole(Py_ssize_t nbytes)
cdef Storage borrow(char* data, Py_ssize_t nbytes, bint writable, object owner)
