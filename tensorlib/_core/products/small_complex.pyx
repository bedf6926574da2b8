"""Elimination and factors of Cholesky in batches of small complex matrices, one after the other.

LAPACK takes longer to be called than to solve a system of 4 equations. The size and the dtype of a
matrix alone decide whether it is solved here, so that it gives the same bits alone and in a batch.
"""

from libc.math cimport NAN, fabs, sqrt
from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport COMPLEX64, COMPLEX128, ITEMSIZE
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.complex_blocks cimport invert, scale
from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    MOST = 8                 # rows
    CHUNK = 16               # matrices of a piece of work
    RELEASE_GIL = 1 << 13    # multiplications from which on the GIL is released

# x := the solutions of a @ x = b, where b NULL is the identity; determinants; either may be NULL.
cdef struct Systems:
    const char* a
    const char* b
    char* x
    char* determinants
    Py_ssize_t n, k
    int dtype


cdef bint is_small_complex(Tensor a) noexcept:
    return ((a.type == COMPLEX64 or a.type == COMPLEX128) and a.ndim_ >= 2
            and a.dims[a.ndim_ - 1] == a.dims[a.ndim_ - 2] and 1 <= a.dims[a.ndim_ - 1] <= MOST)


cdef int eliminate_all(Tensor a, Tensor b, Tensor x, Tensor determinants) except -1:
    """x := the solutions of a @ x = b, or the inverses where b is None, and the determinants, of
    packed tensors; x or the determinants may be None. NaN or infinite for singular matrices, of
    which the determinant is 0."""
    cdef Systems of
    if a.numel_ == 0:
        return 0
    of.dtype, of.n = a.type, a.dims[a.ndim_ - 1]
    of.k = 0 if x is None else x.dims[x.ndim_ - 1]
    of.a, of.b = a.data_pointer, NULL if b is None else b.data_pointer
    of.x = NULL if x is None else x.data_pointer
    of.determinants = NULL if determinants is None else determinants.data_pointer
    return share(eliminate_range, &of, of.a, a.numel_ // (of.n * of.n), CHUNK,
                 times(a.numel_, of.n) < RELEASE_GIL)


cdef void eliminate_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Systems* of = <Systems*>context
    cdef double[2 * MOST * MOST] room
    cdef double[2] det
    cdef Py_ssize_t size = ITEMSIZE[of.dtype], square = of.n * of.n, i, j
    cdef char* x
    for i in range(begin, end):
        memcpy(room, of.a + i * square * size, square * size)
        x = of.x + i * of.n * of.k * size if of.x != NULL else NULL
        if of.b != NULL:
            memcpy(x, of.b + i * of.n * of.k * size, of.n * of.k * size)
        elif x != NULL:
            memset(x, 0, of.n * of.k * size)
            for j in range(of.n):
                if of.dtype == COMPLEX64:
                    (<float*>x)[2 * j * (of.n + 1)] = 1
                else:
                    (<double*>x)[2 * j * (of.n + 1)] = 1
        if of.dtype == COMPLEX64:
            eliminate(<float*>room, <float*>x, <float*>det, of.n, of.k)
        else:
            eliminate(<double*>room, <double*>x, det, of.n, of.k)
        if of.determinants != NULL:
            memcpy(of.determinants + i * size, det, size)


cdef inline void subtract(const floating* f, const floating* x, floating* y,
                          Py_ssize_t n) noexcept nogil:
    """y (n) -= f * x"""
    cdef Py_ssize_t j
    for j in range(n):
        y[2 * j] -= f[0] * x[2 * j] - f[1] * x[2 * j + 1]
        y[2 * j + 1] -= f[0] * x[2 * j + 1] + f[1] * x[2 * j]


cdef inline void multiply(const floating* f, floating* y, Py_ssize_t n) noexcept nogil:
    """y (n) *= f"""
    cdef Py_ssize_t j
    for j in range(n):
        scale(y + 2 * j, f, y + 2 * j)


cdef inline void swap(floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(2 * n):
        x[j], y[j] = y[j], x[j]


cdef void eliminate(floating* a, floating* b, floating* det, Py_ssize_t n,
                    Py_ssize_t k) noexcept nogil:
    """b (n, k) := the solution of a (n, n) @ x = b, and the determinant of a, which is overwritten

    Pivots are chosen by |re| + |im|, as in LAPACK.
    """
    cdef Py_ssize_t c, r, best
    cdef floating most, size
    cdef floating[2] f
    cdef floating[2 * MOST] inverses
    cdef floating* row
    det[0], det[1] = 1, 0
    for c in range(n):
        best, most = c, -1
        for r in range(c, n):
            row = a + 2 * (r * n + c)
            size = fabs(row[0]) + fabs(row[1])
            if size > most:
                best, most = r, size
        row = a + 2 * c * n
        if best != c:
            swap(row + 2 * c, a + 2 * (best * n + c), n - c)
            swap(b + 2 * c * k, b + 2 * best * k, k)
            det[0], det[1] = -det[0], -det[1]
        scale(det, row + 2 * c, det)
        if most == 0 and k == 0:     # there is nothing to subtract, as in LAPACK
            continue
        invert(row + 2 * c, inverses + 2 * c)
        for r in range(c + 1, n):
            f[0], f[1] = a[2 * (r * n + c)], a[2 * (r * n + c) + 1]
            multiply(inverses + 2 * c, f, 1)
            subtract(f, row + 2 * (c + 1), a + 2 * (r * n + c + 1), n - c - 1)
            subtract(f, b + 2 * c * k, b + 2 * r * k, k)
    for c in range(n - 1, -1, -1):
        multiply(inverses + 2 * c, b + 2 * c * k, k)
        for r in range(c):
            subtract(a + 2 * (r * n + c), b + 2 * c * k, b + 2 * r * k, k)


cdef int factor_all(Tensor a, Tensor x) except -1:
    """x := the lower factors of Cholesky of packed matrices; NaN where one is not positive
    definite."""
    cdef Systems of
    if a.numel_ == 0:
        return 0
    of.dtype, of.n, of.k = a.type, a.dims[a.ndim_ - 1], 0
    of.a, of.b, of.x, of.determinants = a.data_pointer, NULL, x.data_pointer, NULL
    return share(factor_range, &of, of.a, a.numel_ // (of.n * of.n), CHUNK,
                 times(a.numel_, of.n) < RELEASE_GIL)


cdef void factor_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Systems* of = <Systems*>context
    cdef Py_ssize_t step = of.n * of.n * ITEMSIZE[of.dtype], i
    for i in range(begin, end):
        if of.dtype == COMPLEX64:
            factor(<const float*>(of.a + i * step), <float*>(of.x + i * step), of.n)
        else:
            factor(<const double*>(of.a + i * step), <double*>(of.x + i * step), of.n)


cdef void factor(const floating* a, floating* x, Py_ssize_t n) noexcept nogil:
    """x := the lower factor of a, whose upper triangle is not read; row by row"""
    cdef Py_ssize_t i, j, k
    cdef floating re, im
    cdef floating* row
    cdef floating* above
    memset(x, 0, 2 * n * n * sizeof(floating))
    for i in range(n):
        row = x + 2 * i * n
        for j in range(i + 1):
            above = x + 2 * j * n
            re, im = a[2 * (i * n + j)], a[2 * (i * n + j) + 1]
            for k in range(j):
                re -= row[2 * k] * above[2 * k] + row[2 * k + 1] * above[2 * k + 1]
                im -= row[2 * k + 1] * above[2 * k] - row[2 * k] * above[2 * k + 1]
            if i != j:
                row[2 * j], row[2 * j + 1] = re / above[2 * j], im / above[2 * j]
            elif re > 0:
                row[2 * i] = <floating>sqrt(re)
            else:
                row[2 * i] = NAN
