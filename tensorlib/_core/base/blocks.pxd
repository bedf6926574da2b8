"""Blocks of contiguous bytes, moved between places some bytes apart, and short runs of bytes."""

from libc.string cimport memcpy


cdef enum:
    PAGE = 4096
    BY_BYTES = 1536          # some way below what the C library copies by `rep movsb`


cdef inline void copy_run(const char* x, char* y, Py_ssize_t nbytes) noexcept nogil:
    """y := x. Without a call where they are short: the last 32 bytes may be copied twice.

    Nor of some KB where y lies just behind x modulo a page: the C library copies these by `rep
    movsb`, which AMD's Zen 3 and 4 then do byte by byte (4 kB took 1.2 us instead of 0.1).
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
    if nbytes == 1:                          # a memcpy of a constant size is one move
        for i in range(n):
            memcpy(y + i * y_step, x + i * x_step, 1)
    elif nbytes == 2:
        for i in range(n):
            memcpy(y + i * y_step, x + i * x_step, 2)
    elif nbytes == 4:
        for i in range(n):
            memcpy(y + i * y_step, x + i * x_step, 4)
    elif nbytes == 8:
        for i in range(n):
            memcpy(y + i * y_step, x + i * x_step, 8)
    elif nbytes == 16:
        for i in range(n):
            memcpy(y + i * y_step, x + i * x_step, 16)
    elif nbytes == 32:
        for i in range(n):
            memcpy(y + i * y_step, x + i * x_step, 32)
    else:
        for i in range(n):
            copy_run(x + i * x_step, y + i * y_step, nbytes)
