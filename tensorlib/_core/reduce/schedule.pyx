"""The schedule of reductions: which loop reduces what, and how the work is cut for the pool.

Cuts follow from the shape alone, so results do not depend on the number of threads. A large
reduction is cut along outer or inner where these are long enough, which changes nothing in a
result. A long reduction to few results is cut along n; the partial results are then reduced in
their turn, in order.
"""

from libc.stdint cimport uint16_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport (
    COMPLEX_KIND, FLOAT32, FLOAT_KIND, INT64, ITEMSIZE, KIND, N_DTYPES, compute_dtype, dtype_id,
    real_of,
)
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.reduce.by_cast cimport Cast, fold_by_cast, rows_by_cast
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

from tensorlib import _kernels
from tensorlib._core.base.dtypes import BY_NAME

ctypedef void (*gapped_fn)(void* tag, const char* x, char* y, Py_ssize_t at, Py_ssize_t n,
                           Py_ssize_t row, Py_ssize_t down, Py_ssize_t apart) noexcept nogil
ctypedef void (*index_fn)(void* tag, const char* x, char* y, int64_t* at, Py_ssize_t outer,
                          Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                          Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil
ctypedef void (*scan_fn)(const char* x, char* y, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
                         Py_ssize_t begin, Py_ssize_t end) noexcept nogil
ctypedef void (*row_fn)(const char* x, char* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*row_backward_fn)(const char* g, const char* out, char* y, Py_ssize_t rows,
                                 Py_ssize_t n) noexcept nogil

cdef enum:
    KINDS = 10
    ROW_KINDS = 5
    # Elements in a piece of work. To wake a worker takes up to 5 us, and a sum of so many 4 us or
    # more.
    PIECE = 1 << 17
    # The same for argmax and argmin.
    INDEX_PIECE = 1 << 14
    # The same for running sums: 16 us or more.
    SCAN_PIECE = 1 << 14
    # The same for loops with an exp for each element: some 9 us.
    ROW_PIECE = 1 << 13
    ENOUGH = 32      # outer slices or column tiles that keep all threads busy
    TILE = 512       # columns in a piece; no fewer than a loop's lanes
    SCAN_TILE = 2048 # the same for running sums; equals the tile of their loop
    LONG = 64        # elements of a row, or columns, from which on the loops for half types pay
    LEAF = 32        # a piece of n has a multiple of so many rows

cdef void* loops[KINDS][N_DTYPES]
cdef void* gapped_loops[KINDS][N_DTYPES]
cdef Py_ssize_t shortest = _kernels.load("reduce").short_row()
cdef void* row_loops[ROW_KINDS][N_DTYPES]
cdef void* scan_loops[N_DTYPES]

ctypedef struct Work:
    void* loop
    bint indices
    const char* x
    const char* c
    char* y
    int64_t* at
    cast_loop cast           # to the dtype in which the elements are reduced; or NULL
    void* of_halves          # the loop on half types as they are, for long rows or many columns
    Py_ssize_t itemsize, result_size     # bytes of an element of x, and of one of y
    Py_ssize_t outer, n, inner, slice_step, step
    Py_ssize_t row, down, apart          # as in `Gaps`; a row of 0 means that there are none
    Py_ssize_t pieces, size  # in how many pieces an outer slice is cut, and the rows of n in each
    Py_ssize_t piece         # elements that a piece has at least
    void* combine            # the loop that reduces the results of pieces
    int status


cdef int reduce_run(int kind, int dtype, const char* x, const char* center, char* y,
                    const Py_ssize_t* sizes) noexcept nogil:
    """y := x reduced over n; n may be 0 for SUM, PROD, SQUARES, ANY and ALL

    center: of the shape of y, for SQUARES, which sums (x - center)**2; else NULL. Complex numbers
    are summed as twice as many columns of real ones.
    """
    cdef Work work
    cdef Py_ssize_t[5] reals
    if KIND[dtype] == COMPLEX_KIND and kind == SUM:
        reals[0], reals[1], reals[2] = sizes[0], sizes[1], 2 * sizes[2]
        reals[3], reals[4] = 2 * sizes[3], 2 * sizes[4]
        return reduce_run(kind, real_of(dtype), x, NULL, y, reals)
    if sizes[1] == 0:
        return run_of_nothing(kind, reduced_in(kind, dtype), y, sizes[0] * sizes[2])
    work.row = 0
    return run(&work, kind, dtype, x, center, y, NULL, sizes)


cdef fold_fn fold_loop(int kind, int dtype) noexcept nogil:
    """The loop of a kind for float32 or float64."""
    return <fold_fn>loops[kind][dtype]


cdef Py_ssize_t short_row() noexcept nogil:
    """Rows of fewer bytes are summed in the order of a column, and so have the same bits."""
    return shortest


cdef bint has_gapped(int kind, int dtype) noexcept nogil:
    """Whether `gapped_run` has a loop."""
    return gapped_loops[kind][dtype] != NULL


cdef int gapped_run(int kind, int dtype, const char* x, char* y, const Py_ssize_t* sizes,
                    const Gaps* gaps) noexcept nogil:
    """y := x reduced over n, where inner is 1 and each slice has gaps; the bits are those of a
    reduction without gaps"""
    cdef Work work
    work.row, work.down, work.apart = gaps.row, gaps.down, gaps.apart
    return run(&work, kind, dtype, x, NULL, y, NULL, sizes)


cdef int reduced_in(int kind, int dtype) noexcept nogil:
    """The dtype of the results of `reduce_run`."""
    if KIND[dtype] == FLOAT_KIND:
        return compute_dtype(dtype)
    return INT64 if (kind == SUM or kind == PROD) and KIND[dtype] < FLOAT_KIND else dtype


cdef int index_run(int kind, int dtype, const char* x, char* y, int64_t* at,
                   const Py_ssize_t* sizes) noexcept nogil:
    """y, at := extreme over n and its first index; kind is ARGMAX or ARGMIN, n is at least 1"""
    cdef Work work
    work.row = 0
    return run(&work, kind, dtype, x, NULL, y, at, sizes)


cdef int run(Work* work, int kind, int dtype, const char* x, const char* c, char* y, int64_t* at,
             const Py_ssize_t* sizes) noexcept nogil:
    cdef Py_ssize_t outer = sizes[0], piece = PIECE if at == NULL else INDEX_PIECE
    cdef int computed = reduced_in(kind, dtype)
    work.loop = gapped_loops[kind][computed] if work.row else loops[kind][computed]
    work.cast = work.of_halves = NULL
    if computed != dtype:
        if at != NULL:
            return NO_LOOP
        work.cast = find_cast(dtype, computed)
        if KIND[dtype] == FLOAT_KIND:
            work.of_halves = loops[kind][dtype]
    if work.loop == NULL:
        return NO_LOOP
    work.combine = loops[added_up(kind)][computed]
    work.indices = at != NULL
    work.x = x
    work.c = c
    work.y = y
    work.at = at
    work.itemsize, work.result_size = ITEMSIZE[dtype], ITEMSIZE[computed]
    work.outer = outer
    work.n, work.inner = sizes[1], sizes[2]
    work.slice_step, work.step = sizes[3], sizes[4]
    work.status = 0
    if outer * work.n * work.inner < 2 * piece:
        run_alone(run_outer, work, y, outer)
    else:
        work.piece = piece
        run_alone(run_cut, work, y, 1)
    return work.status


cdef int added_up(int kind) noexcept nogil:
    """The kind of reduction that combines the results of parts."""
    return SUM if kind == SQUARES or kind == NANSUM else kind


cdef void run_cut(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Cuts a large reduction along outer, inner or n, and runs the pieces on the pool."""
    cdef Work* work = <Work*>context
    cdef Py_ssize_t outer = work.outer, n = work.n, inner = work.inner, piece = work.piece
    if outer >= ENOUGH:
        parallel_for(run_outer, work, outer, 1 + piece // (n * inner))
    elif outer * (inner // TILE) >= ENOUGH:
        work.pieces = inner // TILE
        parallel_for(run_columns, work, outer * work.pieces, 1 + piece // (n * TILE))
    else:
        work.size = (piece // inner + LEAF) // LEAF * LEAF
        work.pieces = (n + work.size - 1) // work.size
        if work.pieces == 1:
            parallel_for(run_outer, work, outer, 1)
        else:
            work.status = run_long(work)


cdef void run_outer(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t o
    if work.row:
        for o in range(begin, end):
            (<gapped_fn>work.loop)(NULL, work.x + o * work.slice_step * work.itemsize,
                                   work.y + o * work.result_size, 0, work.n, work.row, work.down,
                                   work.apart)
        return
    call(work, work.loop, work.x, work.c, work.y, work.at, begin, end - begin, work.n,
         0, work.inner)


cdef void run_columns(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Reduces the tiles of columns [begin, end); the last tile of a slice takes the rest of it."""
    cdef Work* work = <Work*>context
    cdef Py_ssize_t piece, tile
    for piece in range(begin, end):
        tile = piece % work.pieces
        call(work, work.loop, work.x, work.c, work.y, work.at, piece // work.pieces, 1, work.n,
             tile * TILE, work.inner if tile == work.pieces - 1 else (tile + 1) * TILE)


cdef inline void call(Work* work, void* loop, const char* x, const char* c, char* y, int64_t* at,
                      Py_ssize_t first, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t begin,
                      Py_ssize_t end) noexcept nogil:
    """Runs the loop on `outer` slices from slice `first` on."""
    cdef Py_ssize_t results = first * work.inner
    cdef Cast by
    x += first * work.slice_step * work.itemsize
    y += results * work.result_size
    if c != NULL:
        c += results * work.result_size
    if work.of_halves != NULL and (n if work.inner == 1 else end - begin) >= LONG:
        loop = work.of_halves
    elif work.cast != NULL:
        by.loop, by.combine, by.cast = loop, work.combine, work.cast
        by.from_size, by.size = work.itemsize, work.result_size
        fold_by_cast(&by, x, c, y, outer, n, work.inner, begin, end)
        return
    if work.indices:
        (<index_fn>loop)(NULL, x, y, at + results, outer, n, work.inner, begin, end,
                         work.slice_step, work.step)
    else:
        (<fold_fn>loop)(NULL, x, c, y, outer, n, work.inner, begin, end, work.slice_step,
                        work.step)


cdef int run_long(Work* work) noexcept nogil:
    """Reduces pieces of n, and then the partial results with the loop `combine`."""
    cdef Py_ssize_t results = work.outer * work.inner
    cdef Py_ssize_t partials = results * work.pieces
    cdef Py_ssize_t i, o, j, piece
    cdef Work parts = work[0], last = work[0]
    last.cast = last.of_halves = NULL
    last.itemsize, last.row = work.result_size, 0
    last.slice_step, last.step = work.pieces * work.inner, work.inner
    parts.y = <char*>malloc(partials * work.result_size)
    parts.at = <int64_t*>malloc(partials * sizeof(int64_t)) if work.indices else NULL
    if parts.y == NULL or (work.indices and parts.at == NULL):
        free(parts.y)
        free(parts.at)
        return NO_MEMORY
    parallel_for(run_piece, &parts, work.outer * work.pieces, 1)
    call(&last, work.combine, parts.y, NULL, work.y, work.at, 0, work.outer, work.pieces,
         0, work.inner)
    if work.indices:
        for i in range(results):
            o = i // work.inner
            j = i % work.inner
            piece = work.at[i]
            work.at[i] = (piece * work.size
                          + parts.at[(o * work.pieces + piece) * work.inner + j])
    free(parts.y)
    free(parts.at)
    return 0


cdef void run_piece(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t i, o, first
    cdef const char* x
    cdef const char* c = NULL
    for i in range(begin, end):
        o = i // work.pieces
        first = i % work.pieces * work.size
        if work.row:
            (<gapped_fn>work.loop)(NULL, work.x + o * work.slice_step * work.itemsize,
                                   work.y + i * work.result_size, first,
                                   min(work.size, work.n - first), work.row, work.down,
                                   work.apart)
            continue
        x = work.x + (o * work.slice_step + first * work.step) * work.itemsize
        if work.c != NULL:
            c = work.c + o * work.inner * work.result_size
        call(work, work.loop, x, c, work.y + i * work.inner * work.result_size,
             work.at + i * work.inner if work.indices else NULL, 0, 1,
             min(work.size, work.n - first), 0, work.inner)


cdef int run_of_nothing(int kind, int dtype, char* y, Py_ssize_t n) noexcept nogil:
    """y := n times what a reduction of no elements gives"""
    cdef Identity of
    of.kind, of.dtype, of.y = kind, dtype, y
    run_alone(fill_identity, &of, y, n)
    return 0


ctypedef struct Identity:
    int kind, dtype
    char* y


cdef void fill_identity(void* context, Py_ssize_t begin, Py_ssize_t n) noexcept nogil:
    cdef int kind = (<Identity*>context).kind, dtype = (<Identity*>context).dtype
    cdef char* y = (<Identity*>context).y
    cdef Py_ssize_t i
    if added_up(kind) == SUM or kind == ANY:
        memset(y, 0, n * ITEMSIZE[dtype])
    elif KIND[dtype] == COMPLEX_KIND:
        memset(y, 0, n * ITEMSIZE[dtype])
        for i in range(n):
            if ITEMSIZE[dtype] == 8:
                (<float*>y)[2 * i] = 1
            else:
                (<double*>y)[2 * i] = 1
    elif kind == ALL:
        memset(y, 1, n)
    elif kind == PROD:
        for i in range(n):
            if ITEMSIZE[dtype] == 4:
                (<float*>y)[i] = 1
            elif loops[SQUARES][dtype] != NULL:
                (<double*>y)[i] = 1
            else:
                (<int64_t*>y)[i] = 1


ctypedef struct Rows:
    void* loop
    cast_loop cast               # of a half type to float32, or NULL
    cast_loop back
    const char* g
    const char* x
    char* y
    Py_ssize_t n, itemsize, y_row  # y_row: bytes of a row of y


cdef int rows_run(int kind, int dtype, const char* g, const char* x, char* y, Py_ssize_t rows,
                  Py_ssize_t n) noexcept nogil:
    """y := softmax, log_softmax (rows, n) or logsumexp (rows) of the rows of x (rows, n); with `g`
    the gradient of one of the first two, where x is the result.

    Half types: rows of at most BLOCK elements, and no logsumexp.
    """
    cdef Rows work
    cdef int computed = compute_dtype(dtype)
    work.cast = NULL
    work.loop = row_loops[kind][computed]
    if computed != dtype:
        work.cast, work.back = find_cast(dtype, FLOAT32), find_cast(FLOAT32, dtype)
    if work.loop == NULL:
        return NO_LOOP
    work.g = g
    work.x = x
    work.y = y
    work.n = n
    work.itemsize = ITEMSIZE[dtype]
    work.y_row = work.itemsize * (1 if kind == LOGSUMEXP else n)
    parallel_for(run_rows, &work, rows, 1 + ROW_PIECE // max(1, n))
    return 0


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Rows* work = <Rows*>context
    cdef Py_ssize_t offset = begin * work.n * work.itemsize
    cdef char* y = work.y + begin * work.y_row
    if work.cast != NULL:
        rows_by_cast(work.loop, work.cast, work.back,
                     <const uint16_t*>(NULL if work.g == NULL else work.g + offset),
                     <const uint16_t*>(work.x + offset), <uint16_t*>y, end - begin, work.n)
    elif work.g != NULL:
        (<row_backward_fn>work.loop)(work.g + offset, work.x + offset, y, end - begin, work.n)
    else:
        (<row_fn>work.loop)(work.x + offset, y, end - begin, work.n)


ctypedef struct Scan:
    void* loop
    const char* x
    char* y
    Py_ssize_t itemsize, n, inner, tiles


cdef int scan_run(int dtype, const char* x, char* y, Py_ssize_t outer, Py_ssize_t n,
                  Py_ssize_t inner) noexcept nogil:
    """y := running sums of x along n, both (outer, n, inner); y may be x"""
    cdef Scan work
    if KIND[dtype] == COMPLEX_KIND:
        return scan_run(real_of(dtype), x, y, outer, n, 2 * inner)
    work.loop = scan_loops[dtype]
    if work.loop == NULL:
        return NO_LOOP
    if n == 0:
        return 0
    work.x = x
    work.y = y
    work.itemsize = ITEMSIZE[dtype]
    work.n = n
    work.inner = inner
    work.tiles = (inner + SCAN_TILE - 1) // SCAN_TILE
    parallel_for(run_scans, &work, outer * work.tiles,
                 1 + SCAN_PIECE // (1 + n * min(inner, SCAN_TILE)))
    return 0


cdef void run_scans(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the slices [begin, end), or such tiles of their columns."""
    cdef Scan* work = <Scan*>context
    cdef Py_ssize_t slice_bytes = work.n * work.inner * work.itemsize
    cdef Py_ssize_t piece, first, offset
    if work.tiles == 1:
        offset = begin * slice_bytes
        (<scan_fn>work.loop)(work.x + offset, work.y + offset, end - begin, work.n, work.inner,
                             0, work.inner)
        return
    for piece in range(begin, end):
        first = piece % work.tiles * SCAN_TILE
        offset = piece // work.tiles * slice_bytes
        (<scan_fn>work.loop)(work.x + offset, work.y + offset, 1, work.n, work.inner, first,
                             min(first + SCAN_TILE, work.inner))


cdef int find_loops() except -1:
    cdef size_t address
    cdef int i
    for i, name in enumerate(("sum", "prod", "squares", "any", "all", "max", "min", "argmax",
                              "argmin", "nansum")):
        find_by_dtype("reduce", name, loops[i])
        find_by_dtype("reduce", "gapped_" + name, gapped_loops[i])
        find_by_dtype("extremes", name, loops[i])
    for i, name in enumerate(("softmax", "log_softmax", "logsumexp", "softmax_backward",
                              "log_softmax_backward")):
        find_by_dtype("softmax", name, row_loops[i])
    find_by_dtype("scan", "cumsum", scan_loops)
    for _, _, dtype, address in _kernels.load("complex_arithmetic").reductions():
        loops[PROD][dtype_id(BY_NAME[dtype])] = <void*>address
    return 0


find_loops()
