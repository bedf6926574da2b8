"""Gaussian elimination with partial pivoting, block by block, and systems solved by it.

A block of at most TRIANGLE columns is eliminated at a time, in column-major memory (`_kernels/
triangles.h`). The columns to its right are updated by panels (`panel_products.pyx`), in strips that
threads share. Sums are cut into blocks whose bounds follow from the number of rows alone, so that
the bits of an element depend neither on the threads nor on the other matrices of a batch.
"""

from libc.math cimport NAN, fabs, frexp, hypot, ldexp, log
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport FLOAT32, INT32, N_DTYPES
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.complex_blocks cimport find_blocks
from tensorlib._core.products.panel_products cimport add_panels, pack_signed, parts, real_of, turn
from tensorlib._core.products.triangles cimport (
    COLUMNS, RELEASE_GIL, SYSTEM_BYTES, TRIANGLE, Systems, fill, grain, side, size_of,
    solve_columns, substitute, takes,
)
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport packed_copy

cdef enum:
    BEHIND = 2 * 16          # elements: the kernel accesses up to two vectors past a row

ctypedef Py_ssize_t (*eliminate_fn)(char* p, Py_ssize_t p_row, Py_ssize_t n, Py_ssize_t m,
                                    Py_ssize_t* places) noexcept nogil

cdef eliminate_fn eliminates[N_DTYPES]
find_by_dtype("triangles", "eliminate", <void**>eliminates)
find_blocks("eliminate", <void**>eliminates)

ctypedef struct Work:
    int dtype
    char* x                  # matrices (n, n): L and U
    char* y                  # right-hand sides (n, m), or NULL
    int32_t* pivots          # from 1, or NULL
    int32_t* info
    Py_ssize_t n, m
    bint found, failed       # whether an info is not 0, and whether there was no memory

ctypedef struct Block:       # columns [j, j + cols) of a matrix
    int dtype
    char* x
    char* left               # L below the block's square on the diagonal, row-major
    Py_ssize_t n, j, cols
    Py_ssize_t[TRIANGLE] places


cdef inline Py_ssize_t width_of(int dtype, Py_ssize_t n) noexcept nogil:
    """How many columns are eliminated at a time. The kernel is slower than the panels, but these
    want many columns for many rows: 256 x 256 of float32 takes 270 us by 16 and 350 by 64."""
    return 16 if n <= 256 else 32 if n <= 512 else side(dtype, TRIANGLE)


cdef void exchange(Block* b, char* x, Py_ssize_t row, Py_ssize_t cols) noexcept nogil:
    """Exchanges rows of x (`cols` elements, `row` bytes apart) by the pivots of a block."""
    cdef char[512] kept
    cdef Py_ssize_t c, done, part, nbytes = cols * size_of(b.dtype)
    cdef char* first
    cdef char* second
    for c in range(b.cols):
        if b.places[c] == c:
            continue
        first, second, done = x + (b.j + c) * row, x + (b.j + b.places[c]) * row, 0
        while done < nbytes:
            part = min(<Py_ssize_t>512, nbytes - done)
            memcpy(kept, first + done, part)
            memcpy(first + done, second + done, part)
            memcpy(second + done, kept, part)
            done += part


cdef void eliminate_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Updates strips of the columns to the right of a block: exchanges rows, solves for U in the
    rows of the block, and subtracts L @ U below."""
    cdef Block* b = <Block*>context
    cdef char[TRIANGLE * TRIANGLE * 8] panels
    cdef Py_ssize_t strip, cols, size = size_of(b.dtype), row = b.n * size, below = b.j + b.cols
    cdef Py_ssize_t wide = side(b.dtype, TRIANGLE)
    cdef char* at
    cdef char* here
    for strip in range(begin, end):
        cols = min(wide, b.n - below - strip * wide)
        at = b.x + (below + strip * wide) * size
        here = at + b.j * row
        exchange(b, at, row, cols)
        substitute(b.dtype, b.x + b.j * (b.n + 1) * size, b.n, here, b.n, b.cols, cols)
        pack_signed(b.dtype, here, b.n, 1, False, True, panels, b.cols, cols)
        add_panels(b.dtype, b.left, TRIANGLE, 1, panels, at + below * row, b.n, b.n - below,
                   b.cols, cols)


cdef Py_ssize_t factor_matrix(Block* b, char* y, Py_ssize_t m, int32_t* pivots,
                              char* scratch) noexcept nogil:
    """x (n, n) := L and U in one matrix; exchanges the rows of y (n, m), too. Returns the place,
    from 1, of the first zero on the diagonal of U, or 0."""
    cdef Py_ssize_t c, rows, found, info = 0, size = size_of(b.dtype), row = b.n * size
    cdef Py_ssize_t turned_row = (b.n + BEHIND) * parts(b.dtype), width = width_of(b.dtype, b.n)
    cdef Py_ssize_t wide = side(b.dtype, TRIANGLE)
    cdef char* at
    b.j, b.left = 0, scratch + TRIANGLE * (b.n + BEHIND) * size
    while b.j < b.n:
        b.cols, rows = min(width, b.n - b.j), b.n - b.j
        at = b.x + b.j * (b.n + 1) * size
        turn(b.dtype, at, b.n, scratch, turned_row, rows, b.cols)
        found = eliminates[b.dtype](scratch, turned_row, b.cols, rows, b.places)
        info = b.j + found if found and not info else info
        turn(b.dtype, scratch, turned_row, at, b.n, b.cols, rows)
        turn(b.dtype, scratch + b.cols * size, turned_row, b.left, TRIANGLE, b.cols, rows - b.cols)
        exchange(b, b.x, row, b.j)
        exchange(b, y, m * size, m)
        for c in range(b.cols if pivots != NULL else 0):
            pivots[b.j + c] = <int32_t>(b.j + b.places[c] + 1)
        if rows > b.cols:
            parallel_for(eliminate_strips, b, 1 + (rows - b.cols - 1) // wide, 1)
        b.j += b.cols
    return info


cdef void solve_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """x := inverse(U) @ inverse(L) @ x for strips of columns"""
    cdef Systems* s = <Systems*>context
    cdef Systems lower = s[0]
    cdef char* scratch = take_scratch(SYSTEM_BYTES)
    cdef Py_ssize_t strip, wide = side(s.dtype, COLUMNS)
    cdef char* x
    if scratch == NULL:
        s.failed = True
        return
    lower.upper, lower.unit = False, True
    for strip in range(begin, end):
        x = s.x + strip * wide * size_of(s.dtype)
        solve_columns(&lower, s.a, x, min(wide, s.m - strip * wide), scratch)
        solve_columns(s, s.a, x, min(wide, s.m - strip * wide), scratch)
    give_scratch(scratch, SYSTEM_BYTES)


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef Py_ssize_t i, size = size_of(w.dtype)
    cdef Py_ssize_t nbytes = TRIANGLE * (2 * w.n + BEHIND) * size
    cdef char* scratch = take_scratch(nbytes)
    cdef Block b
    cdef Systems s
    if scratch == NULL:
        w.failed = True
        return
    b.dtype, b.n = w.dtype, w.n
    s.dtype, s.n, s.m, s.a_row, s.a_col = w.dtype, w.n, w.m, w.n, 1
    s.upper, s.unit, s.failed = True, False, False
    for i in range(begin, end):
        b.x, s.x = w.x + i * w.n * w.n * size, w.y + i * w.n * w.m * size
        s.a = b.x
        w.info[i] = <int32_t>factor_matrix(
            &b, s.x, w.m, w.pivots + i * w.n if w.pivots != NULL else NULL, scratch)
        if w.info[i]:
            w.found = True
            fill(w.dtype, s.x, w.n * w.m, NAN)
        elif w.m > 0:
            parallel_for(solve_strips, &s, 1 + (w.m - 1) // side(w.dtype, COLUMNS), 1)
    w.failed = w.failed or s.failed
    give_scratch(scratch, nbytes)


cdef Tensor run(str name, Tensor a, Tensor y, Tensor pivots, Tensor info, bint* found):
    """L and U of a copy of `a`, in one matrix; y := the solution of a @ x = y, unless y is None."""
    cdef Work w
    cdef Tensor x = packed_copy(a, a.type)
    w.dtype, w.x, w.n, w.m, w.y = a.type, x.data_pointer, a.dims[a.ndim_ - 1], 0, x.data_pointer
    w.pivots = <int32_t*>pivots.data_pointer if pivots is not None else NULL
    w.info, w.found, w.failed = <int32_t*>info.data_pointer, False, False
    if y is not None:
        w.y, w.m = y.data_pointer, y.dims[y.ndim_ - 1]
    share(run_range, &w, w.info, info.numel_, grain(w.n * w.n, w.n),
          times(a.numel_, w.n + w.m) < RELEASE_GIL)
    if w.failed:
        raise MemoryError(f"{name}: no memory for a block")
    found[0] = w.found
    return x


def solve(Tensor a not None, Tensor b not None):
    """The solutions of a @ x = b, NaN for singular matrices; for each matrix the place of the first
    zero on the diagonal of U, or 0; and whether any has one. None for other dtypes."""
    cdef Tensor x, info
    cdef bint found
    cdef int d
    if not takes(a) or b.type != a.type or b.ndim_ != a.ndim_:
        return None
    elements("linalg.solve", a)
    elements("linalg.solve", b)
    for d in range(a.ndim_ - 1):
        if a.dims[d] != b.dims[d]:
            return None
    x, info = packed_copy(b, b.type), new_tensor(INT32, a.ndim_ - 2, a.dims)
    run("linalg.solve", a, x, None, info, &found)
    return x, info, found


def factors(Tensor a not None):
    """L and U in one matrix, the pivots, from 1, and the place of the first zero on the diagonal of
    U, or 0. None for other dtypes, and for those that are not square."""
    cdef Tensor x, pivots, info
    cdef bint found
    if not takes(a):
        return None
    elements("linalg.lu_factor", a)
    pivots = new_tensor(INT32, a.ndim_ - 1, a.dims)
    info = new_tensor(INT32, a.ndim_ - 2, a.dims)
    x = run("linalg.lu_factor", a, None, pivots, info, &found)
    return x, pivots, info


# ---- determinants --------------------------------------------------------------------------------

ctypedef struct Diagonals:
    const char* x            # L and U of matrices (n, n)
    const int32_t* pivots
    char* sign               # or determinants, where there are no logarithms
    char* size               # their logarithms, or NULL
    Py_ssize_t n
    int dtype


cdef void log_determinant(const floating* x, Py_ssize_t each, const int32_t* pivots, Py_ssize_t n,
                          floating* sign, floating* size) noexcept nogil:
    """The sign, of `each` parts, or 0, and the logarithm of the magnitude of a determinant, from L
    and U."""
    cdef Py_ssize_t i
    cdef double total = 0, re = 1, im = 0, first, most, at[2]
    at[1] = 0
    for i in range(n):
        at[0] = x[each * i * (n + 1)]
        if each > 1:
            at[1] = x[each * i * (n + 1) + 1]
        most = fabs(at[0]) if each == 1 else hypot(at[0], at[1])
        total += log(most)
        if each == 1:
            re *= (at[0] > 0) - (at[0] < 0)
        elif most > 0:
            first = (re * at[0] - im * at[1]) / most
            im = (re * at[1] + im * at[0]) / most
            re = first
        else:
            re = im = most                           # 0, or NaN
        if pivots[i] != i + 1:
            re, im = -re, -im
    sign[0] = <floating>re
    if each > 1:
        sign[1] = <floating>im
    size[0] = <floating>total


cdef void determinant(const floating* x, Py_ssize_t each, const int32_t* pivots, Py_ssize_t n,
                      floating* y) noexcept nogil:
    """A determinant, from L and U: a product in double whose exponent is kept apart."""
    cdef Py_ssize_t i
    cdef double re = 1, im = 0, first, at[2]
    cdef int exponent = 0, more
    at[1] = 0
    for i in range(n):
        at[0] = x[each * i * (n + 1)]
        if each > 1:
            at[1] = x[each * i * (n + 1) + 1]
            first = re * at[0] - im * at[1]
            im = re * at[1] + im * at[0]
            re = first
            frexp(max(fabs(re), fabs(im)), &more)
            re, im = ldexp(re, -more), ldexp(im, -more)
        else:
            re = frexp(re * at[0], &more)
        exponent += more
        if pivots[i] != i + 1:
            re, im = -re, -im
    y[0] = <floating>ldexp(re, exponent)
    if each > 1:
        y[1] = <floating>ldexp(im, exponent)


cdef void run_of(Diagonals* f, const floating* x, floating* sign, floating* size,
                 Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t each = parts(f.dtype)
    if size == NULL:
        determinant(x + each * i * f.n * f.n, each, f.pivots + i * f.n, f.n, sign + each * i)
    else:
        log_determinant(x + each * i * f.n * f.n, each, f.pivots + i * f.n, f.n, sign + each * i,
                        size + i)


cdef void run_diagonals(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Diagonals* f = <Diagonals*>context
    cdef Py_ssize_t i
    for i in range(begin, end):
        if real_of(f.dtype) == FLOAT32:
            run_of(f, <const float*>f.x, <float*>f.sign, <float*>f.size, i)
        else:
            run_of(f, <const double*>f.x, <double*>f.sign, <double*>f.size, i)


def determinants(Tensor a not None):
    """The determinants; None for other dtypes."""
    found = factors(a)
    return None if found is None else of_diagonals(found[0], found[1], False)


def log_determinants(Tensor a not None, Tensor pivots not None):
    """The signs and log-magnitudes of determinants, from L and U in one matrix and the pivots."""
    return of_diagonals(a, pivots, True)


cdef object of_diagonals(Tensor a, Tensor pivots, bint logarithms):
    cdef Diagonals f
    cdef Tensor sign, size = None
    cdef int d
    if not (takes(a) and a.packed and pivots.packed and pivots.type == INT32
            and pivots.ndim_ == a.ndim_ - 1):
        raise ValueError("linalg.slogdet: expected L and U of matrices and their pivots")
    for d in range(pivots.ndim_):
        if pivots.dims[d] != a.dims[d]:
            raise ValueError("linalg.slogdet: expected a pivot for each row")
    elements("linalg.slogdet", a)
    elements("linalg.slogdet", pivots)
    sign = new_tensor(a.type, a.ndim_ - 2, a.dims)
    if logarithms:
        size = new_tensor(real_of(a.type), a.ndim_ - 2, a.dims)
    f.x, f.pivots, f.dtype = a.data_pointer, <const int32_t*>pivots.data_pointer, a.type
    f.sign, f.n = sign.data_pointer, a.dims[a.ndim_ - 1]
    f.size = size.data_pointer if logarithms else NULL
    share(run_diagonals, &f, f.sign, sign.numel_, 1 + RELEASE_GIL // (16 * (1 + f.n)),
          times(a.numel_, 16) < RELEASE_GIL)
    return (sign, size) if logarithms else sign
