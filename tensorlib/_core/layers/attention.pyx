"""Attention by tiles: only the scores of one tile of queries and keys are held at a time.

The rows of a head are read where they lie, for instance in a tensor that has all heads side by
side, and results get the layout of the queries, keys and values: nothing is copied to split it into
heads. Keys and values are packed into panels (`products`) once for all queries of a head. Outside
autograd.

Source: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
NeurIPS 2022; Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from libc.math cimport INFINITY
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport LARGEST, MAX_NDIM, times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.panel_products cimport (
    add_panels, multiply_panels, pack_panels, panels_size,
)
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport new_arranged_as, packed, packed_copy, zero

from math import prod

cdef enum:
    ROWS = 64            # queries of a tile
    COLS = 128           # keys of a tile; ROWS with a causal mask
    MANY = 8             # heads: from so many on each is one piece of work
    KEPT = 1 << 21       # bytes: up to so many, the panels of a head are kept for all its queries

ctypedef void (*online_fn)(char* s, const char* mask, Py_ssize_t mask_row, Py_ssize_t mask_col,
                           double scale, char* top, char* total, char* factor, Py_ssize_t rows,
                           Py_ssize_t n, Py_ssize_t first) noexcept nogil
ctypedef void (*rescale_fn)(char* y, Py_ssize_t y_row, const char* factor, Py_ssize_t rows,
                            Py_ssize_t n) noexcept nogil
ctypedef void (*probabilities_fn)(char* s, const char* mask, Py_ssize_t mask_row,
                                  Py_ssize_t mask_col, double scale, const char* logs,
                                  Py_ssize_t rows, Py_ssize_t n, Py_ssize_t first) noexcept nogil
ctypedef void (*finish_fn)(char* y, Py_ssize_t y_row, const char* top, const char* total,
                           char* logs, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*dots_fn)(const char* g, Py_ssize_t g_row, const char* y, Py_ssize_t y_row, char* d,
                         Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*slopes_fn)(const char* p, char* dp, const char* d, double scale, Py_ssize_t rows,
                           Py_ssize_t n) noexcept nogil

cdef online_fn online[2]
cdef rescale_fn rescale[2]
cdef finish_fn finish[2]
cdef dots_fn dots[2]
cdef probabilities_fn probabilities[2]
cdef slopes_fn slopes[2]
find_pairs("attention", ("online",), <void**>online)
find_pairs("attention", ("rescale",), <void**>rescale)
find_pairs("attention", ("finish",), <void**>finish)
find_pairs("attention", ("dots",), <void**>dots)
find_pairs("attention", ("probabilities",), <void**>probabilities)
find_pairs("attention", ("slopes",), <void**>slopes)

ctypedef struct Rows:                # of all heads
    char* at
    Py_ssize_t outer, inner          # bytes between heads: along the first dims, along the last
    Py_ssize_t row                   # elements between rows

ctypedef struct Work:
    int dtype
    Py_ssize_t item, heads, inner    # inner: the size of the last dim of heads
    Py_ssize_t queries, width, depth                     # width of the keys, depth of the values
    Py_ssize_t keys, cols            # keys that some query sees, and those of a tile
    Rows q, k, v, y, g, dq, dk, dv
    char* logs
    char* mask                       # NULL, or with steps in elements
    Py_ssize_t mask_head, mask_row, mask_col
    double scale
    bint causal, failed

# The panels of the keys and values of a head: those of all its tiles, or of the last tile.
ctypedef struct Panels:
    char* at
    Py_ssize_t head, last            # the head, and its last tile that was packed, or -1
    Py_ssize_t keys, values, tile    # elements of a tile's panels: of keys, of values, of both
    bint kept, backward


# ---- where things are ----------------------------------------------------------------------------

cdef inline char* rows_at(const Work* w, const Rows* x, Py_ssize_t head,
                          Py_ssize_t row) noexcept nogil:
    return (x.at + head // w.inner * x.outer + head % w.inner * x.inner
            + row * x.row * w.item)


cdef inline char* mask_at(const Work* w, Py_ssize_t head, Py_ssize_t row,
                          Py_ssize_t col) noexcept nogil:
    if w.mask == NULL:
        return NULL
    return w.mask + (head * w.mask_head + row * w.mask_row + col * w.mask_col) * w.item


cdef inline Py_ssize_t first_seen(const Work* w, Py_ssize_t row, Py_ssize_t col) noexcept nogil:
    return row + 1 - col if w.causal else LARGEST


cdef inline Py_ssize_t tiles_of(Py_ssize_t n, Py_ssize_t side) noexcept nogil:
    return (n + side - 1) // side


cdef inline void multiply(const Work* w, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n, bint added) noexcept nogil:
    """y (m, n) := a @ the matrix that was packed into p, or y += it"""
    if added:
        add_panels(w.dtype, a, a_row, a_col, p, y, y_row, m, k, n)
    else:
        multiply_panels(w.dtype, a, a_row, a_col, p, y, y_row, m, k, n)


# ---- panels of keys and values -------------------------------------------------------------------

cdef size_t plan_panels(const Work* w, Panels* panels, bint backward) noexcept nogil:
    """The bytes that the panels take. A tile has the transposed keys and the values; backward the
    transposed keys, the transposed values and the keys."""
    panels.backward, panels.head = backward, -1
    panels.keys = panels_size(w.width, COLS)
    panels.values = panels_size(w.depth, COLS) if backward else panels_size(COLS, w.depth)
    panels.tile = panels.keys + panels.values + (panels_size(COLS, w.width) if backward else 0)
    cdef size_t all_tiles = times(times(panels.tile, tiles_of(w.keys, w.cols)), w.item)
    panels.kept = all_tiles <= KEPT
    return all_tiles if panels.kept else panels.tile * w.item


cdef char* panels_of(const Work* w, Panels* panels, Py_ssize_t head, Py_ssize_t col,
                     Py_ssize_t cols) noexcept nogil:
    """The panels of the tile of keys from `col` on, packed unless they have been. For each tile of
    queries, the tiles of a head are asked for in order."""
    cdef Py_ssize_t tile = col // w.cols
    cdef char* p = panels.at + (tile * panels.tile * w.item if panels.kept else 0)
    cdef char* keys = rows_at(w, &w.k, head, col)
    cdef char* values = rows_at(w, &w.v, head, col)
    if panels.head != head:
        panels.head, panels.last = head, -1
    if tile == panels.last or panels.kept and tile < panels.last:
        return p
    panels.last = tile
    pack_panels(w.dtype, keys, 1, w.k.row, p, w.width, cols)
    if panels.backward:
        pack_panels(w.dtype, values, 1, w.v.row, p + panels.keys * w.item, w.depth, cols)
        pack_panels(w.dtype, keys, w.k.row, 1, p + (panels.keys + panels.values) * w.item, cols,
                    w.width)
    else:
        pack_panels(w.dtype, values, w.v.row, 1, p + panels.keys * w.item, cols, w.depth)
    return p


# ---- forward -------------------------------------------------------------------------------------

cdef void forward_heads(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the tiles of queries [begin, end), numbered head by head."""
    cdef Work* w = <Work*>context
    cdef Panels panels
    cdef Py_ssize_t tiles = tiles_of(w.queries, ROWS), piece
    cdef size_t nbytes = (ROWS * COLS + 3 * ROWS) * w.item + plan_panels(w, &panels, False)
    cdef char* scratch = take_scratch(nbytes)
    if scratch == NULL:
        w.failed = True
        return
    panels.at = scratch + (ROWS * COLS + 3 * ROWS) * w.item
    for piece in range(begin, end):
        forward_tile(w, piece // tiles, piece % tiles * ROWS, scratch, &panels)
    give_scratch(scratch, nbytes)


cdef void forward_tile(const Work* w, Py_ssize_t head, Py_ssize_t row, char* scores,
                       Panels* panels) noexcept nogil:
    cdef bint wide = w.dtype != FLOAT32
    cdef Py_ssize_t rows = min(<Py_ssize_t>ROWS, w.queries - row), col = 0, cols, r
    cdef Py_ssize_t last = min(w.keys, row + rows) if w.causal else w.keys
    cdef char* top = scores + ROWS * COLS * w.item
    cdef char* total = top + ROWS * w.item
    cdef char* factor = total + ROWS * w.item
    cdef char* y = rows_at(w, &w.y, head, row)
    cdef char* p
    memset(total, 0, ROWS * w.item)
    for r in range(rows):
        if wide:
            (<double*>top)[r] = -INFINITY
        else:
            (<float*>top)[r] = -INFINITY
        if last == 0:
            memset(y + r * w.y.row * w.item, 0, w.depth * w.item)
    while col < last:
        cols = min(w.cols, last - col)
        p = panels_of(w, panels, head, col, cols)
        multiply(w, rows_at(w, &w.q, head, row), w.q.row, 1, p, scores, cols, rows, w.width, cols,
                 False)
        online[wide](scores, mask_at(w, head, row, col), w.mask_row, w.mask_col, w.scale, top,
                     total, factor, rows, cols, first_seen(w, row, col))
        if col > 0:
            rescale[wide](y, w.y.row, factor, rows, w.depth)
        multiply(w, scores, cols, 1, p + panels.keys * w.item, y, w.y.row, rows, cols, w.depth,
                 col > 0)
        col += cols
    finish[wide](y, w.y.row, top, total, w.logs + (head * w.queries + row) * w.item, rows, w.depth)


# ---- backward ------------------------------------------------------------------------------------

# What a tile of queries needs besides the panels of keys and values.
ctypedef struct Tile:
    char* p                          # (rows, cols): probabilities
    char* dp                         # (rows, cols): the gradients of the probabilities
    char* d                          # (rows): the sum of g * y
    char* q                          # the panels of the queries, and of g
    char* g


cdef void backward_heads(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the gradients of the heads [begin, end), tile by tile in order."""
    cdef Work* w = <Work*>context
    cdef Panels panels
    cdef Tile tile
    cdef Py_ssize_t head, row
    cdef size_t own = (2 * ROWS * COLS + ROWS + panels_size(ROWS, w.width)
                       + panels_size(ROWS, w.depth)) * w.item
    cdef size_t nbytes = own + plan_panels(w, &panels, True)
    cdef char* scratch = take_scratch(nbytes)
    if scratch == NULL:
        w.failed = True
        return
    tile.p = scratch
    tile.dp = tile.p + ROWS * COLS * w.item
    tile.d = tile.dp + ROWS * COLS * w.item
    tile.q = tile.d + ROWS * w.item
    tile.g = tile.q + panels_size(ROWS, w.width) * w.item
    panels.at = scratch + own
    for head in range(begin, end):
        row = 0
        while row < w.queries:
            backward_tile(w, head, row, &tile, &panels)
            row += ROWS
    give_scratch(scratch, nbytes)


cdef void backward_tile(const Work* w, Py_ssize_t head, Py_ssize_t row, Tile* tile,
                        Panels* panels) noexcept nogil:
    cdef bint wide = w.dtype != FLOAT32
    cdef Py_ssize_t rows = min(<Py_ssize_t>ROWS, w.queries - row), col = 0, cols
    cdef Py_ssize_t last = min(w.keys, row + rows) if w.causal else w.keys
    cdef char* q = rows_at(w, &w.q, head, row)
    cdef char* g = rows_at(w, &w.g, head, row)
    cdef char* p
    dots[wide](g, w.g.row, rows_at(w, &w.y, head, row), w.y.row, tile.d, rows, w.depth)
    pack_panels(w.dtype, q, w.q.row, 1, tile.q, rows, w.width)
    pack_panels(w.dtype, g, w.g.row, 1, tile.g, rows, w.depth)
    while col < last:
        cols = min(w.cols, last - col)
        p = panels_of(w, panels, head, col, cols)
        multiply(w, q, w.q.row, 1, p, tile.p, cols, rows, w.width, cols, False)
        probabilities[wide](tile.p, mask_at(w, head, row, col), w.mask_row, w.mask_col, w.scale,
                            w.logs + (head * w.queries + row) * w.item, rows, cols,
                            first_seen(w, row, col))
        multiply(w, g, w.g.row, 1, p + panels.keys * w.item, tile.dp, cols, rows, w.depth, cols,
                 False)
        multiply(w, tile.p, 1, cols, tile.g, rows_at(w, &w.dv, head, col), w.dv.row, cols, rows,
                 w.depth, True)
        slopes[wide](tile.p, tile.dp, tile.d, w.scale, rows, cols)
        multiply(w, tile.dp, 1, cols, tile.q, rows_at(w, &w.dk, head, col), w.dk.row, cols, rows,
                 w.width, True)
        multiply(w, tile.dp, cols, 1, p + (panels.keys + panels.values) * w.item,
                 rows_at(w, &w.dq, head, row), w.dq.row, rows, cols, w.width, col > 0)
        col += cols


# ---- called --------------------------------------------------------------------------------------

cdef bint same_lead(Tensor a, Tensor b) noexcept:
    """Whether the dims before the last two are the same."""
    cdef int d
    if a.ndim_ != b.ndim_:
        return False
    for d in range(a.ndim_ - 2):
        if a.dims[d] != b.dims[d]:
            return False
    return True


cdef int check_heads(Tensor q, Tensor k, Tensor v) except -1:
    """Raises: RuntimeError unless all have at least 2 dims, the same heads and a floating dtype."""
    cdef Tensor x
    for given in (q, k, v):
        x = <Tensor>given
        if q.ndim_ < 2 or x.type != q.type or (x.type != FLOAT32 and x.type != FLOAT64) or (
                not same_lead(q, x)):
            raise RuntimeError("attention: takes tensors of 2 dims or more with the same heads and "
                               f"one dtype, float32 or float64, got {tuple(q.shape)} and "
                               f"{tuple(x.shape)}")
    return 0


cdef int begin(Work* w, Tensor q, Tensor k, Tensor v, Tensor mask, bint causal,
               double scale) except -1:
    """Describes (*, L, E), (*, S, E) and (*, S, V), whose rows are contiguous and whose dims * are
    heads; and a mask (heads, L, S) of any strides. Raises: RuntimeError."""
    cdef int d
    w.heads = 1
    for d in range(q.ndim_ - 2):
        w.heads = times(w.heads, q.dims[d])
    d = q.ndim_ - 2
    w.queries, w.width, w.keys, w.depth = q.dims[d], q.dims[d + 1], k.dims[d], v.dims[d + 1]
    if k.dims[d + 1] != w.width or v.dims[d] != w.keys or mask is not None and (
            mask.type != q.type or mask.ndim_ != 3 or mask.dims[0] != w.heads
            or mask.dims[1] != w.queries or mask.dims[2] != w.keys):
        raise RuntimeError(f"attention: sizes do not fit: {tuple(q.shape)}, {tuple(k.shape)}, "
                           f"{tuple(v.shape)}" + ("" if mask is None else
                                                  f" and a mask {tuple(mask.shape)}"))
    w.dtype, w.item = q.type, 4 if q.type == FLOAT32 else 8
    w.inner = max(<Py_ssize_t>1, q.dims[d - 1]) if d else 1
    w.q, w.k, w.v = rows_of(q), rows_of(k), rows_of(v)
    w.causal, w.scale, w.failed, w.mask = causal, scale, False, NULL
    w.cols = COLS
    if causal:
        w.keys, w.cols = min(w.keys, w.queries), ROWS
    if mask is not None:
        w.mask = mask.data_pointer
        w.mask_head, w.mask_row, w.mask_col = mask.steps[0], mask.steps[1], mask.steps[2]
    return 0


cdef bint lies_in_rows(Tensor x) noexcept:
    """Whether rows are contiguous and do not overlap, and all dims of heads but the last can be
    walked as one."""
    cdef int d, last = x.ndim_ - 1
    if x.packed:
        return True
    if x.ndim_ < 2 or x.steps[last] != 1 or x.steps[last - 1] < x.dims[last]:
        return False
    for d in range(last - 3):
        if x.steps[d] != x.steps[d + 1] * x.dims[d + 1]:
            return False
    return True


cdef Tensor in_rows(Tensor x):
    """`x` if it `lies_in_rows`, else a copy that does."""
    return x if lies_in_rows(x) else packed_copy(x, x.type)


cdef Rows rows_of(Tensor x) noexcept:
    """Where the rows of `in_rows` are."""
    cdef Rows rows
    cdef Py_ssize_t item = 4 if x.type == FLOAT32 else 8, length
    cdef int d = x.ndim_ - 2
    rows.at = x.data_pointer
    if x.packed:           # the strides of its dims of size 1 may be anything
        length = x.dims[d] * x.dims[d + 1] * item
        rows.row, rows.inner = x.dims[d + 1], length
        rows.outer = length * x.dims[d - 1] if d else 0
    else:
        rows.row = x.steps[d]
        rows.inner = x.steps[d - 1] * item if d else 0
        rows.outer = x.steps[d - 2] * item if d > 1 else 0
    return rows


cdef Tensor new_as(Tensor x):
    """A tensor with the sizes and the layout of `x`, in rows."""
    cdef Tensor y = new_arranged_as(x, x.type)
    return y if lies_in_rows(y) else new_like(x, x.type)


cdef Tensor of_heads(Tensor mask):
    """A mask (*, L, S) as (heads, L, S)."""
    if mask is None or mask.ndim_ == 3:
        return mask
    return mask.detach().reshape((-1, *mask.shape[-2:]) if mask.numel_ else (
        prod(mask.shape[:-2]), *mask.shape[-2:]))


cdef int run(Work* w, range_fn fn, Py_ssize_t pieces, Py_ssize_t grain) except -1:
    share(fn, w, w.q.at, pieces, grain, False)
    if w.failed:
        raise MemoryError("attention: no memory for a tile")
    return 0


def attention(Tensor q, Tensor k, Tensor v, Tensor mask or None, bint causal, double scale):
    """The result (*, L, V), in the layout of the queries if V = E; and for each query the logarithm
    of the sum of exponentials, (*, L)."""
    cdef Work w
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t tiles
    cdef Tensor y, logs
    cdef int d
    mask = of_heads(mask)
    check_heads(q, k, v)
    q, k, v = in_rows(q), in_rows(k), in_rows(v)
    begin(&w, q, k, v, mask, causal, scale)
    for d in range(q.ndim_ - 1):
        dims[d] = q.dims[d]
    dims[q.ndim_ - 1] = w.depth
    y = new_as(q) if w.depth == w.width else new_tensor(q.type, q.ndim_, dims)
    logs = new_tensor(q.type, q.ndim_ - 1, dims)
    w.y, w.logs = rows_of(y), logs.data_pointer
    if logs.numel_:
        tiles = tiles_of(w.queries, ROWS)
        run(&w, forward_heads, w.heads * tiles, tiles if w.heads >= MANY else 1)
    return y, logs


def attention_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor y, Tensor logs,
                       Tensor mask or None, bint causal, double scale):
    """The gradients of `attention` for queries, keys and values, each in the layout of these."""
    cdef Work w
    cdef Tensor dq, dk, dv
    cdef int last = q.ndim_ - 1
    mask = of_heads(mask)
    check_heads(q, k, v)
    q, k, v, logs = in_rows(q), in_rows(k), in_rows(v), packed(logs)
    begin(&w, q, k, v, mask, causal, scale)
    for x in (g, y):
        if (<Tensor>x).type != q.type or not same_lead(<Tensor>x, q) or (
                (<Tensor>x).dims[last - 1] != w.queries or (<Tensor>x).dims[last] != w.depth):
            raise RuntimeError("attention: a result or its gradient does not fit, of shape "
                               f"{tuple(x.shape)}")
    if logs.type != q.type or tuple(logs.shape) != tuple(q.shape)[:last]:
        raise RuntimeError(f"attention: sums of shape {tuple(logs.shape)} do not fit")
    g, y = in_rows(g), in_rows(y)
    dq, dk, dv = new_as(q), new_as(k), new_as(v)
    if w.keys == 0:
        zero(dq)
    zero(dk)
    zero(dv)
    w.y, w.g, w.logs = rows_of(y), rows_of(g), logs.data_pointer
    w.dq, w.dk, w.dv = rows_of(dq), rows_of(dk), rows_of(dv)
    if logs.numel_:
        run(&w, backward_heads, w.heads, 1)
    return dq, dk, dv
