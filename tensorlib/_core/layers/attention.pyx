"""Attention by tiles: no more scores are held than those of one tile of queries and keys.

Outside autograd.

Source: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
NeurIPS 2022; Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from libc.math cimport INFINITY
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport LARGEST, MAX_NDIM, times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.blas cimport MatmulArgs, matmul_run
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport packed, zero

from math import prod

from tensorlib import _kernels

cdef enum:
    ROWS = 64            # queries of a tile
    COLS = 128           # keys of a tile

ctypedef void (*online_fn)(char* s, const char* mask, Py_ssize_t mask_row, Py_ssize_t mask_col,
                           double scale, char* top, char* total, char* factor, Py_ssize_t rows,
                           Py_ssize_t n, Py_ssize_t first) noexcept nogil
ctypedef void (*gather_fn)(char* y, const char* part, const char* factor, Py_ssize_t rows,
                           Py_ssize_t n) noexcept nogil
ctypedef void (*probabilities_fn)(char* s, const char* mask, Py_ssize_t mask_row,
                                  Py_ssize_t mask_col, double scale, const char* logs,
                                  Py_ssize_t rows, Py_ssize_t n, Py_ssize_t first) noexcept nogil
ctypedef void (*finish_fn)(char* y, const char* top, const char* total, char* logs,
                           Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*dots_fn)(const char* g, const char* y, char* d, Py_ssize_t rows,
                         Py_ssize_t n) noexcept nogil
ctypedef void (*slopes_fn)(const char* p, char* dp, const char* d, double scale, Py_ssize_t rows,
                           Py_ssize_t n) noexcept nogil

cdef online_fn online[2]
cdef gather_fn gather[2]
cdef finish_fn finish[2]
cdef dots_fn dots[2]
cdef probabilities_fn probabilities[2]
cdef slopes_fn slopes[2]

ctypedef struct Work:
    int dtype
    Py_ssize_t item, heads, queries, keys, width, depth       # depth: of the values
    char* q
    char* k
    char* v
    char* y
    char* logs
    char* g
    char* dq
    char* dk
    char* dv
    char* mask                       # NULL, or with steps in elements
    Py_ssize_t mask_head, mask_row, mask_col
    double scale
    bint causal, failed


cdef int fill() except -1:
    cdef size_t address
    cdef int wide
    for name, _, dtype, address in _kernels.load("attention").table():
        wide = dtype == "float64"
        if name == "online":
            online[wide] = <online_fn>address
        elif name == "gather":
            gather[wide] = <gather_fn>address
        elif name == "finish":
            finish[wide] = <finish_fn>address
        elif name == "dots":
            dots[wide] = <dots_fn>address
        elif name == "probabilities":
            probabilities[wide] = <probabilities_fn>address
        else:
            slopes[wide] = <slopes_fn>address
    return 0


fill()


cdef inline void multiply(const Work* w, char* a, Py_ssize_t a_row, Py_ssize_t a_col, char* b,
                          Py_ssize_t b_row, Py_ssize_t b_col, char* y, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n) noexcept nogil:
    """y (m, n) := a @ b; steps in elements"""
    cdef MatmulArgs args
    args.a, args.b, args.y = a, b, y
    args.batch, args.m, args.k, args.n = 1, m, k, n
    args.a_batch = args.b_batch = args.y_batch = 0
    args.a_row, args.a_col = a_row * w.item, a_col * w.item
    args.b_row, args.b_col = b_row * w.item, b_col * w.item
    args.y_row, args.y_col = n * w.item, w.item
    matmul_run(w.dtype, &args)


cdef inline char* mask_at(const Work* w, Py_ssize_t head, Py_ssize_t row,
                          Py_ssize_t col) noexcept nogil:
    if w.mask == NULL:
        return NULL
    return w.mask + (head * w.mask_head + row * w.mask_row + col * w.mask_col) * w.item


cdef inline Py_ssize_t first_seen(const Work* w, Py_ssize_t row, Py_ssize_t col) noexcept nogil:
    return row + 1 - col if w.causal else LARGEST


cdef void forward_heads(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef bint wide = w.dtype != FLOAT32
    cdef Py_ssize_t tiles = (w.queries + ROWS - 1) // ROWS, head, row, rows, col, cols, piece, r
    cdef Py_ssize_t last
    cdef size_t nbytes = (ROWS * COLS + ROWS * w.depth + 3 * ROWS) * w.item
    cdef char* scratch = take_scratch(nbytes)
    cdef char* part
    cdef char* top
    cdef char* total
    cdef char* factor
    cdef char* y
    if scratch == NULL:
        w.failed = True
        return
    part = scratch + ROWS * COLS * w.item
    top = part + ROWS * w.depth * w.item
    total, factor = top + ROWS * w.item, top + 2 * ROWS * w.item
    for piece in range(begin, end):
        head, row = piece // tiles, piece % tiles * ROWS
        rows = min(<Py_ssize_t>ROWS, w.queries - row)
        y = w.y + (head * w.queries + row) * w.depth * w.item
        memset(total, 0, ROWS * w.item)
        memset(y, 0, rows * w.depth * w.item)
        for r in range(rows):
            if wide:
                (<double*>top)[r] = -INFINITY
            else:
                (<float*>top)[r] = -INFINITY
        last = min(w.keys, row + rows) if w.causal else w.keys
        col = 0
        while col < last:
            cols = min(<Py_ssize_t>COLS, last - col)
            multiply(w, w.q + (head * w.queries + row) * w.width * w.item, w.width, 1,
                     w.k + (head * w.keys + col) * w.width * w.item, 1, w.width, scratch, rows,
                     w.width, cols)
            online[wide](scratch, mask_at(w, head, row, col), w.mask_row, w.mask_col, w.scale, top,
                         total, factor, rows, cols, first_seen(w, row, col))
            multiply(w, scratch, cols, 1, w.v + (head * w.keys + col) * w.depth * w.item, w.depth,
                     1, part, rows, cols, w.depth)
            gather[wide](y, part, factor, rows, w.depth)
            col += cols
        finish[wide](y, top, total, w.logs + (head * w.queries + row) * w.item, rows, w.depth)
    give_scratch(scratch, nbytes)


cdef void backward_heads(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """All tiles of a head, in order"""
    cdef Work* w = <Work*>context
    cdef bint wide = w.dtype != FLOAT32
    cdef Py_ssize_t head, row, rows, col, cols, i, last, most = max(w.width, w.depth)
    cdef size_t nbytes = (2 * ROWS * COLS + max(ROWS, COLS) * most + ROWS) * w.item
    cdef char* scratch = take_scratch(nbytes)
    cdef char* dp
    cdef char* part
    cdef char* d
    cdef char* q
    cdef char* g
    cdef char* y
    if scratch == NULL:
        w.failed = True
        return
    dp = scratch + ROWS * COLS * w.item
    part = dp + ROWS * COLS * w.item
    d = part + max(ROWS, COLS) * most * w.item
    for head in range(begin, end):
        row = 0
        while row < w.queries:
            rows = min(<Py_ssize_t>ROWS, w.queries - row)
            q = w.q + (head * w.queries + row) * w.width * w.item
            g = w.g + (head * w.queries + row) * w.depth * w.item
            y = w.y + (head * w.queries + row) * w.depth * w.item
            dots[wide](g, y, d, rows, w.depth)
            last = min(w.keys, row + rows) if w.causal else w.keys
            col = 0
            while col < last:
                cols = min(<Py_ssize_t>COLS, last - col)
                i = head * w.keys + col
                multiply(w, q, w.width, 1, w.k + i * w.width * w.item, 1, w.width, scratch, rows,
                         w.width, cols)
                probabilities[wide](scratch, mask_at(w, head, row, col), w.mask_row, w.mask_col,
                                    w.scale, w.logs + (head * w.queries + row) * w.item, rows,
                                    cols, first_seen(w, row, col))
                multiply(w, scratch, 1, cols, g, w.depth, 1, part, cols, rows, w.depth)
                add(w, w.dv + i * w.depth * w.item, part, cols * w.depth)
                multiply(w, g, w.depth, 1, w.v + i * w.depth * w.item, 1, w.depth, dp, rows,
                         w.depth, cols)
                slopes[wide](scratch, dp, d, w.scale, rows, cols)
                multiply(w, dp, cols, 1, w.k + i * w.width * w.item, w.width, 1, part, rows, cols,
                         w.width)
                add(w, w.dq + (head * w.queries + row) * w.width * w.item, part, rows * w.width)
                multiply(w, dp, 1, cols, q, w.width, 1, part, cols, rows, w.width)
                add(w, w.dk + i * w.width * w.item, part, cols * w.width)
                col += cols
            row += rows
    give_scratch(scratch, nbytes)


cdef inline void add(const Work* w, char* y, const char* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if w.dtype == FLOAT32:
        for i in range(n):
            (<float*>y)[i] += (<float*>x)[i]
    else:
        for i in range(n):
            (<double*>y)[i] += (<double*>x)[i]


cdef bint same_lead(Tensor a, Tensor b) noexcept:
    """Whether the dims before the last two are the same."""
    cdef int d
    if a.ndim_ != b.ndim_:
        return False
    for d in range(a.ndim_ - 2):
        if a.dims[d] != b.dims[d]:
            return False
    return True


cdef int begin(Work* w, Tensor q, Tensor k, Tensor v, Tensor mask, bint causal,
               double scale) except -1:
    """Takes (*, L, E), (*, S, E) and (*, S, V) row by row, all dims * being heads, and a mask
    (heads, L, S) of any strides. Raises: RuntimeError."""
    cdef Tensor x
    cdef int d
    for given in (q, k, v):
        x = <Tensor>given
        if q.ndim_ < 2 or x.type != q.type or (x.type != FLOAT32 and x.type != FLOAT64) or (
                not same_lead(q, x)):
            raise RuntimeError("attention: takes tensors of 2 dims or more with the same heads and "
                               f"one dtype, float32 or float64, got {tuple(q.shape)} and "
                               f"{tuple(x.shape)}")
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
    w.q, w.k, w.v = q.data_pointer, k.data_pointer, v.data_pointer
    w.causal, w.scale, w.failed, w.mask = causal, scale, False, NULL
    if mask is not None:
        w.mask = mask.data_pointer
        w.mask_head, w.mask_row, w.mask_col = mask.steps[0], mask.steps[1], mask.steps[2]
    return 0


cdef Tensor of_heads(Tensor mask):
    """A mask (*, L, S) as (heads, L, S)."""
    if mask is None or mask.ndim_ == 3:
        return mask
    return mask.detach().reshape((-1, *mask.shape[-2:]) if mask.numel_ else (
        prod(mask.shape[:-2]), *mask.shape[-2:]))


cdef int run(Work* w, range_fn fn, Py_ssize_t pieces) except -1:
    share(fn, w, w.q, pieces, 1, False)
    if w.failed:
        raise MemoryError("attention: no memory for a tile")
    return 0


def attention(Tensor q, Tensor k, Tensor v, Tensor mask or None, bint causal, double scale):
    """The result (*, L, V), and the logarithms of the sums of exponentials (*, L)."""
    cdef Work w
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor y, logs
    cdef int d
    q, k, v, mask = packed(q), packed(k), packed(v), of_heads(mask)
    begin(&w, q, k, v, mask, causal, scale)
    for d in range(q.ndim_ - 1):
        dims[d] = q.dims[d]
    dims[q.ndim_ - 1] = w.depth
    y, logs = new_tensor(q.type, q.ndim_, dims), new_tensor(q.type, q.ndim_ - 1, dims)
    w.y, w.logs = y.data_pointer, logs.data_pointer
    if logs.numel_:
        run(&w, forward_heads, w.heads * ((w.queries + ROWS - 1) // ROWS))
    return y, logs


def attention_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor y, Tensor logs,
                       Tensor mask or None, bint causal, double scale):
    """The gradients of `attention` for queries, keys and values."""
    cdef Work w
    cdef Tensor dq, dk, dv
    cdef int last = q.ndim_ - 1
    g, q, k, v, y, logs = (packed(g), packed(q), packed(k), packed(v), packed(y), packed(logs))
    mask = of_heads(mask)
    begin(&w, q, k, v, mask, causal, scale)
    for x in (g, y):
        if (<Tensor>x).type != q.type or not same_lead(<Tensor>x, q) or (
                (<Tensor>x).dims[last - 1] != w.queries or (<Tensor>x).dims[last] != w.depth):
            raise RuntimeError("attention: a result or its gradient does not fit, of shape "
                               f"{tuple(x.shape)}")
    if logs.type != q.type or tuple(logs.shape) != tuple(q.shape)[:last]:
        raise RuntimeError(f"attention: sums of shape {tuple(logs.shape)} do not fit")
    dq, dk, dv = new_like(q, q.type), new_like(k, q.type), new_like(v, q.type)
    zero(dq)
    zero(dk)
    zero(dv)
    w.y, w.logs, w.g = y.data_pointer, logs.data_pointer, g.data_pointer
    w.dq, w.dk, w.dv = dq.data_pointer, dk.data_pointer, dv.data_pointer
    if logs.numel_:
        run(&w, backward_heads, w.heads)
    return dq, dk, dv
