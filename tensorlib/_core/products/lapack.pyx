"""LAPACK in the library that NumPy has loaded, for what `numpy.linalg` has no loops for.

The names of OpenBLAS's functions say how they were built: those that end with `64_` take 64-bit
integers. Only these are used; `has` tells whether they exist. Arrays are contiguous batches of
column-major matrices, in NumPy's memory: a C array with its last two dims exchanged.
"""

from libc.math cimport fabs, fabsf, sqrt
from libc.stdint cimport int32_t, int64_t

cimport numpy as cnp

import os

import numpy

from tensorlib._core.base.dtypes cimport FLOAT32, INT32, INT64, ITEMSIZE
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, packed_copy, zero

from tensorlib._core.products import blas

cnp.import_array()

cdef extern from "<dlfcn.h>" nogil:
    int RTLD_LAZY
    int RTLD_NOLOAD
    void* dlopen(const char* path, int flags)
    void* dlsym(void* handle, const char* name)

ctypedef void (*getrf_fn)(const int64_t* m, const int64_t* n, void* a, const int64_t* lda,
                          int64_t* pivots, int64_t* info) noexcept nogil
ctypedef void (*geqrf_fn)(const int64_t* m, const int64_t* n, void* a, const int64_t* lda,
                          void* tau, void* work, const int64_t* lwork, int64_t* info) noexcept nogil
ctypedef void (*orgqr_fn)(const int64_t* m, const int64_t* n, const int64_t* k, void* a,
                          const int64_t* lda, const void* tau, void* work, const int64_t* lwork,
                          int64_t* info) noexcept nogil
ctypedef void (*sytrf_fn)(const char* uplo, const int64_t* n, void* a, const int64_t* lda,
                          int64_t* pivots, void* work, const int64_t* lwork,
                          int64_t* info) noexcept nogil
ctypedef void (*sytrs_fn)(const char* uplo, const int64_t* n, const int64_t* nrhs, const void* a,
                          const int64_t* lda, const int64_t* pivots, void* b, const int64_t* ldb,
                          int64_t* info) noexcept nogil

cdef enum:
    FUNCTIONS = 7
    BLOCK = 64               # columns of a block, for which there is work space

cdef enum Function:
    GETRF, GEQRF, ORGQR, SYTRF, SYTRS, HETRF, HETRS

NAMES = ("getrf", "geqrf", "orgqr", "sytrf", "sytrs", "hetrf", "hetrs")
OF_REALS = {"hetrf": "sytrf", "hetrs": "sytrs"}      # which are Hermitian if they are symmetric
OF_COMPLEX = {"orgqr": "ungqr"}

# for float32, float64, complex64 and complex128; NULL where there is none
cdef void* found[4][FUNCTIONS]


cdef int find_functions() except -1:
    """Fills `found`."""
    cdef void* library
    cdef int i, kind
    path = blas.blas_info()["path"]
    library = dlopen(os.fsencode(path), RTLD_LAZY | RTLD_NOLOAD) if path else NULL
    if library == NULL:
        return 0
    for i in range(FUNCTIONS):
        for kind, letter in enumerate("sdcz"):
            name = (OF_COMPLEX if kind > 1 else OF_REALS).get(NAMES[i], NAMES[i])
            for full in (f"scipy_{letter}{name}_64_", f"{letter}{name}_64_"):
                if found[kind][i] == NULL:
                    found[kind][i] = dlsym(library, full.encode())
    return 0


def has():
    """Whether all of these functions were found."""
    cdef int i, kind
    for kind in range(4):
        for i in range(FUNCTIONS):
            if found[kind][i] == NULL:
                return False
    return True


cdef int kind_of(cnp.ndarray a) noexcept:
    """The place of an array's dtype in `found`, or -1."""
    cdef int kind = cnp.PyArray_TYPE(a)
    if kind == cnp.NPY_FLOAT32:
        return 0
    if kind == cnp.NPY_FLOAT64:
        return 1
    return 2 if kind == cnp.NPY_COMPLEX64 else 3 if kind == cnp.NPY_COMPLEX128 else -1


cdef void* function(cnp.ndarray a, Function which) except NULL:
    """The function for the dtype of an array, after checking that it can read the array."""
    if cnp.PyArray_NDIM(a) != 3 or not cnp.PyArray_ISCARRAY(a):
        raise ValueError("lapack: expected a contiguous batch of matrices")
    return address(kind_of(a), which)


cdef void* address(int kind, Function which) except NULL:
    """The function for numbers of a kind."""
    if not 0 <= kind < 4:
        raise ValueError("lapack: expected float32, float64 or complex numbers")
    if found[kind][<int>which] == NULL:
        raise ValueError("lapack: NumPy's library has not the functions that are used")
    return found[kind][<int>which]


cdef void* function_of_both(cnp.ndarray a, cnp.ndarray b, Function which) except NULL:
    """The function for two batches of one dtype, each of which is checked."""
    cdef void* run = function(a, which)
    if run != function(b, which):
        raise ValueError(f"lapack: expected one dtype, got {a.dtype} and {b.dtype}")
    return run


cdef inline char* matrix(cnp.ndarray a, Py_ssize_t i) noexcept:
    """Matrix i of a batch."""
    return <char*>cnp.PyArray_DATA(a) + i * cnp.PyArray_STRIDE(a, 0)


ctypedef struct Factors:
    void* run
    char* a                  # matrices (n, m)
    char* work
    int64_t* rows            # the pivots of one, and its info
    int32_t* pivots
    int32_t* info
    int64_t m, n, k, lwork, nbytes
    bint symmetric


cdef void factor_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Factors* f = <Factors*>context
    cdef int64_t lda = max(<int64_t>1, f.m)
    cdef Py_ssize_t i, j
    cdef char* at
    for i in range(begin, end):
        at, f.rows[f.k] = f.a + i * f.nbytes, 0
        if f.k and f.symmetric:
            (<sytrf_fn>f.run)(b"L", &f.n, at, &lda, f.rows, f.work, &f.lwork, f.rows + f.k)
        elif f.k:
            (<getrf_fn>f.run)(&f.m, &f.n, at, &lda, f.rows, f.rows + f.k)
        for j in range(f.k):
            f.pivots[i * f.k + j] = <int32_t>f.rows[j]
        f.info[i] = <int32_t>f.rows[f.k]


def factors(Tensor x not None, bint symmetric=False, bint hermitian=False):
    """The factors (column-major), pivots (from 1) and infos of matrices: L and U of a = P @ L @ U;
    for `symmetric` ones L and D of a = L @ D @ L.T; for `hermitian` ones of a = L @ D @ L.mH."""
    cdef Factors f
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t i, last, lwork
    f.run = address(x.type - FLOAT32, HETRF if hermitian else SYTRF if symmetric else GETRF)
    cdef Tensor a = packed_copy(x, x.type), info = new_tensor(INT32, x.ndim_ - 2, x.dims)
    f.m, f.n, f.symmetric = a.dims[a.ndim_ - 1], a.dims[a.ndim_ - 2], symmetric
    f.k, f.nbytes = min(f.m, f.n), f.m * f.n * ITEMSIZE[a.type]
    f.lwork = lwork = max(<int64_t>1, f.n * BLOCK) if symmetric else 1
    if symmetric and f.m != f.n:
        raise ValueError("lapack: expected square matrices")
    for i in range(a.ndim_ - 2):
        dims[i] = a.dims[i]
    dims[a.ndim_ - 2], last = f.k, f.k + 1
    cdef Tensor pivots = new_tensor(INT32, a.ndim_ - 1, dims)
    cdef Tensor work = new_tensor(a.type, 1, &lwork), places = new_tensor(INT64, 1, &last)
    f.a, f.work, f.rows = a.data_pointer, work.data_pointer, <int64_t*>places.data_pointer
    f.pivots, f.info = <int32_t*>pivots.data_pointer, <int32_t*>info.data_pointer
    with blas.one_blas_thread():
        run_alone(factor_all, &f, f.info, info.numel_)
    return a, pivots, info


def geqrf(cnp.ndarray a not None):
    """a := R and the Householder vectors below it, column-major. Returns their factors tau."""
    cdef geqrf_fn run = <geqrf_fn>function(a, GEQRF)
    cdef Py_ssize_t i, batch = a.shape[0]
    cdef int64_t m = a.shape[2], n = a.shape[1], lda = max(1, a.shape[2])
    cdef int64_t info = 0, lwork = max(1, n * BLOCK)
    cdef cnp.ndarray tau = numpy.zeros((batch, min(m, n)), a.dtype)
    cdef cnp.ndarray work = numpy.empty(lwork, a.dtype)
    if m and n:
        with blas.one_blas_thread():
            for i in range(batch):
                run(&m, &n, matrix(a, i), &lda, matrix(tau, i), cnp.PyArray_DATA(work), &lwork,
                    &info)
    return tau


def orgqr(cnp.ndarray a not None, cnp.ndarray tau not None):
    """a := the product of the reflections with Householder vectors in `a`, column-major."""
    cdef orgqr_fn run = <orgqr_fn>function(a, ORGQR)
    cdef Py_ssize_t i, batch = a.shape[0]
    cdef int64_t m = a.shape[2], n = a.shape[1], lda = max(1, a.shape[2])
    cdef int64_t info = 0, lwork = max(1, n * BLOCK), k
    cdef cnp.ndarray work = numpy.empty(lwork, a.dtype)
    if tau.ndim != 2 or tau.shape[0] != batch or tau.dtype != a.dtype or (
            not tau.flags.c_contiguous) or tau.shape[1] > n or n > m:
        raise ValueError("lapack: expected a factor for each Householder vector")
    k = tau.shape[1]
    if m and n:
        with blas.one_blas_thread():
            for i in range(batch):
                run(&m, &n, &k, matrix(a, i), &lda, matrix(tau, i), cnp.PyArray_DATA(work), &lwork,
                    &info)


cdef int check_pivots(const int64_t* pivots, Py_ssize_t n) except -1:
    """Raises: IndexError unless pivots are rows from 1, or two negative ones for a block of two."""
    cdef Py_ssize_t k = 0
    while k < n:
        if 1 <= pivots[k] <= n:
            k += 1
        elif k + 1 < n and -n <= pivots[k] <= -1 and pivots[k + 1] == pivots[k]:
            k += 2
        else:
            raise IndexError(f"ldl_solve: pivot {k} is {pivots[k]}, which is not a row of {n}, nor "
                             "that of a block of two")
    return 0


def sytrs(cnp.ndarray a not None, cnp.ndarray pivots not None, cnp.ndarray b not None,
          bint hermitian):
    """b := the solution of a @ x = b, column-major, from the factors that `sytrf` gives."""
    cdef sytrs_fn run = <sytrs_fn>function_of_both(a, b, HETRS if hermitian else SYTRS)
    cdef Py_ssize_t i, batch = a.shape[0], j
    cdef int64_t n = a.shape[1], k = b.shape[1], info = 0
    if (a.shape[2] != n or b.shape[2] != n or b.shape[0] != batch or pivots.ndim != 2
            or pivots.shape[0] != batch or pivots.shape[1] != n or pivots.dtype != numpy.int64
            or not pivots.flags.c_contiguous):
        raise ValueError("lapack: expected systems of one dtype and size")
    for i in range(batch):
        check_pivots(<const int64_t*>matrix(pivots, i), n)
    if n and k:
        with blas.one_blas_thread():
            for i in range(batch):
                run(b"L", &n, &k, matrix(a, i), &n, <int64_t*>matrix(pivots, i), matrix(b, i), &n,
                    &info)


# ---- work on the results -------------------------------------------------------------------------

cdef enum:
    REAL = 1
    COMPLEX = 2

# The sign of a vector: its first element that is at least this fraction of its largest one is made
# positive (in a complex vector real and positive). The fraction is far from common ratios of
# elements, such as 1, 1/2 or the root of 1/2.
LARGE = 0.6
cdef double large_part = LARGE


cdef inline floating size_of(const floating* x, int parts) noexcept nogil:
    """The squared magnitude of a complex element. Of a real one the magnitude itself, whose square
    may underflow."""
    if parts == REAL:           # without a branch, which would depend on random signs
        return fabsf(x[0]) if floating is float else fabs(x[0])
    return x[0] * x[0] + x[1] * x[1]


cdef inline void find_largest(const floating* x, floating* y, Py_ssize_t m, Py_ssize_t n,
                              Py_ssize_t row, Py_ssize_t column, int parts) noexcept nogil:
    """y[j * parts] := the largest magnitude in column j of x (m, n), which is read contiguously"""
    cdef Py_ssize_t i, j
    cdef floating most, size
    for j in range(n):
        y[j * parts] = 0
    if column < row:
        for i in range(m):
            for j in range(n):
                size = size_of(x + i * row + j * column, parts)
                y[j * parts] = size if size > y[j * parts] else y[j * parts]
        return
    for j in range(n):
        most = 0
        for i in range(m):
            size = size_of(x + i * row + j * column, parts)
            most = size if size > most else most
        y[j * parts] = most


cdef void find_signs(const floating* x, floating* y, Py_ssize_t m, Py_ssize_t n, Py_ssize_t row,
                     Py_ssize_t column, int parts) noexcept nogil:
    """y (n) := the sign by which each column of x (m, n) is to be multiplied"""
    cdef Py_ssize_t i, j
    cdef floating most, size
    cdef const floating* at
    cdef floating large = <floating>(large_part if parts == REAL else large_part ** 2)
    find_largest(x, y, m, n, row, column, parts)
    for j in range(n):
        at, most, i = x + j * column, large * y[j * parts], 0
        while i < m and not size_of(at + i * row, parts) >= most:
            i += 1
        at += (i if i < m else 0) * row
        if parts == REAL:
            y[j] = -1 if m and at[0] < 0 else 1
            continue
        size = sqrt(size_of(at, parts)) if m else 0
        y[2 * j] = at[0] / size if size > 0 else 1
        y[2 * j + 1] = -at[1] / size if size > 0 else 0


def signs(cnp.ndarray vectors not None):
    """For each column of a batch (B, M, N) the factor that gives it its sign: 1 or -1, or a complex
    number of magnitude 1. Shape (B, 1, N)."""
    cdef int kind = kind_of(vectors), parts = REAL if kind < 2 else COMPLEX
    if vectors.ndim != 3 or kind < 0 or not vectors.flags.aligned:
        raise ValueError("lapack: expected a batch of matrices of a floating or complex dtype")
    cdef Py_ssize_t b, m = vectors.shape[1], n = vectors.shape[2], size = vectors.itemsize // parts
    cdef Py_ssize_t row = vectors.strides[1] // size, column = vectors.strides[2] // size
    cdef cnp.ndarray out = numpy.empty((vectors.shape[0], 1, n), vectors.dtype)
    for b in range(vectors.shape[0]):
        if kind % 2 == 0:
            find_signs(<const float*>matrix(vectors, b), <float*>matrix(out, b), m, n, row, column,
                       parts)
        else:
            find_signs(<const double*>matrix(vectors, b), <double*>matrix(out, b), m, n, row,
                       column, parts)
    return out


cdef bint are_finite(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef floating[4] wrong = [0, 0, 0, 0]            # four independent chains of additions
    cdef Py_ssize_t i
    for i in range(n // 4):
        wrong[0] += x[4 * i] - x[4 * i]              # 0, or NaN
        wrong[1] += x[4 * i + 1] - x[4 * i + 1]
        wrong[2] += x[4 * i + 2] - x[4 * i + 2]
        wrong[3] += x[4 * i + 3] - x[4 * i + 3]
    for i in range(n - n % 4, n):
        wrong[0] += x[i] - x[i]
    return wrong[0] + wrong[1] + (wrong[2] + wrong[3]) == 0


def all_finite(cnp.ndarray a not None):
    """Whether all elements of a contiguous array of real or complex numbers are finite."""
    cdef int kind = kind_of(a)
    cdef Py_ssize_t n = a.size * (1 if kind < 2 else 2)
    if kind < 0 or not a.flags.aligned or not (a.flags.c_contiguous or a.flags.f_contiguous):
        return bool(numpy.isfinite(a).all())
    if kind % 2 == 0:
        return are_finite(<const float*>cnp.PyArray_DATA(a), n)
    return are_finite(<const double*>cnp.PyArray_DATA(a), n)


ctypedef struct Exchanges:
    const int64_t* rows          # (B, k), from 1
    int64_t* order               # n of them
    int32_t* y                   # (B, n, n), zeroed
    Py_ssize_t k, n
    bint failed


cdef void exchange_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Exchanges* e = <Exchanges*>context
    cdef Py_ssize_t b, j
    cdef int64_t other
    for b in range(begin, end):
        for j in range(e.n):
            e.order[j] = j
        for j in range(e.k):
            other = e.rows[b * e.k + j]
            if not 1 <= other <= e.n:
                e.failed = True
                return
            e.order[j], e.order[other - 1] = e.order[other - 1], e.order[j]
        for j in range(e.n):
            e.y[(b * e.n + e.order[j]) * e.n + j] = 1


def permutation_matrices(Tensor pivots not None, Py_ssize_t n):
    """The int32 permutation matrices (*, n, n) of pivots (*, K), counted from 1.

    Raises: RuntimeError for pivots out of range, and for more than n."""
    cdef Exchanges e
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d, last = pivots.ndim_ - 1
    if last < 0:
        raise RuntimeError("lu: expected pivots of at least 1 dim, got 0 dims")
    if pivots.dims[last] > n:
        raise RuntimeError(f"lu: expected at most {n} pivots, got {pivots.dims[last]}")
    cdef Tensor places = packed(cast(pivots, INT64)), order = new_tensor(INT64, 1, &n), out
    for d in range(last):
        dims[d] = pivots.dims[d]
    dims[last] = dims[last + 1] = n
    out = new_tensor(INT32, last + 2, dims)
    zero(out)
    e.rows, e.order = <const int64_t*>places.data_pointer, <int64_t*>order.data_pointer
    e.y, e.k, e.n, e.failed = <int32_t*>out.data_pointer, pivots.dims[last], n, False
    if out.numel_:
        run_alone(exchange_all, &e, e.y, out.numel_ // (n * n))
    if e.failed:
        raise RuntimeError(f"lu: pivots must be integers from 1 to {n}")
    return out


find_functions()
