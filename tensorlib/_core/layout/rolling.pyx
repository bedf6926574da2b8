"""`roll`: tensors shifted along dims; what leaves at one end enters at the other.

Outside autograd.

A contiguous tensor is seen as rows along the last dim that is shifted. Each row of the result is
the end of a row of the source, and then its beginning. So memory is passed once, whichever dims are
shifted.
"""

from tensorlib._core.base.blocks cimport copy_blocks, copy_run
from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, settled, wrap_dim
from tensorlib._core.base.work cimport share
from tensorlib._core.tensor.lanes cimport gives_lanes, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_view
from tensorlib._core.tiles.copies cimport copy_into, laid, packed

cdef enum:
    FEW = 1 << 13                # elements: up to so many one thread copies, and keeps the GIL
    PIECE = 1 << 16              # bytes that a thread copies at a time

ctypedef struct Rolled:
    const char* x
    char* y
    int ndim                     # of the rows
    Py_ssize_t size[MAX_NDIM]
    Py_ssize_t start[MAX_NDIM]   # the index in the source that comes first
    Py_ssize_t row               # bytes of a row
    Py_ssize_t first             # the byte of a source row that comes first
    Py_ssize_t rows
    Py_ssize_t pieces            # in which a long row is cut


cdef inline Py_ssize_t source_of(const Rolled* r, Py_ssize_t row) noexcept nogil:
    """The row of the source that this row of the result is made of."""
    cdef Py_ssize_t found = 0, step = 1, at
    cdef int d
    for d in range(r.ndim - 1, -1, -1):
        at = row % r.size[d] + r.start[d]
        row //= r.size[d]
        found += step * (at - r.size[d] if at >= r.size[d] else at)
        step *= r.size[d]
    return found


cdef inline Py_ssize_t rows_on(const Rolled* r, Py_ssize_t row) noexcept nogil:
    """How many rows of the result, from this one on, come from consecutive rows of the source."""
    cdef Py_ssize_t size, at, turn
    if r.ndim == 0:
        return 1
    size = r.size[r.ndim - 1]
    at, turn = row % size, size - r.start[r.ndim - 1]
    return (turn if at < turn else size) - at


cdef inline void copy_parts_of(const char* x, char* y, Py_ssize_t step, Py_ssize_t n,
                               Py_ssize_t nbytes) noexcept nogil:
    """Copies the same part of n rows."""
    cdef Py_ssize_t i
    if nbytes <= 32:
        copy_blocks(x, step, y, step, n, nbytes)
    else:
        for i in range(n):
            copy_run(x + i * step, y + i * step, nbytes)


cdef void copy_rows_of(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copies the rows [begin, end)."""
    cdef Rolled* r = <Rolled*>context
    cdef Py_ssize_t n, turn = r.row - r.first
    cdef const char* x
    cdef char* y
    while begin < end:
        n = min(rows_on(r, begin), end - begin)
        x, y = r.x + source_of(r, begin) * r.row, r.y + begin * r.row
        copy_parts_of(x + r.first, y, r.row, n, turn)
        copy_parts_of(x, y + turn, r.row, n, r.first)
        begin += n


cdef void copy_pieces_of(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copies the pieces [begin, end) of all rows, which are long."""
    cdef Rolled* r = <Rolled*>context
    cdef Py_ssize_t k, row, low, high, turn = r.row - r.first
    cdef const char* x
    cdef char* y
    for k in range(begin, end):
        row = k // r.pieces
        low = (k - row * r.pieces) * PIECE
        high = min(low + PIECE, r.row)
        x, y = r.x + source_of(r, row) * r.row, r.y + row * r.row
        if low < turn:
            copy_run(x + r.first + low, y + low, min(high, turn) - low)
        if high > turn:
            low = max(low, turn)
            copy_run(x + low - turn, y + low, high - low)


cdef void take_rows(Rolled* r, Py_ssize_t inner, int ndim, const Py_ssize_t* dims,
                    const Py_ssize_t* starts) noexcept:
    """Describes the rows: dims that are not shifted are merged with those before them, or with the
    `inner` bytes of an element."""
    cdef int d = ndim - 1, k
    while d > 0 and starts[d] == 0:
        inner *= dims[d]
        d -= 1
    r.row, r.first = inner * dims[d], inner * starts[d]
    r.ndim, r.rows = 0, 1
    for k in range(d):
        r.rows *= dims[k]
        if r.ndim and starts[k] == 0 and r.start[r.ndim - 1] == 0:
            r.size[r.ndim - 1] *= dims[k]
        else:
            r.size[r.ndim], r.start[r.ndim] = dims[k], starts[k]
            r.ndim += 1
    r.pieces = (r.row + PIECE - 1) // PIECE


cdef int copy_rows(Tensor x, Tensor out, int ndim, const Py_ssize_t* dims,
                   const Py_ssize_t* starts) except -1:
    """Copies contiguous tensors, seen as having these sizes, row by row."""
    cdef Rolled r
    take_rows(&r, ITEMSIZE[x.type], ndim, dims, starts)
    r.x, r.y = x.data_pointer, out.data_pointer
    if x.numel_ > FEW and r.pieces > 1:
        return share(copy_pieces_of, &r, r.y, r.rows * r.pieces, 1, False)
    return share(copy_rows_of, &r, r.y, r.rows, 1 + PIECE // r.row, x.numel_ <= FEW)


cdef int copy_parts(Tensor x, Tensor out, int d, Py_ssize_t start) except -1:
    """Copies the end and then the beginning of a tensor of any strides, shifted along one dim."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t rest = x.dims[d] - start, size = ITEMSIZE[x.type]
    cdef int k
    for k in range(x.ndim_):
        dims[k] = x.dims[k]
    dims[d] = rest
    # both as copies of views, which find the best order of the dims themselves
    copy_into(new_view(out, x.ndim_, dims, out.steps, out.data_pointer),
              new_view(x, x.ndim_, dims, x.steps, x.data_pointer + start * x.steps[d] * size))
    dims[d] = start
    return copy_into(
        new_view(out, x.ndim_, dims, out.steps, out.data_pointer + rest * out.steps[d] * size),
        new_view(x, x.ndim_, dims, x.steps, x.data_pointer))


cdef tuple several(object given):
    return given if isinstance(given, tuple) else () if given is None else (given,)


cdef bint add_shift(Py_ssize_t* start, object shift, Py_ssize_t size) except -1:
    """Adds a shift to what comes first along a dim; returns whether that moves any element."""
    cdef Py_ssize_t before = start[0]
    if not isinstance(shift, int):
        raise TypeError(f"roll: shifts must be ints, got {shift!r}")
    if size:
        start[0] = (start[0] + size - <Py_ssize_t>(shift % size)) % size
    return start[0] != before


cdef Tensor rolled_flat(Tensor input, object shift):
    """The tensor shifted as if it were a vector."""
    cdef Tensor x = packed(input), out = new_like(x, x.type)
    cdef Py_ssize_t start = 0
    add_shift(&start, shift, x.numel_)
    if out.numel_:
        copy_rows(x, out, 1, &x.numel_, &start)
    return out


cdef Tensor rolled_lanes(Tensor x, const Py_ssize_t* starts):
    """The same for images or volumes in a channels-last layout."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t first[MAX_NDIM]
    cdef Tensor out = new_like(x, x.type)
    cdef int d, at
    lay_lanes(out)
    for d in range(x.ndim_):
        at = d if d == 0 else x.ndim_ - 1 if d == 1 else d - 1
        dims[at], first[at] = x.dims[d], starts[d]
    copy_rows(x, out, x.ndim_, dims, first)
    return out


def roll(Tensor input, shifts, dims=None):
    cdef Py_ssize_t starts[MAX_NDIM]
    cdef Tensor x = input, out
    cdef int d, count = 0, last = 0
    cdef bint lanes = 4 <= x.ndim_ <= 5 and gives_lanes(x)
    cdef tuple by = several(settled(shifts)), along = several(settled(dims))
    if not along and len(by) == 1:
        return rolled_flat(x, by[0])
    if len(by) != len(along) or not by:
        raise RuntimeError(
            f"roll: shifts and dimensions must align, got {len(by)} and {len(along)}")
    if x.ndim_ == 0:
        raise IndexError(f"roll: dims {along} of a tensor without dims")
    for d in range(x.ndim_):
        starts[d] = 0
    for d in range(len(by)):
        last = wrap_dim("roll", along[d], x.ndim_)
        lanes = add_shift(&starts[last], by[d], x.dims[last]) and lanes
    for d in range(x.ndim_):
        if starts[d]:
            count, last = count + 1, d
    if lanes:                        # as PyTorch, if each shift moves something
        return rolled_lanes(laid(x, x.type, True), starts)
    if count > 1:                    # their parts are many
        x = packed(x)
    out = new_like(x, x.type)
    if out.numel_ == 0:
        return out
    if x.packed:
        copy_rows(x, out, x.ndim_, x.dims, starts)
    else:
        copy_parts(x, out, last, starts[last])
    return out
