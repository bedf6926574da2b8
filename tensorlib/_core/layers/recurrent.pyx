"""Recurrent layers over a whole sequence: for each step one product and one pass of gates.

Outside autograd.

The layout is that of a packed sequence: step t has a row for each of the first sizes[t] examples,
those whose sequences have not ended. In the reverse direction the steps are taken from the last to
the first, and an example joins at the end of its sequence. Both directions are the same loop over
rows of a state.

Half types are computed in float32. But where the processor multiplies pairs of bfloat16, a state of
bfloat16 is multiplied by the weight in pairs, rounded as the result of its step is.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, FLOAT32, FLOAT_KIND, INT64, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.work cimport run_once
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.products.linear cimport transposed
from tensorlib._core.products.pair_products cimport has_pairs, round_rows
from tensorlib._core.products.panel_products cimport (
    add_row, multiply_panels, multiply_windows, pack_panels, panels_size,
)
from tensorlib._core.products.product cimport product
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, packed_copy, zero

cdef enum:
    PIECE = 1 << 12      # hidden units in a piece of work
    PRODUCTS = 1 << 18   # multiplications in a piece of work
    LEAST_PAIRED = 16    # hidden units from which on products of pairs pay

ctypedef void (*step_fn)(const char* gates, const char* moved, const char* bias, char* acts,
                         char* cell, char* cells, char* hidden, char* out, Py_ssize_t rows,
                         Py_ssize_t n) noexcept nogil
ctypedef void (*back_fn)(const char* g, const char* acts, const char* out, const char* before,
                         const char* cell_before, char* dh, char* dc, char* dz, char* dm,
                         Py_ssize_t rows, Py_ssize_t n) noexcept nogil

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

cdef step_fn steps[4][2]             # float32 and float64
cdef back_fn backs[4][2]
find_pairs("recurrent", KINDS, <void**>steps)
find_pairs("recurrent", tuple([kind + "_back" for kind in KINDS]), <void**>backs)

# For each kind: the number of gates, that of the parts kept for the gradient, whether it has cells.
cdef int[4] GATES = [4, 3, 1, 1]
cdef int[4] KEPT = [4, 4, 0, 0]

ctypedef struct Work:
    int dtype, kind
    Py_ssize_t item, n, width, kept          # n hidden units; width, kept: elements in a row
    Py_ssize_t count, rows                   # of steps, and of rows in all of them
    Py_ssize_t* sizes
    bint reverse, has_cells
    step_fn step
    back_fn back
    # of all steps
    char* gates
    char* acts
    char* cells
    char* out
    char* g
    char* before
    char* cell_before
    char* dz
    char* dm
    char* d_weight
    # of one step
    char* moved
    char* bias
    char* weight
    char* panels                             # the weight, packed for the product
    char* rounded                            # the state in bfloat16, for products of pairs,
    Py_ssize_t* places                       # with the offsets of its rows, and of pairs in a row
    char* hidden_start                       # the states before the first step
    char* cell_start
    char* hidden
    char* cell
    Py_ssize_t first                         # the first row of the current step


# ---- the loops over time -------------------------------------------------------------------------

cdef void run_step(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef Py_ssize_t row = w.first + begin, n = w.n * w.item, width = w.width * w.item
    w.step(w.gates + row * width, w.moved + begin * width, w.bias,
           w.acts + row * w.kept * w.item, w.cell + begin * n if w.has_cells else NULL,
           w.cells + row * n if w.has_cells else NULL, w.hidden + begin * n, w.out + row * n,
           end - begin, w.n)


cdef void run_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef Py_ssize_t row = w.first + begin, n = w.n * w.item, width = w.width * w.item
    w.back(w.g + row * n, w.acts + row * w.kept * w.item, w.out + row * n, w.before + row * n,
           w.cell_before + row * n if w.has_cells else NULL, w.hidden + begin * n,
           w.cell + begin * n if w.has_cells else NULL, w.dz + row * width, w.dm + row * width,
           end - begin, w.n)


cdef void run_product(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """moved := hidden @ weight.mT, for rows of the state"""
    cdef Work* w = <Work*>context
    if w.rounded != NULL:
        round_rows(w.hidden + begin * w.n * w.item, end - begin, w.n, w.rounded + begin * w.n * 2)
        multiply_windows(BFLOAT16, w.rounded, w.places + begin, w.places + w.sizes[0], w.panels,
                         w.moved + begin * w.width * w.item, end - begin, w.n // 2, w.width)
        return
    multiply_panels(w.dtype, w.hidden + begin * w.n * w.item, w.n, 1, w.panels,
                    w.moved + begin * w.width * w.item, w.width, end - begin, w.n, w.width)


cdef void run_product_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """moved := dm @ weight, for rows of the state"""
    cdef Work* w = <Work*>context
    multiply_panels(w.dtype, w.dm + (w.first + begin) * w.width * w.item, w.width, 1, w.panels,
                    w.moved + begin * w.n * w.item, w.n, end - begin, w.width, w.n)


cdef inline Py_ssize_t rows_of_piece(const Work* w) noexcept nogil:
    """How many rows of a state are a piece of work: a multiple of the six or eight that panels take
    at once. With fewer than 24, reading the panels takes longer than the product."""
    return (1 + PRODUCTS // (w.n * w.width) // 24) * 24


cdef void all_steps(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* w = <Work*>context
    cdef Py_ssize_t t, size, k = w.n if w.rounded == NULL else w.n // 2
    pack_panels(w.dtype, w.weight, 1, k, w.panels, k, w.width)
    w.first = w.rows if w.reverse else 0
    for t in range(w.count):
        size = w.sizes[w.count - 1 - t if w.reverse else t]
        if w.reverse:
            w.first -= size
        if size:
            parallel_for(run_product, w, size, rows_of_piece(w))
            parallel_for(run_step, w, size, 1 + PIECE // w.n)
        if not w.reverse:
            w.first += size


cdef void all_steps_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Runs the steps backward, from the last that was taken; sums the gradient of the weight."""
    cdef Work* w = <Work*>context
    cdef Py_ssize_t t, size
    states_before(w, w.hidden_start, w.out, w.before, w.moved)
    if w.has_cells:
        states_before(w, w.cell_start, w.cells, w.cell_before, w.moved)
    pack_panels(w.dtype, w.weight, w.n, 1, w.panels, w.width, w.n)
    w.first = 0 if w.reverse else w.rows
    for t in range(w.count):
        size = w.sizes[t if w.reverse else w.count - 1 - t]
        if not w.reverse:
            w.first -= size
        if size:
            parallel_for(run_back, w, size, 1 + PIECE // w.n)
            parallel_for(run_product_back, w, size, rows_of_piece(w))
            add_row(w.moved, w.item, w.hidden, 0, 1, size * w.n)
        if w.reverse:
            w.first += size
    if w.d_weight == NULL:
        return
    multiply_matrices(w.dtype, w.dm, 1, w.width, w.before, w.n, 1, w.d_weight, w.n, w.width, w.rows,
                      w.n)                   # dm.mT @ before


cdef void states_before(const Work* w, const char* start, const char* states, char* before,
                        char* state) noexcept nogil:
    """before := the states (rows, n) from which the steps started that led to `states`. `state` is
    memory for one state."""
    cdef Py_ssize_t t, size, first = w.rows if w.reverse else 0, n = w.n * w.item
    memcpy(state, start, w.sizes[0] * n)
    for t in range(w.count):
        size = w.sizes[w.count - 1 - t if w.reverse else t]
        if w.reverse:
            first -= size
        memcpy(before + first * n, state, size * n)
        memcpy(state, states + first * n, size * n)
        if not w.reverse:
            first += size


# ---- functions for Python ------------------------------------------------------------------------

cdef Tensor like(str what, Tensor x, Tensor gates, int dtype, tuple shape):
    """`x` packed, in the dtype to compute in. Raises: RuntimeError for another shape or dtype."""
    if tuple(x.shape) != shape or x.type != gates.type:
        raise RuntimeError(f"recurrent: expected {what} of shape {shape} and {gates.dtype}, got "
                           f"{tuple(x.shape)} and {x.dtype}")
    return packed(cast(x, dtype))


cdef int begin(Work* w, str kind, Tensor gates, Tensor hidden, tuple sizes,
               bint reverse) except -1:
    """Sets the sizes, whose memory the caller frees. Raises: RuntimeError."""
    cdef Py_ssize_t i, size
    cdef int dtype
    sizes = tuple([<Py_ssize_t>x for x in sizes])     # may run user code, so before all else
    if kind not in KINDS:
        raise ValueError(f"recurrent: {kind!r} is none of {', '.join(KINDS)}")
    if KIND[gates.type] != FLOAT_KIND or gates.ndim_ != 2 or hidden.ndim_ != 2:
        raise RuntimeError("recurrent: takes matrices of floating-point dtypes, got shapes "
                           f"{tuple(gates.shape)} and {tuple(hidden.shape)} and "
                           f"{dtype_object(gates.type)}")
    w.kind = KINDS.index(kind)
    dtype = w.dtype = compute_dtype(gates.type)
    w.item, w.n = 4 if dtype == FLOAT32 else 8, hidden.dims[1]
    w.width, w.kept, w.has_cells = GATES[w.kind] * w.n, KEPT[w.kind] * w.n, w.kind == 0
    w.reverse, w.rows, w.count = reverse, 0, len(sizes)
    w.step, w.back = steps[w.kind][dtype != FLOAT32], backs[w.kind][dtype != FLOAT32]
    w.sizes = <Py_ssize_t*>malloc((w.count + 1) * sizeof(Py_ssize_t))
    if w.sizes == NULL:
        raise MemoryError("recurrent: no memory for the sizes of steps")
    w.sizes[0] = 0
    for i in range(w.count):
        size = sizes[i]
        if not 0 <= size <= hidden.dims[0] or size > gates.dims[0] - w.rows or (
                i and size > w.sizes[i - 1]):
            raise RuntimeError("recurrent: sizes of steps must not grow, nor be more than the "
                               f"state has rows, {hidden.dims[0]}; got {sizes}")
        w.sizes[i] = size
        w.rows += size
    if w.rows != gates.dims[0] or gates.dims[1] != w.width or w.sizes[0] != hidden.dims[0]:
        raise RuntimeError(f"recurrent: gates of shape {tuple(gates.shape)} do not fit to a state "
                           f"of shape {tuple(hidden.shape)} and steps of {w.rows} rows")
    return 0


cdef Tensor matrix(int dtype, Py_ssize_t rows, Py_ssize_t columns):
    cdef Py_ssize_t[2] dims = [rows, columns]
    return new_tensor(dtype, 2, dims)


cdef Tensor room_for(const Work* w, Py_ssize_t k, Py_ssize_t n):
    """Memory for the panels of a matrix (k, n)."""
    cdef Py_ssize_t size = panels_size(k, n)
    return new_tensor(w.dtype, 1, &size)


cdef tuple cell_shape(const Work* w, Tensor hidden):
    return tuple(hidden.shape) if w.has_cells else (0, 0)


cdef tuple forward(Work* w, Tensor gates, Tensor weight, Tensor bias, Tensor hidden, Tensor cell):
    cdef int dtype = w.dtype, given = gates.type
    cdef Tensor x = packed(cast(gates, dtype))
    cdef bint paired = (given == BFLOAT16 and has_pairs() and w.n % 2 == 0
                        and w.n >= LEAST_PAIRED)
    cdef Tensor by = like("a weight", weight, gates, given if paired else dtype, (w.width, w.n))
    cdef Tensor rounded, places
    cdef Py_ssize_t i
    cdef Tensor plus = like("a bias", bias, gates, dtype, (w.width,))
    cdef Tensor h, c, out, acts, cells, moved, panels
    like("a hidden state", hidden, gates, dtype, tuple(hidden.shape))
    like("a cell state", cell, gates, dtype, cell_shape(w, hidden))
    h, c = packed_copy(hidden, dtype), packed_copy(cell, dtype)
    out, acts = matrix(dtype, w.rows, w.n), matrix(dtype, w.rows, w.kept)
    cells = matrix(dtype, w.rows, w.n) if w.has_cells else matrix(dtype, 0, 0)
    moved, panels = matrix(dtype, hidden.dims[0], w.width), room_for(w, w.n, w.width)
    w.gates, w.weight, w.bias = x.data_pointer, by.data_pointer, plus.data_pointer
    w.panels = panels.data_pointer
    w.hidden, w.cell, w.moved = h.data_pointer, c.data_pointer, moved.data_pointer
    w.out, w.acts, w.cells = out.data_pointer, acts.data_pointer, cells.data_pointer
    w.rounded = NULL
    if paired:
        rounded = matrix(BFLOAT16, hidden.dims[0], w.n)
        places = matrix(INT64, 1, w.sizes[0] + w.n // 2)
        w.rounded, w.places = rounded.data_pointer, <Py_ssize_t*>places.data_pointer
        for i in range(w.sizes[0]):
            w.places[i] = i * (w.n // 2)
        for i in range(w.n // 2):
            w.places[w.sizes[0] + i] = i
    if out.numel_:
        run_once(all_steps, w, w.out, False)
    return tuple([cast(y, given) for y in (out, h, c, acts, cells)])


def recurrent(Tensor gates, Tensor weight, Tensor bias, Tensor hidden, Tensor cell, str kind,
              tuple sizes, bint reverse):
    """The states after all steps, the last state and cell, and what the gradient needs."""
    cdef Work w
    w.sizes = NULL
    try:
        begin(&w, kind, gates, hidden, sizes, reverse)
        return forward(&w, gates, weight, bias, hidden, cell)
    finally:
        free(w.sizes)


cdef tuple backward(Work* w, Tensor g, Tensor g_hidden, Tensor g_cell, Tensor gates,
                    Tensor weight, Tensor hidden, Tensor cell, Tensor out, Tensor acts,
                    Tensor cells):
    cdef int dtype = w.dtype, given = gates.type
    cdef tuple state = tuple(hidden.shape), rows = (w.rows, w.n)
    cdef Tensor by = like("a weight", weight, gates, dtype, (w.width, w.n))
    cdef Tensor slope = like("a gradient", g, gates, dtype, rows)
    cdef Tensor after = like("results", out, gates, dtype, rows)
    cdef Tensor kept = like("what was kept", acts, gates, dtype, (w.rows, w.kept))
    cdef Tensor celled = like("cells", cells, gates, dtype, rows if w.has_cells else (0, 0))
    cdef Tensor h = like("a hidden state", hidden, gates, dtype, state)
    cdef Tensor c = like("a cell state", cell, gates, dtype, cell_shape(w, hidden))
    cdef bint paired
    cdef Tensor dh, dc, before, cell_before, dz, dm, moved, d_weight, panels
    like("a gradient of the state", g_hidden, gates, dtype, state)
    like("a gradient of the cell", g_cell, gates, dtype, cell_shape(w, hidden))
    dh, dc = packed_copy(g_hidden, dtype), packed_copy(g_cell, dtype)
    before, cell_before = new_like(after, dtype), new_like(celled, dtype)
    dz = matrix(dtype, w.rows, w.width)
    dm = dz if w.kind != 1 else matrix(dtype, w.rows, w.width)
    moved, d_weight = matrix(dtype, hidden.dims[0], w.n), matrix(dtype, w.width, w.n)
    panels = room_for(w, w.width, w.n)
    w.weight, w.panels = by.data_pointer, panels.data_pointer
    w.g, w.acts, w.cells = slope.data_pointer, kept.data_pointer, celled.data_pointer
    w.hidden_start, w.cell_start = h.data_pointer, c.data_pointer
    w.out, w.before, w.cell_before = (after.data_pointer, before.data_pointer,
                                      cell_before.data_pointer)
    w.dz, w.dm, w.moved = dz.data_pointer, dm.data_pointer, moved.data_pointer
    w.hidden, w.cell = dh.data_pointer, dc.data_pointer
    if not after.numel_:
        zero(d_weight)
        return dz, d_weight, dm, dh, dc
    paired = given == BFLOAT16 and has_pairs()
    w.d_weight = NULL if paired else d_weight.data_pointer
    run_once(all_steps_back, w, w.dz, False)
    dm, dz = cast(dm, given), None if dm is dz else cast(dz, given)
    if paired:                                      # rounded, as the results are
        d_weight = product("recurrent", transposed(dm), cast(before, given))
    return (dm if dz is None else dz, cast(d_weight, given), dm, cast(dh, given), cast(dc, given))


def recurrent_backward(Tensor g, Tensor g_hidden, Tensor g_cell, Tensor gates, Tensor weight,
                       Tensor hidden, Tensor cell, Tensor out, Tensor acts, Tensor cells, str kind,
                       tuple sizes, bint reverse):
    """The gradients of the gates, the weight, the recurrent part of the gates, the state and the
    cell."""
    cdef Work w
    w.sizes = NULL
    try:
        begin(&w, kind, gates, hidden, sizes, reverse)
        return backward(&w, g, g_hidden, g_cell, gates, weight, hidden, cell, out, acts, cells)
    finally:
        free(w.sizes)
