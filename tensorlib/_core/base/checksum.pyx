"""The checksum of the members of zip files."""

import zlib

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t

cdef extern from "base/checksum.h" nogil:
    bint has_fast_crc32()
    uint32_t fast_crc32(uint32_t crc, const char* data, size_t n)

cdef bint FAST = has_fast_crc32()


def crc32(data):
    """`zlib.crc32` of bytes."""
    cdef Py_buffer view
    cdef uint32_t crc = 0
    cdef size_t n = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if FAST and view.len >= 64:
            n = view.len // 16 * 16
            with nogil:
                crc = fast_crc32(0, <const char*>view.buf, n)
    finally:
        PyBuffer_Release(&view)
    return zlib.crc32(memoryview(data)[n:], crc)
