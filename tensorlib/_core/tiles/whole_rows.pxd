from tensorlib._core.tiles.plan cimport Plan

cdef bint goes_by_rows(const Plan* plan) noexcept nogil
cdef void run_whole_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                         Py_ssize_t rows) noexcept nogil
