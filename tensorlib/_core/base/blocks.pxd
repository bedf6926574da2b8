"""Strided copies of blocks of contiguous bytes, and copies of short runs of bytes."""

from libc.string cimport memcpy

# Unrolled, since loops of one block each ran at half their speed wherever the compiler happened to
# place them across the end of a cache line.
cdef extern from * nogil:
    """
    #include <string.h>
    #define DEFINE_COPY(SIZE)                                                                  \\
        static inline void copy_blocks_of_##SIZE(const char* x, Py_ssize_t x_step, char* y,    \\
                                                 Py_ssize_t y_step, Py_ssize_t n) {            \\
            _Pragma("GCC unroll 4") for (Py_ssize_t i = 0; i < n; i++)                         \\
                memcpy(y + i * y_step, x + i * x_step, SIZE);                                  \\
        }
    DEFINE_COPY(1)
    DEFINE_COPY(2)
    DEFINE_COPY(4)
    DEFINE_COPY(8)
    DEFINE_COPY(16)
    DEFINE_COPY(32)
    """
    void copy_blocks_of_1(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t)
    void copy_blocks_of_2(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t)
    void copy_blocks_of_4(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t)
    void copy_blocks_of_8(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t)
    void copy_blocks_of_16(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t)
    void copy_blocks_of_32(const char*, Py_ssize_t, char*, Py_ssize_t, Py_ssize_t)

cdef enum:
    PAGE = 4096
    BY_BYTES = 1536          # safely below where the C library uses `rep movsb`


cdef inline void copy_run(const char* x, char* y, Py_ssize_t nbytes) noexcept nogil:
    """y := x. Short runs are copied without a call, the last 32 bytes possibly twice.

    So are runs of some KB where y is just after x modulo a page: the C library copies these by
    `rep movsb`, which AMD's Zen 3 and 4 then do byte by byte (4 kB took 1.2 us instead of 0.1).
    """
    cdef Py_ssize_t k
    if nbytes < 32 or nbytes > 512 and not (
            nbytes > BY_BYTES and 0 < (<size_t>y - <size_t>x) % PAGE < 32):
        memcpy(y, x, nbytes)
        return
    for k in range(0, nbytes - 32, 32):
        memcpy(y + k, x + k, 32)
    memcpy(y + nbytes - 32, x + nbytes - 32, 32)


cdef inline void copy_blocks(const char* x, Py_ssize_t x_step, char* y, Py_ssize_t y_step,
                             Py_ssize_t n, Py_ssize_t nbytes) noexcept nogil:
    """n blocks from x, x + x_step, ... to y, y + y_step, ..."""
    cdef Py_ssize_t i
    if nbytes == 1:
        copy_blocks_of_1(x, x_step, y, y_step, n)
    elif nbytes == 2:
        copy_blocks_of_2(x, x_step, y, y_step, n)
    elif nbytes == 4:
        copy_blocks_of_4(x, x_step, y, y_step, n)
    elif nbytes == 8:
        copy_blocks_of_8(x, x_step, y, y_step, n)
    elif nbytes == 16:
        copy_blocks_of_16(x, x_step, y, y_step, n)
    elif nbytes == 32:
        copy_blocks_of_32(x, x_step, y, y_step, n)
    else:
        for i in range(n):
            copy_run(x + i * x_step, y + i * y_step, nbytes)
