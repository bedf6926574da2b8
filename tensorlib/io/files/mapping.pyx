"""A file in memory, without the descriptor that Python's own `mmap` keeps for each."""

import os

from cpython.buffer cimport PyBuffer_FillInfo
from libc.errno cimport errno
from posix.mman cimport MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap


cdef class Mapping:
    """Writable memory with the bytes of an open file; what is written stays in this process.

    It lasts as long as a view of it, also when the file is closed or has lost its name.
    """

    cdef void* start
    cdef Py_ssize_t nbytes

    def __cinit__(self, int descriptor, Py_ssize_t nbytes):
        if nbytes <= 0:
            raise ValueError(f"Mapping: takes a file that has bytes, got {nbytes}")
        cdef void* start = mmap(
            NULL, <size_t>nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0)
        if start == MAP_FAILED:
            raise OSError(errno, os.strerror(errno))
        self.start, self.nbytes = start, nbytes

    def __dealloc__(self):
        if self.start != NULL:
            munmap(self.start, <size_t>self.nbytes)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.nbytes, False, flags)
