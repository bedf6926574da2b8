from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.update cimport Update

cdef int fill_numbers(Update update, double* table, given) except -1
cdef bint is_complete(Update update, state) except -1
cdef double counted(Update update, count) except? -1
cdef int count_step(Tensor count) noexcept
cdef bint meets(Tensor a, Tensor b) noexcept
