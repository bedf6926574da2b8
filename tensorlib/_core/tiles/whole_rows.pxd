from tensorlib._core.tiles.loops cimport Loop
from tensorlib._core.tiles.plan cimport Plan

cdef bint goes_by_rows(const Plan* plan) noexcept nogil
cdef void run_whole_rows(const Plan* plan, const Py_ssize_t* index, char* scratch,
                         Py_ssize_t rows) noexcept nogil
cdef void call_for_rows(const Loop* loop, int number, char** x, const Py_ssize_t* downs, char* y,
                        Py_ssize_t down, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
