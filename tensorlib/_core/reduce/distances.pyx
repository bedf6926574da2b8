"""Distances between the rows of matrices (`cdist`, `pdist`), outside autograd. The kernels take the
rows of one matrix one by one, and those of the other in panels of LANES rows."""

from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport MAX_NDIM, count, times
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._kernels.products.distances cimport LANES

cdef enum:
    PIECE = 1 << 15      # differences of elements in a piece of work

ctypedef void (*away_fn)(const char* x, const char* panel, char* y, Py_ssize_t rows, Py_ssize_t m,
                         Py_ssize_t step, Py_ssize_t count) noexcept nogil
ctypedef void (*back_fn)(const char* g, const char* y, const char* x, const char* panel,
                         double* dx, Py_ssize_t rows, Py_ssize_t m, Py_ssize_t step,
                         Py_ssize_t count) noexcept nogil

NORMS = {1.0: 0, 2.0: 1, float("inf"): 2}      # where the loops of each norm are in `loops`

cdef void* loops[2 * 3][2]          # of distances, then of gradients; of float32 and float64

find_pairs("distances", ("total", "euclidean", "most", "total_back", "euclidean_back",
                         "most_back"), loops[0])

cdef struct Work:
    void* loop
    const char* x            # (batch, rows, m)
    const char* others       # (batch, count, m)
    char* panels
    char* y                  # (batch, rows, count), or a vector of those above the diagonal
    const char* g
    double* dx
    Py_ssize_t rows, count, m, panel_count, item


# ---- panels --------------------------------------------------------------------------------------

cdef void fill_panels(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copies the other rows into panels; the last one is filled up with copies of the last row."""
    cdef Work* w = <Work*>context
    cdef Py_ssize_t panel, k, l, row
    cdef const char* source
    cdef char* target
    for panel in range(begin, end):
        target = w.panels + panel * LANES * w.m * w.item
        source = w.others + panel // w.panel_count * w.count * w.m * w.item
        for l in range(<Py_ssize_t>LANES):
            row = min(panel % w.panel_count * LANES + l, w.count - 1) * w.m
            if w.item == 4:
                for k in range(w.m):
                    (<float*>target)[k * LANES + l] = (<const float*>source)[row + k]
            else:
                for k in range(w.m):
                    (<double*>target)[k * LANES + l] = (<const double*>source)[row + k]


cdef Tensor with_panels(Work* w, Tensor x, Tensor others, Py_ssize_t batch):
    """Describes packed rows in `w`, and copies `others` into panels; returns the panels' memory."""
    cdef Py_ssize_t[1] dims
    cdef Tensor panels
    w.x, w.others = x.data_pointer, others.data_pointer
    w.item = 4 if x.type == FLOAT32 else 8
    w.rows, w.m, w.count = x.dims[x.ndim_ - 2], x.dims[x.ndim_ - 1], others.dims[others.ndim_ - 2]
    w.panel_count = (w.count + LANES - 1) // LANES
    dims[0] = times(times(batch, w.panel_count), times(LANES, w.m))
    panels = new_tensor(x.type, 1, dims)
    w.panels = panels.data_pointer
    if panels.numel_:
        share(fill_panels, w, w.panels, batch * w.panel_count, 1 + PIECE // (LANES * w.m),
              panels.numel_ < RELEASE_GIL)
    return panels


cdef inline Py_ssize_t rows_in_piece(const Work* w) noexcept:
    return 1 + PIECE // (1 + times(w.count, w.m))


cdef Py_ssize_t batch_of(Tensor x) noexcept:
    cdef Py_ssize_t batch = 1
    cdef int d
    for d in range(x.ndim_ - 2):
        batch *= x.dims[d]
    return batch


cdef int refuse(str what, Tensor one, Tensor other) except -1:
    raise RuntimeError(f"cdist: {what} of shape {tuple(other.shape)} does not fit to rows of shape "
                       f"{tuple(one.shape)} and {dtype_object(one.type)}")


cdef void* loop_of(object p, int dtype, bint back) except NULL:
    place = NORMS.get(p)
    if place is None:
        raise RuntimeError(f"cdist: has no loop for p={p}")
    return loops[<int>place + 3 * back][dtype != FLOAT32]


# ---- of two matrices -----------------------------------------------------------------------------

cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the distances, or the gradients, of the rows [begin, end) of all matrices."""
    cdef Work* w = <Work*>context
    cdef Py_ssize_t batch, last, k, at, size = LANES * w.m * w.item
    cdef const char* panel
    while begin < end:
        batch = begin // w.rows
        last = min(end, (batch + 1) * w.rows)
        for k in range(w.panel_count):
            panel = w.panels + (batch * w.panel_count + k) * size
            at = (begin * w.count + k * LANES) * w.item
            if w.g == NULL:
                (<away_fn>w.loop)(w.x + begin * w.m * w.item, panel, w.y + at, last - begin, w.m,
                                  w.count, min(<Py_ssize_t>LANES, w.count - k * LANES))
            else:
                (<back_fn>w.loop)(w.g + at, w.y + at, w.x + begin * w.m * w.item, panel,
                                  w.dx + begin * w.m, last - begin, w.m, w.count,
                                  min(<Py_ssize_t>LANES, w.count - k * LANES))
        begin = last


cdef bint fits(Tensor x1, Tensor x2) noexcept:
    cdef int d
    if x1.ndim_ < 2 or x1.ndim_ != x2.ndim_ or x1.type != x2.type or KIND[x1.type] != FLOAT_KIND:
        return False
    for d in range(x1.ndim_):
        if d != x1.ndim_ - 2 and x1.dims[d] != x2.dims[d]:
            return False
    return True


def row_distances(Tensor x1, Tensor x2, p):
    """(*, P, M), (*, R, M) -> (*, P, R): the p-norms of differences of rows. Raises: RuntimeError.
    """
    cdef Work work
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor x, others, y, panels
    cdef int d, dtype = compute_dtype(x1.type)
    if not fits(x1, x2):
        refuse("a matrix", x1, x2)
    work.loop, work.g = loop_of(p, dtype, False), NULL
    x, others = packed(cast(x1, dtype)), packed(cast(x2, dtype))
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    dims[x.ndim_ - 1] = others.dims[x.ndim_ - 2]
    count("cdist", x.ndim_, dims)
    y = new_tensor(dtype, x.ndim_, dims)
    if y.numel_:
        work.y = y.data_pointer
        panels = with_panels(&work, x, others, batch_of(x))
        share(run_rows, &work, work.y, batch_of(x) * work.rows,
              rows_in_piece(&work), times(y.numel_, work.m) < RELEASE_GIL)
    return cast(y, x1.type)


def row_distances_backward(Tensor grad, Tensor x1, Tensor x2, Tensor sizes, p):
    """The gradient of `row_distances` for its first rows. Raises: RuntimeError."""
    cdef Work work
    cdef Tensor x, others, g, y, panels, dx
    cdef int dtype = compute_dtype(x1.type)
    if not fits(x1, x2):
        refuse("a matrix", x1, x2)
    if not same_shape(grad, sizes) or sizes.ndim_ != x1.ndim_ or (
            batch_of(sizes) != batch_of(x1) or
            sizes.dims[sizes.ndim_ - 1] != x2.dims[x2.ndim_ - 2] or
            sizes.dims[sizes.ndim_ - 2] != x1.dims[x1.ndim_ - 2]):
        refuse("a gradient", x1, grad)
    x, others = packed(cast(x1, dtype)), packed(cast(x2, dtype))
    g, y, dx = packed(cast(grad, dtype)), packed(cast(sizes, dtype)), new_like(x, FLOAT64)
    zero(dx)
    if y.numel_ and x.numel_:
        work.loop = loop_of(p, dtype, True)
        work.g, work.y, work.dx = g.data_pointer, y.data_pointer, <double*>dx.data_pointer
        panels = with_panels(&work, x, others, batch_of(x))
        share(run_rows, &work, work.dx, batch_of(x) * work.rows,
              rows_in_piece(&work), y.numel_ < RELEASE_GIL)
    return cast(dx, x1.type)


# ---- of the pairs of one matrix ------------------------------------------------------------------

cdef inline Py_ssize_t pair(Py_ssize_t i, Py_ssize_t j, Py_ssize_t rows) noexcept nogil:
    """Where in the vector of distances that of row i and a later row j is."""
    return i * (2 * rows - i - 1) // 2 + j - i - 1


cdef void run_pairs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the distances of the rows [begin, end) from all later ones."""
    cdef Work* w = <Work*>context
    cdef double found[LANES]
    cdef Py_ssize_t i, k, first, last
    for i in range(begin, end):
        for k in range((i + 1) // LANES, w.panel_count):
            (<away_fn>w.loop)(w.x + i * w.m * w.item, w.panels + k * LANES * w.m * w.item,
                              <char*>found, 1, w.m, LANES, LANES)
            first, last = max(i + 1, k * LANES), min(w.count, (k + 1) * LANES)
            memcpy(w.y + pair(i, first, w.rows) * w.item,
                   <char*>found + (first - k * LANES) * w.item, (last - first) * w.item)


cdef inline void of_row(const floating* source, floating* target, Py_ssize_t i, Py_ssize_t begin,
                        Py_ssize_t rows) noexcept nogil:
    """target := what `source`, with an element for each pair of rows, has for row i and the rows of
    the panel that begins with row `begin`; 0 where there is no such pair"""
    cdef Py_ssize_t l, at = pair(begin, i, rows)
    for l in range(<Py_ssize_t>LANES):
        if begin + l < i:
            target[l] = source[at]
            at += rows - 2 - begin - l
        else:
            target[l] = 0
    at = pair(i, begin, rows)
    for l in range(max(<Py_ssize_t>0, i + 1 - begin), min(<Py_ssize_t>LANES, rows - begin)):
        target[l] = source[at + l]


cdef void run_pairs_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the gradients of the rows [begin, end), to which all other rows contribute."""
    cdef Work* w = <Work*>context
    cdef double g[LANES]
    cdef double y[LANES]
    cdef Py_ssize_t i, k
    for i in range(begin, end):
        for k in range(w.panel_count):
            if w.item == 4:
                of_row(<const float*>w.g, <float*>g, i, k * LANES, w.rows)
                of_row(<const float*>w.y, <float*>y, i, k * LANES, w.rows)
            else:
                of_row(<const double*>w.g, g, i, k * LANES, w.rows)
                of_row(<const double*>w.y, y, i, k * LANES, w.rows)
            (<back_fn>w.loop)(<char*>g, <char*>y, w.x + i * w.m * w.item,
                              w.panels + k * LANES * w.m * w.item, w.dx + i * w.m, 1, w.m, LANES,
                              LANES)


cdef Py_ssize_t pairs_of(Tensor input) except -1:
    if input.ndim_ != 2 or KIND[input.type] != FLOAT_KIND:
        raise RuntimeError("pdist: takes a matrix of a floating-point dtype, got shape "
                           f"{tuple(input.shape)} of {dtype_object(input.type)}")
    return times(input.dims[0], input.dims[0] - 1) // 2 if input.dims[0] else 0


def pair_distances(Tensor input, p):
    """(N, M) -> (N * (N - 1) / 2,): the p-norms of differences of two rows. Raises: RuntimeError.
    """
    cdef Work work
    cdef Py_ssize_t[1] dims
    cdef Tensor x, y, panels
    cdef int dtype = compute_dtype(input.type)
    dims[0] = pairs_of(input)
    count("pdist", 1, dims)
    work.loop, work.g = loop_of(p, dtype, False), NULL
    x, y = packed(cast(input, dtype)), new_tensor(dtype, 1, dims)
    if y.numel_:
        work.y = y.data_pointer
        panels = with_panels(&work, x, x, 1)
        share(run_pairs, &work, work.y, work.rows, rows_in_piece(&work),
              times(y.numel_, work.m) < RELEASE_GIL)
    return cast(y, input.type)


def pair_distances_backward(Tensor grad, Tensor input, Tensor sizes, p):
    """The gradient of `pair_distances`. Raises: RuntimeError."""
    cdef Work work
    cdef Tensor x, g, y, panels, dx
    cdef int dtype = compute_dtype(input.type)
    if not same_shape(grad, sizes) or sizes.ndim_ != 1 or sizes.dims[0] != pairs_of(input):
        refuse("a gradient", input, grad)
    x, g, y = packed(cast(input, dtype)), packed(cast(grad, dtype)), packed(cast(sizes, dtype))
    dx = new_like(x, FLOAT64)
    zero(dx)
    if y.numel_ and x.numel_:
        work.loop = loop_of(p, dtype, True)
        work.g, work.y, work.dx = g.data_pointer, y.data_pointer, <double*>dx.data_pointer
        panels = with_panels(&work, x, x, 1)
        share(run_pairs_back, &work, work.dx, work.rows, rows_in_piece(&work),
              y.numel_ < RELEASE_GIL)
    return cast(dx, input.type)
