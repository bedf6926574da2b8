from libc.stdint cimport uint16_t

from tensorlib._core.tiles.loops cimport cast_loop

cdef enum:
    BLOCK = 4096             # elements in float32 at a time: half of the L1 cache

cdef void fold_by_cast(void* loop, cast_loop cast, const uint16_t* x, float* y, Py_ssize_t outer,
                       Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil

cdef void rows_by_cast(void* loop, cast_loop cast, cast_loop back, const uint16_t* g,
                       const uint16_t* x, uint16_t* y, Py_ssize_t rows,
                       Py_ssize_t n) noexcept nogil
