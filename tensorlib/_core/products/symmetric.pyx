"""Eigenvalues and eigenvectors of symmetric matrices, by rotations (`symmetric.h` of the kernels).

A matrix is worked on by one thread, in scratch memory: the matrix itself and the product of what is
done to it, whose rows become the eigenvectors.
"""

from libc.math cimport fabs, frexp, ldexp, NAN
from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport FLOAT32, ITEMSIZE, N_DTYPES
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.work cimport share
from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    MOST = 1280              # bytes of a row: beyond, LAPACK is faster, which divides and conquers
    LINE = 64                # bytes of the widest vectors
    BLOCK = 16               # rows that are transposed together, a line of the result

ctypedef void (*reduce_fn)(char* a, Py_ssize_t row, Py_ssize_t n, double* d, double* e, char* tau,
                           char* work) noexcept nogil
ctypedef void (*multiply_fn)(const char* a, char* q, Py_ssize_t row, Py_ssize_t n, const char* tau,
                             char* work) noexcept nogil
ctypedef bint (*rotate_fn)(double* d, double* e, Py_ssize_t n, char* z,
                           Py_ssize_t row) noexcept nogil
cdef reduce_fn reduces[N_DTYPES]
cdef multiply_fn multiplies[N_DTYPES]
cdef rotate_fn rotates[N_DTYPES]
find_by_dtype("triangles", "reduce", <void**>reduces)
find_by_dtype("triangles", "multiply", <void**>multiplies)
find_by_dtype("triangles", "rotate", <void**>rotates)

cdef double large_part = 0.6     # as in `lapack.pyx`, of the element that has the sign of a vector

ctypedef struct Work:
    const char* a            # matrices (n, n)
    char* x                  # eigenvalues (n) of each
    char* y                  # NULL, or eigenvectors (n, n) of each, as columns
    Py_ssize_t n, row, size  # elements of a row in scratch, bytes of an element
    int dtype
    bint failed              # there was no memory

ctypedef struct Scratch:
    char* a                  # (n, row)
    char* z                  # (n, row)
    char* work               # four rows
    char* tau                # a row
    double* d                # (n)
    double* e
    int* order


cdef double scale_of(const floating* a, Py_ssize_t n) noexcept nogil:
    """The power of two by which the largest element of the lower triangle gets a size of 1; NaN if
    an element is not finite"""
    cdef double most = 0, size
    cdef Py_ssize_t i, j
    cdef int exponent = 0
    for i in range(n):
        for j in range(i + 1):
            size = fabs(<double>a[i * n + j])
            most = size if size > most else most + 0 * size
    if most - most != 0:
        return NAN
    frexp(most, &exponent)
    return ldexp(1, min(1000, -exponent))


cdef void load(const floating* a, floating* x, Py_ssize_t row, Py_ssize_t n,
               double scale) noexcept nogil:
    """x (n, row) := the scaled matrix with this lower triangle, and zeros beyond"""
    cdef Py_ssize_t i, j
    memset(x, 0, n * row * sizeof(floating))
    for i in range(n):
        for j in range(i + 1):
            x[i * row + j] = x[j * row + i] = <floating>(a[i * n + j] * scale)


cdef void transpose(const floating* x, Py_ssize_t x_row, floating* y, Py_ssize_t y_row,
                    Py_ssize_t n) noexcept nogil:
    """y (n, n) := the transpose of x"""
    cdef Py_ssize_t i = 0, j, k, end
    while i < n:
        end = min(n, i + BLOCK)
        for j in range(n):
            for k in range(i, end):
                y[j * y_row + k] = x[k * x_row + j]
        i = end


cdef void sort(const double* values, Py_ssize_t n, int* order) noexcept nogil:
    """The place of each value in ascending order"""
    cdef Py_ssize_t i, place
    for i in range(n):
        place = i
        while place > 0 and values[order[place - 1]] > values[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = <int>i


cdef floating sign(const floating* x, Py_ssize_t n) noexcept nogil:
    """1, or -1 where the first large element is negative"""
    cdef double most = 0
    cdef Py_ssize_t i
    for i in range(n):
        most = max(most, fabs(<double>x[i]))
    most *= large_part
    i = 0
    while i < n - 1 and not fabs(<double>x[i]) >= most:
        i += 1
    return -1 if x[i] < 0 else 1


cdef void find(Work* w, Scratch* s, const floating* a, floating* x, floating* y) noexcept nogil:
    """The values, and the vectors as columns, of one matrix"""
    cdef Py_ssize_t n = w.n, row = w.row, i, j
    cdef double scale = scale_of(a, n)
    cdef floating* rows = <floating*>s.a
    cdef floating* other = <floating*>s.z
    cdef floating factor
    cdef bint found = scale == scale
    if found:
        load(a, rows, row, n, scale)
        reduces[w.dtype](s.a, row, n, s.d, s.e, s.tau, s.work)
        if y != NULL:
            multiplies[w.dtype](s.a, s.z, row, n, s.tau, s.work)
            memset(rows, 0, n * row * sizeof(floating))
            transpose(other, row, rows, row, n)
        found = rotates[w.dtype](s.d, s.e, n, s.a if y != NULL else NULL, row)
    if not found:
        for i in range(n):
            x[i] = <floating>NAN
        return
    sort(s.d, n, s.order)
    for i in range(n):
        x[i] = <floating>(s.d[s.order[i]] / scale)
    if y == NULL:
        return
    for i in range(n):
        memcpy(other + i * row, rows + s.order[i] * row, n * sizeof(floating))
        factor = sign(other + i * row, n)
        for j in range(n):
            other[i * row + j] *= factor
    transpose(other, row, y, n, n)


cdef void find_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef Scratch s
    cdef Py_ssize_t i, n = w.n * w.size, row = w.row * w.size
    cdef size_t room = (2 * w.n + 5) * row + w.n * (2 * sizeof(double) + sizeof(int))
    cdef const char* a
    cdef char* y
    s.a = take_scratch(room)
    if s.a == NULL:
        w.failed = True
        return
    s.z = s.a + w.n * row
    s.work = s.z + w.n * row
    s.tau = s.work + 4 * row
    s.d = <double*>(s.tau + row)
    s.e = s.d + w.n
    s.order = <int*>(s.e + w.n)
    for i in range(begin, end):
        a, y = w.a + i * w.n * n, w.y + i * w.n * n if w.y != NULL else NULL
        if w.dtype == FLOAT32:
            find(w, &s, <const float*>a, <float*>(w.x + i * n), <float*>y)
        else:
            find(w, &s, <const double*>a, <double*>(w.x + i * n), <double*>y)
    give_scratch(s.a, room)


cdef bint is_rotated(Tensor a) noexcept:
    """Whether square matrices are of a dtype and size for which this is faster than LAPACK."""
    cdef int last = a.ndim_ - 1
    return (reduces[a.type] != NULL and last >= 1 and a.dims[last] == a.dims[last - 1]
            and 2 <= a.dims[last] <= MOST // ITEMSIZE[a.type])


cdef int rotate_all(Tensor a, Tensor x, Tensor y) except -1:
    """x := the eigenvalues of packed matrices, from their lower triangles, and y := eigenvectors,
    unless it is None; NaN for what is not finite or takes too many rotations. Raises: MemoryError.
    """
    cdef Work w
    if a.numel_ == 0:
        return 0
    w.a, w.x, w.y = a.data_pointer, x.data_pointer, y.data_pointer if y is not None else NULL
    w.n, w.dtype, w.size, w.failed = a.dims[a.ndim_ - 1], a.type, ITEMSIZE[a.type], False
    # an odd number of whole vectors, as rows would compete for few cache sets at a power of two
    w.row = (1 + (w.n * w.size - 1) // LINE | 1) * LINE // w.size
    share(find_range, &w, w.a, a.numel_ // (w.n * w.n), 1, False)
    if w.failed:
        raise MemoryError("eigh: there is no memory to work in")
    return 0
