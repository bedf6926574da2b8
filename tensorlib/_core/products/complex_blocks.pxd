"""Blocks of complex matrices, with the signatures of the kernels for real ones."""

from libc.math cimport fabs

from tensorlib._core.base.items cimport floating

# x (n) := its conjugate; nothing for real numbers
cdef void conjugate(int dtype, char* x, Py_ssize_t n) noexcept nogil

# x (n, m), column-major := the first n columns of the product of the k reflections in it, which has
# at most FEW_ROWS rows
cdef enum:
    FEW_ROWS = 16            # up to which loops take less time than packing for panels
cdef void multiply_reflections(int dtype, char* x, const char* taus, Py_ssize_t m, Py_ssize_t n,
                               Py_ssize_t k) noexcept nogil

# found[dtype] := the function of this name for complex64 and complex128
cdef int find_blocks(str name, void** found) except -1

# p := a complex b (k, n), or its conjugate, or minus these, as the real matrix (2 k, 2 n) by which
# complex rows, as they lie, are multiplied, packed into panels
cdef void pack_complex(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col,
                       bint conjugated, bint negated, char* p, Py_ssize_t k,
                       Py_ssize_t n) noexcept nogil


cdef inline void invert(const floating* z, floating* y) noexcept nogil:
    """y := 1 / z, without squares, which might overflow (Smith, 1962)"""
    cdef floating ratio, divisor
    if fabs(z[0]) >= fabs(z[1]):
        ratio = z[1] / z[0]
        divisor = z[0] + z[1] * ratio
        y[0], y[1] = 1 / divisor, -ratio / divisor
    else:
        ratio = z[0] / z[1]
        divisor = z[0] * ratio + z[1]
        y[0], y[1] = ratio / divisor, -1 / divisor


cdef inline void scale(const floating* x, const floating* f, floating* y) noexcept nogil:
    """y := f * x, of one number"""
    cdef floating first = f[0] * x[0] - f[1] * x[1]
    y[1] = f[0] * x[1] + f[1] * x[0]
    y[0] = first
