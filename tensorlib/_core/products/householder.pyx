"""Householder reflections block by block: QR decompositions, and products of reflections.

Matrices are column-major. A block of up to REFLECTIONS columns is reduced at a time (`_kernels/
reflections.h`). The product of a block's reflections is 1 - V @ T @ V.mH (Schreiber and Van Loan,
1989); the columns to its right are multiplied by its adjoint with panels (`panel_products.pyx`), in
strips that threads share. Sums over rows are cut into blocks whose bounds follow from the number of
rows alone, so that the bits of a column depend neither on the threads nor on the batch.
"""

from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, N_DTYPES
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport MAX_NDIM, times
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.products.complex_blocks cimport (
    FEW_ROWS, conjugate, find_blocks, multiply_reflections,
)
from tensorlib._core.products.panel_products cimport (
    add_panels, multiply_panels, pack_panels, pack_signed, parts, real_of, turn,
)
from tensorlib._core.products.triangles cimport RELEASE_GIL, grain, side, size_of
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport copy_into, packed, packed_copy

from tensorlib._core.products import small_matrices

cdef enum:
    REFLECTIONS = 32         # columns of a block; as in the kernels
    FEW = 128                # matrices with no more columns take half blocks: a fifth faster
    DEPTH = 256              # rows that are summed over at a time
    STRIP = 64               # columns of a piece of work
    LINE = 64                # bytes of a cache line
    PANEL = 32               # columns of the widest panels
    MOST_ROWS = 1 << 18      # with more, blocks would need much memory, and LAPACK takes over

ctypedef void (*reflect_fn)(char* p, char* v, Py_ssize_t row, char* factors, Py_ssize_t n,
                            Py_ssize_t m) noexcept nogil
ctypedef void (*weigh_fn)(const char* s, const char* factors, char* t, Py_ssize_t n) noexcept nogil

cdef reflect_fn reflects[N_DTYPES]
cdef weigh_fn weighs[N_DTYPES]
find_by_dtype("triangles", "reflect", <void**>reflects)
find_by_dtype("triangles", "weigh", <void**>weighs)
find_blocks("reflect", <void**>reflects)
find_blocks("weigh", <void**>weighs)

ctypedef struct Work:
    int dtype
    char* x                  # matrices (n, m): n columns of m rows
    char* factors            # (k) of each
    Py_ssize_t m, n, k
    bint product             # whether x has reflections to multiply, or is to be decomposed
    bint failed              # there was no memory

ctypedef struct Copies:      # a copy of matrices, or of the triangles R
    int dtype
    const char* x
    char* y
    Py_ssize_t m, n, rows    # `rows` of R

ctypedef struct Block:       # reflections [j, j + cols) of a matrix
    int dtype
    char* x
    Py_ssize_t m, n          # rows and columns
    Py_ssize_t j, cols, width
    Py_ssize_t row           # elements from one column in scratch to the next
    Py_ssize_t begin         # the first column that is multiplied
    char* columns            # scratch: the columns of the block
    char* v                  # V.T
    char* panels             # V, packed
    char* weights            # minus T @ V.T, or T.T @ V.T, packed


cdef Py_ssize_t row_of(int dtype, Py_ssize_t m) noexcept nogil:
    """The elements from one row to the next: whole vectors, and no large power of two, with which
    rows would compete for few cache sets."""
    return ((1 + (m * size_of(dtype) - 1) // LINE) | 1) * LINE // size_of(dtype)


cdef void pack_rows(Block* b, Py_ssize_t rows) noexcept nogil:
    """Packs conj(V) into panels for `times_rows`, DEPTH rows after DEPTH rows."""
    cdef Py_ssize_t l = 0, size = size_of(b.dtype), deep = side(b.dtype, DEPTH)
    while l < rows:
        pack_signed(b.dtype, b.v + l * size, 1, b.row, True, False,
                    b.panels + l * REFLECTIONS * size, min(deep, rows - l), b.cols)
        l += deep


cdef void times_rows(Block* b, const char* x, Py_ssize_t x_row, char* y, Py_ssize_t count,
                     Py_ssize_t rows) noexcept nogil:
    """y (count, cols) := x (count, rows) @ conj(V); the rows of y are REFLECTIONS elements apart"""
    cdef Py_ssize_t l = 0, depth, size = size_of(b.dtype), deep = side(b.dtype, DEPTH)
    while l < rows:
        depth = min(deep, rows - l)
        if l == 0:
            multiply_panels(b.dtype, x, x_row, 1, b.panels, y, REFLECTIONS, count, depth, b.cols)
        else:
            add_panels(b.dtype, x + l * size, x_row, 1, b.panels + l * REFLECTIONS * size, y,
                       REFLECTIONS, count, depth, b.cols)
        l += deep


cdef void turn_square(Block* b, const char* x, Py_ssize_t row, char* y) noexcept nogil:
    """y (cols, cols) := the adjoint of x"""
    turn(b.dtype, x, row, y, REFLECTIONS, b.cols, b.cols)
    conjugate(b.dtype, y, REFLECTIONS * b.cols)


cdef void join(Block* b, const char* factors, bint transposed) noexcept nogil:
    """Packs conj(V) and -conj(T) @ V.T; or, `transposed`, conj(V) and -T.T @ V.T."""
    cdef char[REFLECTIONS * REFLECTIONS * 8] squares
    cdef char[REFLECTIONS * REFLECTIONS * 8] t
    cdef Py_ssize_t rows = b.m - b.j
    pack_rows(b, rows)
    times_rows(b, b.v, b.row, squares, b.cols, rows)
    weighs[b.dtype](squares, factors, t, b.cols)
    if transposed:
        turn_square(b, t, REFLECTIONS, squares)
    pack_panels(b.dtype, b.v, b.row, 1, b.weights, b.cols, rows)
    multiply_panels(b.dtype, &squares[0] if transposed else &t[0], REFLECTIONS, 1, b.weights,
                    b.columns, b.row, b.cols, b.cols, rows)
    pack_panels(b.dtype, b.columns, b.row, 1, b.weights, b.cols, rows)


cdef void reflect_strips(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """x += x @ conj(V) @ the weights from row j on, for strips of columns, which are rows in memory
    """
    cdef Block* b = <Block*>context
    cdef char[STRIP * REFLECTIONS * 8] y
    cdef Py_ssize_t strip, first, count, wide = side(b.dtype, STRIP)
    cdef char* at
    for strip in range(begin, end):
        first = b.begin + strip * wide
        count = min(wide, b.n - first)
        at = b.x + (first * b.m + b.j) * size_of(b.dtype)
        times_rows(b, at, b.m, y, count, b.m - b.j)
        add_panels(b.dtype, y, REFLECTIONS, 1, b.weights, at, b.m, count, b.cols, b.m - b.j)


cdef void reflect_beside(Block* b) noexcept nogil:
    """The same for all columns from `begin` on, shared by threads."""
    if b.begin < b.n:
        parallel_for(reflect_strips, b, 1 + (b.n - b.begin - 1) // side(b.dtype, STRIP), 1)


cdef void decompose(Block* b, char* factors, Py_ssize_t k) noexcept nogil:
    """x (n, m), column-major := R, and below it the vectors of its k reflections"""
    cdef Py_ssize_t c, rows, size = size_of(b.dtype)
    cdef char* at
    cdef char* column
    b.j = 0
    while b.j < k:
        b.cols, rows = min(b.width, k - b.j), b.m - b.j
        at = b.x + (b.j * b.m + b.j) * size
        for c in range(b.cols):
            column = b.columns + c * b.row * size
            memcpy(column, at + c * b.m * size, rows * size)
            memset(column + rows * size, 0, (b.row - rows) * size)
        reflects[b.dtype](b.columns, b.v, b.row, factors + b.j * size, b.cols, rows)
        for c in range(b.cols):
            memcpy(at + c * b.m * size, b.columns + c * b.row * size, (c + 1) * size)
            memcpy(at + (c * b.m + c + 1) * size, b.v + (c * b.row + c + 1) * size,
                   (rows - c - 1) * size)
        b.begin = b.j + b.cols
        if b.begin < b.n:
            join(b, factors + b.j * size, False)
            reflect_beside(b)
        b.j += b.cols


cdef void set_one(int dtype, char* x, Py_ssize_t i, bint added) noexcept nogil:
    """x[i] := 1, or, `added`, x[i] += 1"""
    i *= parts(dtype)
    if real_of(dtype) == FLOAT32:
        (<float*>x)[i] = 1 + ((<float*>x)[i] if added else 0)
    else:
        (<double*>x)[i] = 1 + ((<double*>x)[i] if added else 0)
    if parts(dtype) > 1 and not added:
        memset(x + (i + 1) * size_of(dtype) // 2, 0, size_of(dtype) // 2)


cdef void read_vectors(Block* b) noexcept nogil:
    """v := the vectors of a block's reflections, with ones on the diagonal and zeros above"""
    cdef Py_ssize_t c, size = size_of(b.dtype)
    cdef char* row
    for c in range(b.cols):
        row = b.v + c * b.row * size
        memset(row, 0, c * size)
        set_one(b.dtype, row, c, False)
        memcpy(row + (c + 1) * size, b.x + ((b.j + c) * b.m + b.j + c + 1) * size,
               (b.m - b.j - c - 1) * size)


cdef void multiply(Block* b, const char* factors, Py_ssize_t k) noexcept nogil:
    """x (n, m), column-major := the first n columns of the product of the k reflections in it"""
    cdef char[REFLECTIONS * REFLECTIONS * 8] square
    cdef Py_ssize_t c, size = size_of(b.dtype)
    cdef char* at
    for c in range(k, b.n):
        memset(b.x + c * b.m * size, 0, b.m * size)
        set_one(b.dtype, b.x + c * b.m * size, c, False)
    if parts(b.dtype) > 1 and b.m <= FEW_ROWS:
        multiply_reflections(b.dtype, b.x, factors, b.m, b.n, k)
        return
    b.j = (k - 1) // b.width * b.width
    while b.j >= 0 and k > 0:
        b.cols = min(b.width, k - b.j)
        b.begin = b.j + b.cols
        read_vectors(b)
        join(b, factors + b.j * size, True)
        reflect_beside(b)
        at = b.x + b.j * b.m * size
        turn_square(b, b.v, b.row, square)
        multiply_panels(b.dtype, square, REFLECTIONS, 1, b.weights, at + b.j * size, b.m, b.cols,
                        b.cols, b.m - b.j)
        for c in range(b.cols):
            memset(at + c * b.m * size, 0, b.j * size)
            set_one(b.dtype, at + c * b.m * size, b.j + c, True)
        b.j -= b.width


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef Py_ssize_t i, size = size_of(w.dtype), row = row_of(w.dtype, w.m)
    cdef Py_ssize_t each = (row + PANEL) * REFLECTIONS * size
    cdef char* scratch = take_scratch(4 * each)
    cdef Block b
    if scratch == NULL:
        w.failed = True
        return
    b.dtype, b.m, b.n, b.row = w.dtype, w.m, w.n, row
    b.width = REFLECTIONS // 2 if w.k <= FEW or parts(w.dtype) > 1 else REFLECTIONS
    b.columns, b.v, b.panels, b.weights = (
        scratch, scratch + each, scratch + 2 * each, scratch + 3 * each)
    for i in range(begin, end):
        b.x = w.x + i * w.n * w.m * size
        if w.product:
            multiply(&b, w.factors + i * w.k * size, w.k)
        else:
            decompose(&b, w.factors + i * w.k * size, w.k)
    give_scratch(scratch, 4 * each)


cdef int run(str name, Tensor x, Tensor factors, bint product) except -1:
    """Decomposes x (*, n, m), or, `product`, multiplies its reflections."""
    cdef Work w
    cdef Py_ssize_t batch
    w.dtype, w.x, w.factors, w.product = x.type, x.data_pointer, factors.data_pointer, product
    w.n, w.m, w.failed = x.dims[x.ndim_ - 2], x.dims[x.ndim_ - 1], False
    w.k = factors.dims[factors.ndim_ - 1]
    if x.numel_ == 0:
        return 0
    batch = x.numel_ // (w.n * w.m)
    share(run_range, &w, w.x, batch, grain(times(w.n, w.m), w.k),
          times(x.numel_, w.k) < RELEASE_GIL)
    if w.failed:
        raise MemoryError(f"{name}: no memory for a block")
    return 0


cdef bint takes(Tensor x) noexcept:
    """Whether `x` are matrices that this module decomposes."""
    return ((x.type == FLOAT32 or x.type == FLOAT64 or x.type == COMPLEX64 or x.type == COMPLEX128)
            and x.ndim_ >= 2 and x.dims[x.ndim_ - 2] <= MOST_ROWS)


cdef Tensor turned(Tensor x):
    """The transposed matrices, as a view."""
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Py_ssize_t[MAX_NDIM] steps
    cdef int d, n = x.ndim_
    for d in range(n):
        dims[d], steps[d] = x.dims[d], x.steps[d]
    dims[n - 2], dims[n - 1] = x.dims[n - 1], x.dims[n - 2]
    steps[n - 2], steps[n - 1] = x.steps[n - 1], x.steps[n - 2]
    return new_view(x, n, dims, steps, x.data_pointer)


cdef void turn_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y (n, m) := x.T, for packed matrices x (m, n)"""
    cdef Copies* t = <Copies*>context
    cdef Py_ssize_t i, each = t.n * t.m * size_of(t.dtype)
    for i in range(begin, end):
        turn(t.dtype, t.x + i * each, t.n, t.y + i * each, t.m, t.m, t.n)


cdef Tensor by_columns(Tensor a):
    """A packed copy of the transposed matrices. For packed ones it takes 0.6 us for 64 x 64 of
    float32, where a copy of a transposed view takes 2.6."""
    cdef Copies t
    cdef Tensor view = turned(a), x
    if not a.packed:
        return packed_copy(view, a.type)
    x = new_tensor(a.type, a.ndim_, view.dims)
    t.m, t.n, t.dtype = a.dims[a.ndim_ - 2], a.dims[a.ndim_ - 1], a.type
    t.x, t.y = a.data_pointer, x.data_pointer
    if a.numel_:
        share(turn_range, &t, t.y, a.numel_ // (t.m * t.n), grain(t.m, t.n),
              a.numel_ < RELEASE_GIL)
    return x


cdef tuple decomposed(str name, Tensor a):
    """R, and below it the vectors of the reflections of `a`, column-major; and their factors."""
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Tensor x, factors
    cdef int d
    elements(name, a)
    x = by_columns(a)
    for d in range(a.ndim_ - 1):
        dims[d] = a.dims[d]
    dims[a.ndim_ - 2] = min(a.dims[a.ndim_ - 2], a.dims[a.ndim_ - 1])
    factors = new_tensor(a.type, a.ndim_ - 1, dims)
    run(name, x, factors, False)
    return x, factors


def geqrf(Tensor a not None):
    """R, the Householder vectors below it, and their factors. None for other dtypes, and for
    more than MOST_ROWS rows."""
    if not takes(a):
        return None
    x, factors = small_matrices.reflections(a) or decomposed("geqrf", a)
    return turned(x), factors


cdef void write_triangles(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y (rows, n) := R, for column-major x"""
    cdef Copies* t = <Copies*>context
    cdef Py_ssize_t i, row, size = size_of(t.dtype)
    cdef char* y
    for i in range(begin, end):
        y = t.y + i * t.rows * t.n * size
        turn(t.dtype, t.x + i * t.n * t.m * size, t.m, y, t.n, t.n, t.rows)
        for row in range(1, t.rows):
            memset(y + row * t.n * size, 0, min(row, t.n) * size)


cdef Tensor triangles(Tensor x, Py_ssize_t rows):
    """The first `rows` rows of R, for column-major x (*, n, m)."""
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Copies t
    cdef Tensor y
    cdef int d
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    t.n, t.m, t.rows, t.dtype = x.dims[x.ndim_ - 2], x.dims[x.ndim_ - 1], rows, x.type
    dims[x.ndim_ - 2], dims[x.ndim_ - 1] = rows, t.n
    y = new_tensor(x.type, x.ndim_, dims)
    t.x, t.y = x.data_pointer, y.data_pointer
    if y.numel_:
        run_alone(write_triangles, &t, t.y, y.numel_ // (rows * t.n))
    return y


def triangle(Tensor a not None):
    """R, with min(M, N) rows. None as for `geqrf`."""
    if not takes(a):
        return None
    x, factors = decomposed("linalg.qr", a)
    return triangles(x, min(a.dims[a.ndim_ - 2], a.dims[a.ndim_ - 1]))


def qr(Tensor a not None, bint complete):
    """Q and R of matrices with at least as many rows as columns; `complete`: with all columns of Q.
    None as for `geqrf`."""
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Tensor x, q, r, factors
    cdef Py_ssize_t m, n
    cdef int d
    if not takes(a):
        return None
    m, n = a.dims[a.ndim_ - 2], a.dims[a.ndim_ - 1]
    if m < n:
        raise ValueError("linalg.qr: expected matrices that are not wide")
    x, factors = decomposed("linalg.qr", a)
    r = triangles(x, m if complete else n)
    q = x
    if complete and m > n:
        for d in range(a.ndim_):
            dims[d] = a.dims[d]
        dims[a.ndim_ - 1] = m
        q = new_tensor(a.type, a.ndim_, dims)
        copy_into(new_view(q, x.ndim_, x.dims, q.steps, q.data_pointer), x)
    run("linalg.qr", q, factors, True)
    return turned(q), r


def product(Tensor a not None, Tensor factors not None):
    """The first columns of the product of the reflections with vectors in `a`. None as for `geqrf`.
    """
    cdef int d
    cdef Py_ssize_t rows, columns
    if not takes(a):
        return None
    elements("linalg.householder_product", a)
    elements("linalg.householder_product", factors)
    rows, columns = a.dims[a.ndim_ - 2], a.dims[a.ndim_ - 1]
    if factors.type != a.type or factors.ndim_ != a.ndim_ - 1 or rows < columns or (
            factors.dims[a.ndim_ - 2] > columns):
        raise ValueError("linalg.householder_product: expected a factor for each vector")
    for d in range(a.ndim_ - 2):
        if factors.dims[d] != a.dims[d]:
            raise ValueError("linalg.householder_product: expected factors for each matrix")
    cdef Tensor x = by_columns(a)
    run("linalg.householder_product", x, packed(factors), True)
    return turned(x)
