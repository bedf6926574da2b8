from libc.stdint cimport uint64_t

cdef enum:
    LONG_ROW = 512           # keys: from so many on, this is faster than sorting by comparison

cdef Py_ssize_t place_by_digits(const uint64_t* x, uint64_t* aside, Py_ssize_t n, Py_ssize_t k,
                                int bits) noexcept nogil
