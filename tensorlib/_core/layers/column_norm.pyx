"""Normalisation of the columns of matrices: of channels that lie beside each other, or have one
element each. Outside autograd.

A first pass sums up pieces of rows, a second one writes their results, so that threads share both;
what depends on all rows comes in between. Half types are computed in float32: pieces of their rows
are widened in scratch memory, and results narrowed there.
"""

from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64, ITEMSIZE
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.lanes cimport lanes_of, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport laid
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

cdef enum:
    MATRIX = 1 << 16     # elements in a piece of a matrix,
    WIDENED = 1 << 13    # and in one that is widened, of which three stay in L2;
    LEAF = 32            # rows are a multiple of this
    SUMS = 4             # sums that a column has
    VECTORS = 4
    SMALL = 512          # numbers of columns that need no memory of their own

ctypedef struct Columns:
    Py_ssize_t rows, most, channels, together    # most: rows of a piece
    double eps

ctypedef void (*columns_fn)(const char* x, const char* g, const char* w, char* y, double* sums,
                            Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef bint (*settle_fn)(const char* x, const char* g, const char* w, double* sums,
                           char* vectors, char* var, double* dw, double* db,
                           const Columns* columns) noexcept nogil
ctypedef void (*spread_fn)(const char* x, const char* g, const char* vectors, const char* b,
                           char* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil

cdef enum Step:
    COLUMNS
    SETTLE
    SPREAD
    STEPS

cdef void* steps[STEPS][2]                   # float32 and float64
find_pairs("normalize", ("columns", "settle", "spread_columns"), steps[0])

ctypedef struct Matrices:
    bint flat, rough, failed                 # flat: the affine map alone, without statistics
    int wide                                 # 0: computed in float32, 1: in float64
    cast_loop widen, narrow                  # of half types, or NULL
    Py_ssize_t count, pieces
    Py_ssize_t itemsize, vector              # bytes: of an element, and of one of a vector
    Columns columns
    const char* g
    const char* x
    const char* w
    const char* b
    char* y
    char* mean
    char* var
    char* vectors
    double* sums
    double* by_weight
    double* by_bias


cdef void run_piece(Matrices* m, Py_ssize_t piece, bint last, const char* x, const char* g,
                    char* y, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t n = m.columns.channels
    if last:
        (<spread_fn>steps[<int>SPREAD][m.wide])(
            x, g, m.vectors + piece // m.pieces * VECTORS * n * m.vector, m.b, y, rows, n)
    else:
        (<columns_fn>steps[<int>COLUMNS][m.wide])(
            x, g, m.w, y if m.flat else NULL, m.sums + piece * SUMS * n, rows, n)


cdef void run_pieces(Matrices* m, Py_ssize_t begin, Py_ssize_t end, bint last) noexcept nogil:
    """Sums up pieces of rows, or in the last pass writes their results."""
    cdef Py_ssize_t piece, row, rows, at, count, n = m.columns.channels
    cdef size_t nbytes = m.columns.most * n * sizeof(float)
    cdef const char* g = NULL
    cdef char* wide = NULL
    if m.widen != NULL:
        wide = take_scratch(3 * nbytes)
        if wide == NULL:
            m.failed = True
            return
    for piece in range(begin, end):
        row = piece % m.pieces * m.columns.most
        rows = min(m.columns.most, m.columns.rows - row)
        at, count = (piece // m.pieces * m.columns.rows + row) * n * m.itemsize, rows * n
        if m.g != NULL:
            g = m.g + at
        if m.widen == NULL:
            run_piece(m, piece, last, m.x + at, g, m.y + at, rows)
            continue
        m.widen(m.x + at, wide, count)
        if g != NULL:
            m.widen(g, wide + nbytes, count)
            g = wide + nbytes
        run_piece(m, piece, last, wide, g, wide + 2 * nbytes, rows)
        if last or m.flat:
            m.narrow(wide + 2 * nbytes, m.y + at, count)
    if wide != NULL:
        give_scratch(wide, 3 * nbytes)


cdef void run_sums(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    run_pieces(<Matrices*>context, begin, end, False)


cdef void run_last(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    run_pieces(<Matrices*>context, begin, end, True)


cdef void run_settle(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """What comes between the passes: matrix by matrix, so that gradients are added in order."""
    cdef Matrices* m = <Matrices*>context
    cdef Py_ssize_t matrix, i, n = m.columns.channels, size = m.columns.rows * n * m.itemsize
    cdef double* sums = m.sums
    cdef bint there = m.widen == NULL
    for i in range(n if m.by_weight != NULL else 0):
        m.by_weight[i] = m.by_bias[i] = 0
    if m.flat:
        for matrix in range(m.pieces):
            for i in range(n):
                m.by_bias[i] += sums[2 * n + i]
                m.by_weight[i] += sums[3 * n + i]
            sums += SUMS * n
        return
    for matrix in range(begin, end):
        m.rough |= (<settle_fn>steps[<int>SETTLE][m.wide])(
            m.x + matrix * size if there else NULL, NULL if m.g == NULL else m.g + matrix * size,
            m.w, sums, m.vectors + matrix * VECTORS * n * m.vector, m.var, m.by_weight, m.by_bias,
            &m.columns)
        sums += m.pieces * SUMS * n
    if m.mean != NULL:
        memcpy(m.mean, m.vectors, n * m.vector)


cdef bint run_matrices(Matrices* m, Tensor x) except -1:
    """Returns whether the results are there: not if half types have to be widened as a whole."""
    cdef Py_ssize_t n = m.columns.channels, pieces, room
    cdef Py_ssize_t most = WIDENED if m.widen != NULL else MATRIX
    cdef bint brief = x.numel_ < RELEASE_GIL
    cdef double small[SMALL]
    cdef Tensor large
    m.columns.most = max(<Py_ssize_t>1, most // n // LEAF) * LEAF
    m.pieces = (m.columns.rows + m.columns.most - 1) // m.columns.most
    pieces = m.count * m.pieces
    room = (pieces * SUMS + m.count * VECTORS) * n
    m.sums = small
    if room > SMALL:
        large = new_tensor(FLOAT64, 1, &room)
        m.sums = <double*>large.data_pointer
    m.vectors = <char*>(m.sums + pieces * SUMS * n)
    m.rough = m.failed = False
    share(run_sums, m, m.y, pieces, 1, brief)
    if not m.failed:
        run_alone(run_settle, m, m.y, m.count)
    if not (m.flat or m.rough or m.failed):
        share(run_last, m, m.y, pieces, 1, brief)
    if m.failed:
        raise MemoryError("channel_norm: no memory for some rows")
    return not m.rough


cdef bint are_columns(Tensor x) noexcept:
    return lanes_of(x) > 0 or x.numel_ == x.dims[0] * x.dims[1] and x.dims[1] > 1


cdef Tensor new_result(Tensor x, bint lanes):
    cdef Tensor out = new_like(x, x.type)
    if lanes:
        lay_lanes(out)
    return out


cdef int begin(Matrices* m, Tensor x, Tensor w, Tensor y, Py_ssize_t count, Py_ssize_t groups,
               double eps) except -1:
    m.flat, m.wide, m.itemsize = False, x.type == FLOAT64, ITEMSIZE[x.type]
    m.vector = 8 if m.wide else 4
    m.widen = m.narrow = NULL
    if m.itemsize == 2:
        m.widen, m.narrow = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
    m.count, m.columns.channels = count, x.dims[1]
    m.columns.rows = x.numel_ // (count * x.dims[1])
    m.columns.together, m.columns.eps = x.dims[1] // groups, eps
    m.g = m.b = NULL
    m.mean = m.var = NULL
    m.by_weight = m.by_bias = NULL
    m.x, m.w, m.y = x.data_pointer, w.data_pointer, y.data_pointer
    return 0


cdef Tensor normal_columns(Tensor x, Tensor w, Tensor b, Py_ssize_t count, Py_ssize_t groups,
                           double eps, Tensor mean, Tensor var):
    cdef Matrices m
    cdef bint lanes = lanes_of(x) > 0
    cdef Tensor out = new_result(x, lanes)
    begin(&m, x, w, out, count, groups, eps)
    m.b = b.data_pointer
    if mean is not None:
        m.mean, m.var = mean.data_pointer, var.data_pointer
    if run_matrices(&m, x):
        return out
    out = normal_columns(laid(x, FLOAT32, lanes), w, b, count, groups, eps, mean, var)
    return laid(out, x.type, lanes)


cdef tuple columns_backward(bint flat, Tensor g, Tensor x, Tensor w, Py_ssize_t count,
                            Py_ssize_t groups, double eps):
    cdef Matrices m
    cdef bint lanes = lanes_of(x) > 0
    cdef Tensor out = new_result(x, lanes), by_weight = new_tensor(FLOAT64, 1, w.dims)
    cdef Tensor by_bias = new_tensor(FLOAT64, 1, w.dims)
    begin(&m, x, w, out, count, groups, eps)
    m.flat, m.g = flat, g.data_pointer
    m.by_weight, m.by_bias = <double*>by_weight.data_pointer, <double*>by_bias.data_pointer
    if run_matrices(&m, x):
        return out, by_weight, by_bias
    out, by_weight, by_bias = columns_backward(
        flat, laid(g, FLOAT32, lanes), laid(x, FLOAT32, lanes), w, count, groups, eps)
    return laid(out, x.type, lanes), by_weight, by_bias
