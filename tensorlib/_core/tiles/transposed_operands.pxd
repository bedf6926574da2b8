from tensorlib._core.tiles.plan cimport Plan

cdef enum:
    LEAST_BAND = 16          # rows that are gone through together, at least

cdef bint has_operand_across(const Plan* plan) noexcept nogil
cdef bint turns_far_apart(const Plan* plan) noexcept nogil
cdef void run_bands(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
