"""Cholesky factors of larger matrices and systems with triangular ones, block by block.

Kernels (`_kernels/products/triangles.h`) do the work within a block of TRIANGLE rows, and panels
(`panel_products.pyx`) the rest: 512 x 512 of float32 takes 0.9 ms, and 3.3 by OpenBLAS. Sums are
cut into blocks whose bounds follow from the number of rows alone, so that the bits of an element
depend neither on the threads nor on the other matrices of a batch.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport FLOAT32, INT32, N_DTYPES
from tensorlib._core.base.kernels cimport find_by_dtype, find_function
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.products.complex_blocks cimport conjugate, find_blocks
from tensorlib._core.products.panel_products cimport (
    add_panels, pack_signed, parts, real_of, turn,
)
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport packed, packed_copy

cdef enum:
    CORNER_ROW = TRIANGLE + 2 * 16  # elements: kernels access two vectors past a row
    DEPTH = 256                     # rows that are packed at once
    STRIP = 64                      # rows of a piece of work at least

ctypedef void (*substitute_fn)(const char* l, Py_ssize_t l_row, Py_ssize_t l_col, char* t,
                               Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m,
                               int unit) noexcept nogil
ctypedef void (*squares_fn)(const char* t, Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m,
                            double* d) noexcept nogil
ctypedef Py_ssize_t (*factor_fn)(char* u, Py_ssize_t u_row, Py_ssize_t n,
                                 double* d) noexcept nogil

cdef substitute_fn substitutes[N_DTYPES]
cdef factor_fn factors[N_DTYPES]
cdef squares_fn squares = <squares_fn>find_function("triangles", "squares", "float32")
find_by_dtype("triangles", "substitute", <void**>substitutes)
find_by_dtype("triangles", "factor", <void**>factors)
find_blocks("substitute", <void**>substitutes)
find_blocks("factor", <void**>factors)


cdef void substitute(int dtype, const char* l, Py_ssize_t l_row, char* t, Py_ssize_t t_row,
                     Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    """t (n, m) := inverse(l) @ t for a lower triangle of n rows with ones on its diagonal"""
    substitutes[dtype](l, l_row, 1, t, t_row, n, m, True)


cdef void fill(int dtype, char* x, Py_ssize_t n, double value) noexcept nogil:
    """x (n) := value, in both parts of complex numbers"""
    cdef Py_ssize_t i
    for i in range(n * parts(dtype)):
        if real_of(dtype) == FLOAT32:
            (<float*>x)[i] = <float>value
        else:
            (<double*>x)[i] = value


cdef void complete(int dtype, char* y, Py_ssize_t n, Py_ssize_t first,
                   Py_ssize_t rows) noexcept nogil:
    """Copies rows [first, first + rows) of the lower half of a Hermitian y (n, n) to the upper
    half."""
    cdef Py_ssize_t i, size = size_of(dtype)
    cdef char* lower = y + first * n * size
    turn(dtype, lower, n, y + first * size, n, rows, first)
    for i in range(first):
        conjugate(dtype, y + (i * n + first) * size, rows)
    mirror(dtype, lower + first * size, n, rows)


cdef void mirror(int dtype, char* y, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    """Elements of y (n, n) above the diagonal := those below it, as a BLAS may round the two
    differently; the diagonal becomes real"""
    cdef Py_ssize_t i, j, size = size_of(dtype)
    for i in range(n):
        for j in range(i):
            memcpy(y + (j * row + i) * size, y + (i * row + j) * size, size)
            conjugate(dtype, y + (j * row + i) * size, 1)
        if parts(dtype) > 1:
            memset(y + i * (row + 1) * size + size // 2, 0, size // 2)


# ---- Cholesky factors ----------------------------------------------------------------------------

ctypedef struct Column:      # of blocks: columns [j, j + cols) of a matrix, from row j on
    int dtype
    char* x
    Py_ssize_t n, j, cols
    char* panels             # -1 times the rows [l, l + depth) of what is subtracted
    Py_ssize_t l, depth
    char* corner             # the triangle on the diagonal, transposed
    double* rest             # the rest of the diagonal; NULL for float64

ctypedef struct Factors:
    int dtype
    char* x
    int32_t* info
    Py_ssize_t n
    bint failed              # for want of memory
    bint found               # whether some info is not 0


cdef void subtract_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """x[rows, j:] -= x[rows, l:] @ x[j:, l:].mH for strips of rows"""
    cdef Column* c = <Column*>context
    cdef Py_ssize_t size = size_of(c.dtype), row = c.j + begin * STRIP
    cdef char* at = c.x + row * c.n * size
    add_panels(c.dtype, at + c.l * size, c.n, 1, c.panels, at + c.j * size, c.n,
               min(c.j + end * STRIP, c.n) - row, c.depth, c.cols)


cdef void divide_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """x[rows, j:] := x[rows, j:] @ inverse(corner) for strips of rows below the corner"""
    cdef Column* c = <Column*>context
    cdef char[TRIANGLE * STRIP * 8] turned       # of complex numbers half as many rows
    cdef Py_ssize_t strip, rows, row, size = size_of(c.dtype)
    cdef char* at
    for strip in range(begin, end):
        row = c.j + c.cols + strip * STRIP
        rows = min(<Py_ssize_t>STRIP, c.n - row)
        at = c.x + (row * c.n + c.j) * size
        turn(c.dtype, at, c.n, turned, STRIP, rows, c.cols)
        substitutes[c.dtype](c.corner, 1, CORNER_ROW, turned, STRIP, c.cols, rows, False)
        turn(c.dtype, turned, STRIP, at, c.n, c.cols, rows)
        if c.rest != NULL:
            squares(turned, STRIP, c.cols, rows, c.rest + row)


cdef Py_ssize_t factor_corner(Column* c) noexcept nogil:
    """Factors the triangle of a column of blocks, with zeros above it. Returns the order of the
    first minor that is not positive, or 0."""
    cdef Py_ssize_t i, info, size = size_of(c.dtype)
    cdef char* at = c.x + (c.j * c.n + c.j) * size
    turn(c.dtype, at, c.n, c.corner, CORNER_ROW, c.cols, c.cols)
    info = factors[c.dtype](c.corner, CORNER_ROW, c.cols,
                            NULL if c.rest == NULL else c.rest + c.j)
    if info:
        return c.j + info
    turn(c.dtype, c.corner, CORNER_ROW, at, c.n, c.cols, c.cols)
    conjugate(c.dtype, c.corner, CORNER_ROW * c.cols)
    for i in range(c.cols):
        memset(at + (i * c.n + i + 1) * size, 0, (c.n - c.j - i - 1) * size)
    return 0


cdef Py_ssize_t factor_matrix(int dtype, char* x, Py_ssize_t n, char* scratch) noexcept nogil:
    """The lower triangle of x (n, n) := its factor. Returns the order of the first minor that is
    not positive, or 0."""
    cdef Column c
    cdef Py_ssize_t i, info, size = size_of(dtype)
    c.dtype, c.x, c.n, c.j, c.rest = dtype, x, n, 0, NULL
    c.corner, c.panels = scratch, scratch + TRIANGLE * CORNER_ROW * 8
    if dtype == FLOAT32:
        c.rest = <double*>(c.panels + TRIANGLE * DEPTH * 8)
        for i in range(n):
            c.rest[i] = (<float*>x)[i * n + i]
    while c.j < n:
        c.cols, c.l = min(side(dtype, TRIANGLE), n - c.j), 0
        while c.l < c.j:
            c.depth = min(side(dtype, DEPTH), c.j - c.l)
            pack_signed(dtype, x + (c.j * n + c.l) * size, 1, n, True, True, c.panels, c.depth,
                        c.cols)
            parallel_for(subtract_strips, &c, 1 + (n - c.j - 1) // STRIP, 1)
            c.l += c.depth
        info = factor_corner(&c)
        if info:
            return info
        if c.j + c.cols < n:
            parallel_for(divide_strips, &c, 1 + (n - c.j - c.cols - 1) // STRIP, 1)
        c.j += c.cols
    return 0


cdef void factor_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Factors* f = <Factors*>context
    cdef Py_ssize_t i, each = f.n * f.n, nbytes = TRIANGLE * (CORNER_ROW + DEPTH) * 8 + f.n * 8
    cdef char* scratch = take_scratch(nbytes)
    cdef char* x
    if scratch == NULL:
        f.failed = True
        return
    for i in range(begin, end):
        x = f.x + i * each * size_of(f.dtype)
        f.info[i] = <int32_t>factor_matrix(f.dtype, x, f.n, scratch)
        if f.info[i]:
            f.found = True
            fill(f.dtype, x, each, NAN)
    give_scratch(scratch, nbytes)


def cholesky(Tensor a not None):
    """The lower factors, NaN where there is none; for each matrix the order of the first minor that
    is not positive, or 0; and whether any has one. None for other dtypes."""
    if not takes(a):
        return None
    elements("linalg.cholesky", a)
    cdef Factors f
    cdef Tensor x = packed_copy(a, a.type), info = new_tensor(INT32, a.ndim_ - 2, a.dims)
    f.dtype, f.x, f.n, f.failed = a.type, x.data_pointer, a.dims[a.ndim_ - 1], False
    f.info, f.found = <int32_t*>info.data_pointer, False
    share(factor_range, &f, f.info, info.numel_, grain(f.n * f.n, f.n),
          times(a.numel_, f.n) < RELEASE_GIL)
    if f.failed:
        raise MemoryError("linalg.cholesky: no memory for a block")
    return x, info, f.found


# ---- triangular systems --------------------------------------------------------------------------

cdef void solve_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Systems* s = <Systems*>context
    cdef Py_ssize_t i, col, size = size_of(s.dtype), wide = side(s.dtype, COLUMNS)
    cdef char* scratch = take_scratch(SYSTEM_BYTES)
    if scratch == NULL:
        s.failed = True
        return
    for i in range(begin, end):
        col = i % s.strips * wide
        solve_columns(s, s.a + i // s.strips * s.n * s.n * size,
                      s.x + (i // s.strips * s.n * s.m + col) * size, min(wide, s.m - col), scratch)
    give_scratch(scratch, SYSTEM_BYTES)


cdef void solve_columns(Systems* s, const char* a, char* x, Py_ssize_t cols,
                        char* scratch) noexcept nogil:
    """x := inverse(a) @ x for some columns of x, block by block of its rows"""
    cdef Py_ssize_t done = 0, j, rows, last, size = size_of(s.dtype)
    while done < s.n:
        rows = min(side(s.dtype, TRIANGLE), s.n - done)
        if s.upper:
            j = s.n - done - rows
            last = j + rows - 1
            substitutes[s.dtype](a + last * (s.a_row + s.a_col) * size, -s.a_row, -s.a_col,
                                 x + last * s.m * size, -s.m, rows, cols, s.unit)
            subtract_block(s, a, x, 0, j, j, rows, cols, scratch)
        else:
            j = done
            substitutes[s.dtype](a + j * (s.a_row + s.a_col) * size, s.a_row, s.a_col,
                                 x + j * s.m * size, s.m, rows, cols, s.unit)
            subtract_block(s, a, x, j + rows, s.n, j, rows, cols, scratch)
        done += rows


cdef void subtract_block(Systems* s, const char* a, char* x, Py_ssize_t row, Py_ssize_t end,
                         Py_ssize_t j, Py_ssize_t depth, Py_ssize_t cols,
                         char* panels) noexcept nogil:
    """x[row:end] -= a[row:end, j:j + depth] @ x[j:j + depth]"""
    cdef Py_ssize_t rows, size = size_of(s.dtype), wide = side(s.dtype, TRIANGLE)
    cdef char* turned = panels + TRIANGLE * COLUMNS * 8
    cdef const char* at
    if row == end:
        return
    pack_signed(s.dtype, x + j * s.m * size, s.m, 1, False, True, panels, depth, cols)
    while row < end:
        rows = min(<Py_ssize_t>TURNED_ROWS, end - row)
        at = a + (row * s.a_row + j * s.a_col) * size
        if s.a_row == 1:     # column-major elements would compete for few cache sets
            turn(s.dtype, at, s.a_col, turned, wide, depth, rows)
            add_panels(s.dtype, turned, wide, 1, panels, x + row * s.m * size, s.m, rows, depth,
                       cols)
        else:
            add_panels(s.dtype, at, s.a_row, s.a_col, panels, x + row * s.m * size, s.m, rows,
                       depth, cols)
        row += rows


cdef bint is_turned(Tensor x) noexcept:
    """Whether matrices are packed and column-major."""
    cdef Py_ssize_t n = x.dims[x.ndim_ - 1]
    cdef int d
    for d in range(x.ndim_ - 2):
        if x.steps[d] != (x.dims[d + 1] * x.steps[d + 1] if d < x.ndim_ - 3 else n * n):
            return False
    return x.steps[x.ndim_ - 1] == n and x.steps[x.ndim_ - 2] == 1


def solve(Tensor a not None, Tensor b not None, bint upper, bint unit):
    """The solutions of a @ x = b for triangles a, with one for each b."""
    cdef Systems s
    cdef Tensor x
    cdef Py_ssize_t batch, d
    if not takes(a):
        raise ValueError("linalg.solve_triangular: expected square matrices of real or complex "
                         "numbers")
    elements("linalg.solve_triangular", a)
    if b.type != a.type:
        raise ValueError("linalg.solve_triangular: expected one dtype, got "
                         f"{a.dtype.name} and {b.dtype.name}")
    for d in range(a.ndim_ - 1):
        if b.ndim_ != a.ndim_ or a.dims[d] != b.dims[d]:
            raise ValueError("linalg.solve_triangular: expected systems of one size")
    cdef bint turned = is_turned(a)
    x = packed_copy(b, b.type)
    if b.numel_ == 0:
        return x
    s.dtype, s.n, s.m = a.type, a.dims[a.ndim_ - 1], b.dims[b.ndim_ - 1]
    a = a if turned else packed(a)
    s.a_row, s.a_col = 1 if turned else s.n, s.n if turned else 1
    s.a, s.x, s.upper, s.unit, s.failed = a.data_pointer, x.data_pointer, upper, unit, False
    s.strips = 1 + (s.m - 1) // side(s.dtype, COLUMNS)
    batch = x.numel_ // (s.n * s.m)
    share(solve_range, &s, s.x, batch * s.strips, grain(s.n * s.n, min(<Py_ssize_t>COLUMNS, s.m)),
          times(x.numel_, s.n) < RELEASE_GIL)
    if s.failed:
        raise MemoryError("linalg.solve_triangular: no memory for a block")
    return x


# ---- inverses by factors -------------------------------------------------------------------------

ctypedef struct Inverses:    # of l @ l.mH, for lower triangles l
    int dtype
    const char* l
    char* m                  # inverse(l), and its conjugate for complex matrices
    char* y
    Py_ssize_t n
    bint failed              # for want of memory


cdef void invert_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """m := inverse(l), by strips of columns, only on and below the diagonal"""
    cdef Inverses* v = <Inverses*>context
    cdef Systems s
    cdef Py_ssize_t strip, j, cols, c, size = size_of(v.dtype)
    cdef char* scratch = take_scratch(SYSTEM_BYTES)
    cdef char* at
    if scratch == NULL:
        v.failed = True
        return
    s.dtype, s.m, s.a_row, s.a_col, s.upper, s.unit = v.dtype, v.n, v.n, 1, False, False
    for strip in range(begin, end):
        j = strip * TRIANGLE
        cols, at = min(<Py_ssize_t>TRIANGLE, v.n - j), v.m + j * (v.n + 1) * size
        for c in range(v.n):
            memset(v.m + (c * v.n + j) * size, 0, cols * size)
        for c in range(cols):
            if real_of(v.dtype) == FLOAT32:
                (<float*>at)[c * (v.n + 1) * parts(v.dtype)] = 1
            else:
                (<double*>at)[c * (v.n + 1) * parts(v.dtype)] = 1
        s.n = v.n - j
        solve_columns(&s, v.l + j * (v.n + 1) * size, at, cols, scratch)
    give_scratch(scratch, SYSTEM_BYTES)


cdef void square(Inverses* v) noexcept nogil:
    """y := m.mH @ m, of which the lower half is computed and mirrored"""
    cdef Py_ssize_t j = 0, cols, size = size_of(v.dtype), row = v.n * size
    cdef char* conjugated = v.m + v.n * row * (parts(v.dtype) - 1)
    if conjugated != v.m:
        memcpy(conjugated, v.m, v.n * row)
        conjugate(v.dtype, conjugated, v.n * v.n)
    while j < v.n:
        cols = min(<Py_ssize_t>TRIANGLE, v.n - j)
        multiply_matrices(v.dtype, conjugated + j * (row + size), 1, v.n, v.m + j * row, v.n, 1,
                          v.y + j * row, v.n, cols, v.n - j, j + cols)
        complete(v.dtype, v.y, v.n, j, cols)
        j += cols


cdef void invert_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Inverses* v = <Inverses*>context
    cdef Inverses one = v[0]
    cdef Py_ssize_t i, each = v.n * v.n * size_of(v.dtype)
    one.m = take_scratch(each * parts(v.dtype))
    if one.m == NULL:
        v.failed = True
        return
    for i in range(begin, end):
        one.l, one.y = v.l + i * each, v.y + i * each
        parallel_for(invert_strips, &one, 1 + (v.n - 1) // TRIANGLE, 1)
        square(&one)
    v.failed = v.failed or one.failed
    give_scratch(one.m, each * parts(v.dtype))


def inverse_by_factor(Tensor a not None):
    """The inverses of a @ a.mH for lower triangles a. None for other dtypes."""
    cdef Inverses v
    cdef Tensor x, y
    if not takes(a):
        return None
    elements("cholesky_inverse", a)
    x, y = packed(a), new_like(a, a.type)
    v.dtype, v.n, v.failed = a.type, a.dims[a.ndim_ - 1], False
    v.l, v.y = x.data_pointer, y.data_pointer
    if a.numel_:
        share(invert_range, &v, v.y, a.numel_ // (v.n * v.n), grain(v.n * v.n, v.n),
              times(a.numel_, v.n) < RELEASE_GIL)
    if v.failed:
        raise MemoryError("cholesky_inverse: no memory for a block")
    return y
