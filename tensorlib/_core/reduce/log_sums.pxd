from tensorlib._core.base.items cimport floating

cdef enum:
    WIDTH = 256              # columns that are computed at once

cdef void log_sums(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t step,
                   Py_ssize_t width) noexcept nogil
