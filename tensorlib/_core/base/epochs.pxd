from tensorlib._core.base.storage cimport Storage

cdef bint unsteady           # a tensor got other memory while another thread worked: it may again

cdef int work_begins() noexcept
cdef int work_ends(int epoch) except -1
cdef int retire(Storage storage) except -1
cdef int before_change() except -1
