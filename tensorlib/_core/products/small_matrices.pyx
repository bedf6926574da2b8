"""Decompositions of batches of small matrices by the library's own kernels.

The size and the dtype of a matrix alone decide whether a kernel is used, so that a matrix gives the
same bits alone and in a batch.
"""

from libc.stdint cimport int32_t

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64, INT32, N_DTYPES
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.products.panel_products cimport parts, real_of
from tensorlib._core.products.small_complex cimport eliminate_all, factor_all, is_small_complex
from tensorlib._core.products.symmetric cimport is_rotated, rotate_all
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport packed

cdef enum:
    MOST = 16                # rows; as in the kernels
    CHUNK = 64               # matrices of a piece of work: a multiple of the lanes of any level
    RELEASE_GIL = 1 << 15    # multiplications from which on the GIL is released

ctypedef void (*run_fn)(const void* a, const void* b, void* x, void* y, void* z, Py_ssize_t count,
                        Py_ssize_t n, Py_ssize_t k) noexcept nogil

cdef enum Function:
    CHOLESKY, SOLVE, INVERSE, DETERMINANT, EIGEN, SINGULAR, LU, QR, FUNCTIONS

cdef run_fn functions[FUNCTIONS][N_DTYPES]
for _which, _name in enumerate(("cholesky", "solve", "inverse", "determinant", "eigen", "singular",
                                "lu", "qr")):
    find_by_dtype("small_matrices", _name, <void**>functions[<int>_which])

ctypedef struct Work:
    run_fn run
    const char* a
    const char* b
    char* x
    char* y
    char* z
    Py_ssize_t a_step, b_step, x_step, y_step, z_step     # bytes from one matrix to the next
    Py_ssize_t n, k


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    w.run(w.a + begin * w.a_step, w.b + begin * w.b_step if w.b != NULL else NULL,
          w.x + begin * w.x_step if w.x != NULL else NULL,
          w.y + begin * w.y_step if w.y != NULL else NULL,
          w.z + begin * w.z_step if w.z != NULL else NULL, end - begin, w.n, w.k)


cdef inline bint takes(Tensor x) noexcept:
    """Whether the kernels take square matrices like these."""
    return ((x.type == FLOAT32 or x.type == FLOAT64) and x.ndim_ >= 2
            and x.dims[x.ndim_ - 1] == x.dims[x.ndim_ - 2] and 1 <= x.dims[x.ndim_ - 1] <= MOST)


cdef int run(Function which, Tensor a, Tensor b, Tensor x, Tensor y, Tensor z) except -1:
    """Runs a kernel on packed tensors; `a` has the matrices in its last two dims."""
    cdef Work w
    cdef Py_ssize_t count, size = 4 if a.type == FLOAT32 else 8
    if a.numel_ == 0:
        return 0
    w.run = functions[<int>which][a.type]
    w.n = a.dims[a.ndim_ - 1]
    count = a.numel_ // (w.n * w.n)
    w.k = b.dims[b.ndim_ - 1] if b is not None else 0
    w.a, w.a_step = a.data_pointer, w.n * w.n * size
    w.b, w.b_step = b.data_pointer if b is not None else NULL, w.n * w.k * size
    w.x = x.data_pointer if x is not None else NULL
    w.y = y.data_pointer if y is not None else NULL
    w.z = z.data_pointer if z is not None else NULL
    w.x_step = x.numel_ // count * size if x is not None else 0
    w.y_step = y.numel_ // count * size if y is not None else 0
    w.z_step = z.numel_ // count * size if z is not None else 0
    return share(run_range, &w, w.a, count, CHUNK, times(a.numel_, w.n) < RELEASE_GIL)


cdef Tensor like(Tensor a, int dropped):
    """A new tensor with the dtype of `a`, and its shape without the last `dropped` dims."""
    return new_tensor(a.type, a.ndim_ - dropped, a.dims)


def small(Tensor a not None):
    """Whether there are kernels for square matrices like these."""
    return takes(a)


def cholesky(Tensor a not None):
    """The lower factors; NaN for matrices that are not positive definite. None for larger ones.
    """
    cdef bint is_complex = is_small_complex(a)
    if not (is_complex or takes(a)):
        return None
    cdef Tensor x = like(a, 0)
    if is_complex:
        factor_all(packed(a), x)
    else:
        run(CHOLESKY, packed(a), None, x, None, None)
    return x


def solve(Tensor a not None, Tensor b not None):
    """The solutions of a @ x = b, with one b for each a; NaN for singular matrices.

    None for larger matrices.
    """
    cdef int d
    cdef bint is_complex = is_small_complex(a)
    if not (is_complex or takes(a)) or b.ndim_ != a.ndim_ or b.type != a.type:
        return None
    if not 1 <= b.dims[b.ndim_ - 1] <= MOST:
        return None
    for d in range(a.ndim_ - 1):
        if a.dims[d] != b.dims[d]:
            return None
    cdef Tensor x = like(b, 0)
    if is_complex:
        eliminate_all(packed(a), packed(b), x, None)
    else:
        run(SOLVE, packed(a), packed(b), x, None, None)
    return x


def inverse(Tensor a not None):
    """The inverses; NaN for singular matrices. None for larger ones."""
    cdef bint is_complex = is_small_complex(a)
    if not (is_complex or takes(a)):
        return None
    cdef Tensor x = like(a, 0)
    if is_complex:
        eliminate_all(packed(a), None, x, None)
    else:
        run(INVERSE, packed(a), None, x, None, None)
    return x


def determinant(Tensor a not None):
    """The determinants. None for larger matrices."""
    cdef bint is_complex = is_small_complex(a)
    if not (is_complex or takes(a)):
        return None
    cdef Tensor x = like(a, 2)
    if is_complex:
        eliminate_all(packed(a), None, None, x)
    else:
        run(DETERMINANT, packed(a), None, x, None, None)
    return x


def lu(Tensor a not None):
    """L and U in one matrix, the pivots, from 1, and the place of the first zero on the diagonal of
    U, or 0. None for larger matrices."""
    if not takes(a):
        return None
    cdef Tensor x = like(a, 0), y = like(a, 1)
    cdef Tensor pivots = new_tensor(INT32, a.ndim_ - 1, a.dims)
    cdef Tensor info = new_tensor(INT32, a.ndim_ - 2, a.dims)
    cdef Factors factors
    run(LU, packed(a), None, x, y, None)
    factors.dtype, factors.n = a.type, a.dims[a.ndim_ - 1]
    factors.x, factors.rows = x.data_pointer, y.data_pointer
    factors.pivots, factors.info = <int32_t*>pivots.data_pointer, <int32_t*>info.data_pointer
    run_alone(read_factors, &factors, factors.x, info.numel_)
    return x, pivots, info


cdef struct Factors:
    const char* x
    const char* rows
    int32_t* pivots
    int32_t* info
    Py_ssize_t n
    int dtype


cdef void read_factors(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Factors* of = <Factors*>context
    if of.dtype == FLOAT32:
        read_lu(<const float*>of.x, <const float*>of.rows, of.pivots, of.info, end, of.n)
    else:
        read_lu(<const double*>of.x, <const double*>of.rows, of.pivots, of.info, end, of.n)


cdef inline void read_lu(const floating* x, const floating* rows, int32_t* pivots, int32_t* info,
                         Py_ssize_t count, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(count):
        info[i] = 0
        for j in range(n - 1, -1, -1):
            pivots[i * n + j] = <int32_t>rows[i * n + j] + 1
            if x[(i * n + j) * n + j] == 0:
                info[i] = <int32_t>(j + 1)


def qr(Tensor a not None):
    """Q and R. None for larger matrices."""
    if not takes(a):
        return None
    cdef Tensor x = like(a, 0), y = like(a, 0)
    run(QR, packed(a), None, x, y, None)
    return x, y


def reflections(Tensor a not None):
    """R, with the vectors of the reflections below it, transposed; and their factors. None for
    larger matrices."""
    if not takes(a):
        return None
    cdef Tensor x = like(a, 0), z = like(a, 1)
    run(QR, packed(a), None, x, None, z)
    return x, z


def eigen(Tensor a not None, bint vectors):
    """Eigenvalues and eigenvectors (or None), from the lower triangle; NaN for matrices that are
    not finite.

    None for matrices at which LAPACK is faster.
    """
    cdef bint is_small = takes(a)
    if not (is_small or is_rotated(a)):
        return None
    cdef Tensor x = like(a, 1), y = like(a, 0) if vectors else None
    if is_small:
        run(EIGEN, packed(a), None, x, y, None)
    else:
        rotate_all(packed(a), x, y)
    return x, y


def singular(Tensor a not None, bint vectors):
    """U, the singular values, and V transposed (None instead of U and V if not asked for). The
    values are NaN for matrices that are not finite, and, with vectors, for singular ones. None for
    larger matrices."""
    if not takes(a):
        return None
    cdef Tensor x = like(a, 0) if vectors else None
    cdef Tensor y = like(a, 1), z = like(a, 0) if vectors else None
    run(SINGULAR, packed(a), None, x, y, z)
    return x, y, z


cdef inline bint any_nan(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int found = 0
    for i in range(n):
        found |= x[i] != x[i]
    return found


def has_nan(Tensor x not None):
    """Whether an element of a float32, float64 or complex tensor is NaN; of complex ones without
    memory True, so that what goes on to LAPACK is not planned as if it did not."""
    cdef Tensor y = packed(x)
    cdef Look look
    look.data, look.dtype = y.data_pointer, real_of(y.type)
    look.found = parts(y.type) > 1
    if look.dtype != FLOAT32 and look.dtype != FLOAT64:
        raise TypeError("has_nan: takes float32, float64 and complex numbers")
    run_alone(look_for_nan, &look, look.data, y.numel_ * parts(y.type))
    return look.found


cdef struct Look:
    const char* data
    int dtype
    bint found


cdef void look_for_nan(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Look* look = <Look*>context
    if look.dtype == FLOAT32:
        look.found = any_nan(<const float*>look.data, end)
    else:
        look.found = any_nan(<const double*>look.data, end)
