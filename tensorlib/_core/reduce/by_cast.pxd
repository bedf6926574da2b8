from libc.stdint cimport uint16_t

from tensorlib._core.tiles.loops cimport cast_loop

cdef enum:
    BLOCK = 4096             # elements that are cast to float32 at once: half of the L1 cache
    BLOCK_BYTES = 4 * BLOCK  # the same for any dtype

cdef struct Cast:
    void* loop               # the reduction in the wider dtype
    void* combine            # the loop that reduces the results of parts
    cast_loop cast
    Py_ssize_t from_size, size   # bytes of an element, before and after

cdef void fold_by_cast(const Cast* by, const char* x, const char* c, char* y, Py_ssize_t outer,
                       Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil

cdef void rows_by_cast(void* loop, cast_loop cast, cast_loop back, const uint16_t* g,
                       const uint16_t* x, uint16_t* y, Py_ssize_t rows,
                       Py_ssize_t n) noexcept nogil
