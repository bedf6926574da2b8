"""The checksum of the members of zip files."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t

import zlib

from tensorlib._core.base.eras cimport work_begins, work_ends

cdef extern from "base/checksum.h" nogil:
    bint has_fast_crc32()
    uint32_t fast_crc32(uint32_t crc, const char* data, size_t n)

cdef bint FAST = has_fast_crc32()


def crc32(data):
    """`zlib.crc32` of bytes."""
    cdef Py_buffer view
    cdef uint32_t crc = 0
    cdef size_t n = 0
    cdef const char* start
    cdef int era
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if FAST and view.len >= 64:
            n = view.len // 16 * 16
            start = <const char*>view.buf
            era = work_begins()
            with nogil:
                crc = fast_crc32(0, start, n)
            work_ends(era)
    finally:
        PyBuffer_Release(&view)
    return zlib.crc32(memoryview(data)[n:], crc)
