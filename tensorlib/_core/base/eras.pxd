from tensorlib._core.base.storage cimport Storage

cdef int work_begins() noexcept
cdef int work_ends(int era) except -1
cdef int retire(Storage storage) except -1
