"""softmax, log_softmax, their gradients and logsumexp down the columns of (outer, n, inner), in
tiles that stay in the cache.

All steps are done for one tile before the next. Done one by one over whole tensors, they read what
another thread's cache holds, and took longer with two threads than with one.
"""

from cython cimport floating
from libc.math cimport isinf
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport FLOAT32, ITEMSIZE
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.reduce.schedule cimport (
    LOGSUMEXP, LOG_SOFTMAX_BACKWARD, MAX, SOFTMAX, SOFTMAX_BACKWARD, SUM, fold_loop,
)
from tensorlib._core.tiles.loops cimport cast_loop, find_cast, find_loop, loop1, loop2, loop_id

cdef enum:
    TILE_BYTES = 65536       # of a tile, in the dtype in which it is computed
    LEAST = 64               # columns of a tile at least: GAPPED_BYTES of float32
    MOST = 1024              # columns of a tile at most, but for the last one of a slice
    LARGEST = 65536          # elements of a slice whose rows do not evict each other from L2
    RUN = 512                # columns of a tile at least in larger slices, read as long runs
    MOST_ROWS = 256          # of larger slices; with more, steps over the whole took half the time
    SHORT = 256              # elements: shorter rows are joined for one call of a loop
    PIECE = 8192             # elements that are worth waking a worker

cdef int SUB = loop_id("sub"), MUL = loop_id("mul"), DIV = loop_id("div")
cdef int EXP = loop_id("exp"), LOG = loop_id("log")

cdef struct Columns:
    int kind
    int dtype                # in which the steps compute: float32 or float64
    const char* x
    const char* g            # for the gradients, where x is the result; or NULL
    char* y
    cast_loop cast           # of a half type to float32, or NULL
    cast_loop back
    Py_ssize_t item, from_item           # bytes of an element as computed, and in memory
    Py_ssize_t n, inner
    Py_ssize_t width, last, tiles        # columns of a tile and of the last one; tiles of a slice
    Py_ssize_t x_slice, x_row            # elements from slice to slice of x, and from row to row
    Py_ssize_t y_slice                   # elements from slice to slice of y and g
    bint no_memory

# n rows of `width` elements, `step` bytes apart: 0 bytes for one row that is repeated.
cdef struct Rows:
    char* data
    Py_ssize_t step


cdef bint fits_columns(Py_ssize_t elements, Py_ssize_t n) noexcept nogil:
    """Whether `columns_run` is the fastest way for slices of so many elements in n rows."""
    return 0 < elements <= LARGEST or 0 < n <= MOST_ROWS


cdef int columns_run(int kind, int dtype, int computed, const char* x, const char* g, char* y,
                     Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t x_slice,
                     Py_ssize_t x_row) noexcept nogil:
    """y := softmax, log_softmax or logsumexp of x down n; or the gradient of one of the first two,
    where x is the result. Returns -1 where there is no memory.

    All are (outer, n, inner) of `dtype` and contiguous, but x has steps, and y of LOGSUMEXP is
    (outer, inner).
    """
    cdef Columns of
    of.kind, of.dtype, of.x, of.g, of.y = kind, computed, x, g, y
    of.cast = of.back = NULL
    if dtype != computed:
        of.cast, of.back = find_cast(dtype, computed), find_cast(computed, dtype)
    of.item, of.from_item = ITEMSIZE[computed], ITEMSIZE[dtype]
    of.n, of.inner, of.no_memory = n, inner, False
    of.x_slice, of.x_row, of.y_slice = x_slice, x_row, inner if kind == LOGSUMEXP else n * inner
    cdef Py_ssize_t least = RUN if n <= MOST_ROWS and n * inner > LARGEST else LEAST
    of.width = min(max(TILE_BYTES // (n * of.item), least), <Py_ssize_t>MOST)
    of.tiles = max(inner // of.width, <Py_ssize_t>1)
    of.width = inner // of.tiles
    of.last = of.width + inner % of.tiles
    parallel_for(run_tiles, &of, outer * of.tiles, 1 + PIECE // (n * of.width))
    return -1 if of.no_memory else 0


cdef void run_tiles(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Columns* of = <Columns*>context
    cdef Py_ssize_t piece, first, slice_, width
    cdef size_t tile = of.n * of.last * of.item, offset
    cdef const char* x
    cdef const char* g
    cdef char* scratch = take_scratch(3 * tile)
    if scratch == NULL:
        of.no_memory = True
        return
    for piece in range(begin, end):
        first = piece % of.tiles * of.width
        width = of.last if piece % of.tiles == of.tiles - 1 else of.width
        slice_ = piece // of.tiles
        x = of.x + (slice_ * of.x_slice + first) * of.from_item
        offset = (slice_ * of.y_slice + first) * of.from_item
        g = NULL if of.g == NULL else of.g + offset
        if of.cast == NULL:
            run_tile(of, x, g, of.y + offset, width, scratch)
        else:
            run_cast(of, x, g, of.y + offset, width, scratch, tile)
    give_scratch(scratch, 3 * tile)


cdef void run_tile(Columns* of, const char* x, const char* g, char* y, Py_ssize_t width,
                   char* scratch) noexcept nogil:
    """Computes a tile of float32 or float64 where it lies."""
    cdef Rows from_, grad, aside, to
    from_.data, from_.step = <char*>x, of.x_row * of.item
    grad.data, to.data = <char*>g, y
    grad.step = to.step = of.inner * of.item
    aside.data, aside.step = scratch, width * of.item
    compute(of, from_, grad, aside, to, to, width)


cdef void run_cast(Columns* of, const char* x, const char* g, char* y, Py_ssize_t width,
                   char* scratch, Py_ssize_t tile) noexcept nogil:
    """Computes a tile of a half type on a copy in float32."""
    cdef Py_ssize_t step = of.inner * of.from_item, i
    cdef Rows from_, grad, aside
    from_.data, grad.data, aside.data = scratch, scratch + tile, scratch + 2 * tile
    from_.step = grad.step = aside.step = width * of.item
    for i in range(of.n):
        of.cast(x + i * of.x_row * of.from_item, from_.data + i * from_.step, width)
        if g != NULL:
            of.cast(g + i * step, grad.data + i * grad.step, width)
    compute(of, from_, grad, aside, from_, from_, width)
    for i in range(1 if of.kind == LOGSUMEXP else of.n):
        of.back(from_.data + i * from_.step, y + i * step, width)


cdef void compute(Columns* of, Rows x, Rows g, Rows aside, Rows exps, Rows y,
                  Py_ssize_t width) noexcept nogil:
    """y := what the kind says. aside, exps: memory for steps; y may be x or `aside`, `exps` x."""
    cdef double buffer[3 * MOST]         # one value for each column, repeated by `apply`
    cdef Rows of_columns
    of_columns.data, of_columns.step = <char*>buffer, 0
    if of.kind == SOFTMAX_BACKWARD:      # (g - sum of g x) x
        apply(of, MUL, g, x, aside, width)
        reduce(of, SUM, aside, of_columns.data, width)
        apply(of, SUB, g, of_columns, aside, width)
        apply(of, MUL, aside, x, y, width)
    elif of.kind == LOG_SOFTMAX_BACKWARD:                # g - exp(x) sum of g
        reduce(of, SUM, g, of_columns.data, width)
        map_rows(of, EXP, x, aside, width)
        apply(of, MUL, aside, of_columns, aside, width)
        apply(of, SUB, g, aside, y, width)
    elif of.kind == LOGSUMEXP:
        reduce(of, MAX, x, y.data, width)
        memcpy(buffer, y.data, width * of.item)
        apply(of, SUB, x, of_columns, aside, width)
        map_rows(of, EXP, aside, aside, width)
        reduce(of, SUM, aside, of_columns.data, width)
        (<loop1>find_loop(LOG, of.dtype).run)(buffer, buffer, width)
        if of.dtype == FLOAT32:
            add_finite(<const float*>buffer, <float*>y.data, width)
        else:
            add_finite(<const double*>buffer, <double*>y.data, width)
    else:
        reduce(of, MAX, x, of_columns.data, width)
        apply(of, SUB, x, of_columns, aside, width)
        if of.kind == SOFTMAX:
            map_rows(of, EXP, aside, aside, width)
            reduce(of, SUM, aside, of_columns.data, width)
            apply(of, DIV, aside, of_columns, y, width)
            return
        map_rows(of, EXP, aside, exps, width)
        reduce(of, SUM, exps, of_columns.data, width)
        (<loop1>find_loop(LOG, of.dtype).run)(buffer, buffer, width)
        apply(of, SUB, aside, of_columns, y, width)


cdef void add_finite(const floating* x, floating* y, Py_ssize_t width) noexcept nogil:
    """y += x, unless y is infinite"""
    cdef Py_ssize_t i
    for i in range(width):
        if not isinf(y[i]):
            y[i] += x[i]


cdef void reduce(Columns* of, int kind, Rows x, char* y, Py_ssize_t width) noexcept nogil:
    """y := the sums or greatest elements of the columns"""
    fold_loop(kind, of.dtype)(NULL, x.data, NULL, y, 1, of.n, width, 0, width, of.n * x.step,
                              x.step // of.item)


cdef void map_rows(Columns* of, int loop, Rows x, Rows y, Py_ssize_t width) noexcept nogil:
    """y := loop(x), element by element"""
    cdef loop1 run = <loop1>find_loop(loop, of.dtype).run
    cdef Py_ssize_t i, n = of.n
    if x.step == width * of.item == y.step:
        width, n = width * n, 1
    for i in range(n):
        run(x.data + i * x.step, y.data + i * y.step, width)


cdef void apply(Columns* of, int loop, Rows a, Rows b, Rows y, Py_ssize_t width) noexcept nogil:
    """y := loop(a, b), element by element

    b may be one repeated row. Short rows are joined for one call, for which copies of b are
    written behind it: its memory has room for them.
    """
    cdef loop2 run = <loop2>find_loop(loop, of.dtype).run
    cdef Py_ssize_t row = width * of.item, together = 1, i, n = of.n
    if a.step == row == y.step and (b.step == 0 or b.step == row):
        together = n
        if b.step == 0:
            together = min(n, 1 + SHORT // width)
            for i in range(1, together):
                memcpy(b.data + i * row, b.data, row)
    i = 0
    while i < n:
        run(a.data + i * a.step, b.data + i * b.step, y.data + i * y.step,
            min(together, n - i) * width)
        i += together
