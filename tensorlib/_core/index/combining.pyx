"""Products and extremes of elements that meet at positions along a dim: the lines of a walk; and
reductions of pieces of a dim, which lie one after another.

NaN counts as the greatest and as the least value. Half types are combined in float32.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport (
    BOOL, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, ITEMSIZE, UINT8, compute_dtype,
)
from tensorlib._core.base.items cimport floating, number, ordered
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport share
from tensorlib._core.index.along cimport walk_over, written
from tensorlib._core.index.gather cimport line
from tensorlib._core.reduce.unsigned cimport restored, signed_order
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed


cdef bint multiply(number* x, const volatile int64_t* places, Py_ssize_t place_step,
                   Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                   Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    """x[places[i], i] *= y[i], in the order of i"""
    cdef Py_ssize_t i, place
    cdef number* run
    if place_step == 0 and x_step == sizeof(number) and y_step == sizeof(number) and n > 0:
        place = places[0]                    # a slice to one position
        if not 0 <= place < size:
            return False
        run = <number*>(<char*>x + place * along)
        for i in range(n):
            run[i] *= (<number*>y)[i]
        return True
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        (<number*>(<char*>x + place * along + i * x_step))[0] *= (<number*>(y + i * y_step))[0]
    return True


cdef inline ordered chosen(ordered a, ordered b, bint largest) noexcept nogil:
    cdef ordered most = b if b > a else a, least = b if b < a else a
    most = most if largest else least
    return b if b != b else most


cdef inline bint choose(ordered* x, const volatile int64_t* places, Py_ssize_t place_step,
                        Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                        Py_ssize_t y_step, Py_ssize_t n, bint largest) noexcept nogil:
    """x[places[i], i] := the greater or less of it and y[i], in the order of i"""
    cdef Py_ssize_t i, place
    cdef ordered* run
    if place_step == 0 and x_step == sizeof(ordered) and y_step == sizeof(ordered) and n > 0:
        place = places[0]
        if not 0 <= place < size:
            return False
        run = <ordered*>(<char*>x + place * along)
        for i in range(n):
            run[i] = chosen(run[i], (<ordered*>y)[i], largest)
        return True
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        run = <ordered*>(<char*>x + place * along + i * x_step)
        run[0] = chosen(run[0], (<ordered*>(y + i * y_step))[0], largest)
    return True


cdef bint greatest(ordered* x, const volatile int64_t* places, Py_ssize_t place_step,
                   Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                   Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    return choose(x, places, place_step, size, along, x_step, y, y_step, n, True)


cdef bint least(ordered* x, const volatile int64_t* places, Py_ssize_t place_step,
                Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    return choose(x, places, place_step, size, along, x_step, y, y_step, n, False)


cdef line line_of_products(int dtype) noexcept:
    if dtype == FLOAT32: return <line>multiply[float]
    if dtype == FLOAT64: return <line>multiply[double]
    if ITEMSIZE[dtype] == 1: return <line>multiply[uint8_t]
    if ITEMSIZE[dtype] == 2: return <line>multiply[uint16_t]
    if ITEMSIZE[dtype] == 4: return <line>multiply[uint32_t]
    return <line>multiply[uint64_t]


cdef line line_of_extremes(bint largest, int dtype) noexcept:
    if dtype == UINT8 or dtype == BOOL: return <line>(
        greatest[uint8_t] if largest else least[uint8_t])
    if dtype == INT8: return <line>(greatest[int8_t] if largest else least[int8_t])
    if dtype == INT16: return <line>(greatest[int16_t] if largest else least[int16_t])
    if dtype == INT32: return <line>(greatest[int32_t] if largest else least[int32_t])
    if dtype == FLOAT32: return <line>(greatest[float] if largest else least[float])
    if dtype == FLOAT64: return <line>(greatest[double] if largest else least[double])
    return <line>(greatest[int64_t] if largest else least[int64_t])


def combined_along(Tensor input, Tensor values, int dim, Tensor index, str reduce):
    """A copy of `input` with values combined with the elements at positions along a dim.

    reduce: "prod", "amax" or "amin". Raises: IndexError, RuntimeError, ValueError.
    """
    cdef int given = input.type
    cdef int dtype = compute_dtype(given)
    cdef Tensor x = cast(input, dtype), y = cast(values, dtype), out
    if reduce not in ("prod", "amax", "amin"):
        raise ValueError(f"combined_along: reduce must be prod, amax or amin, got {reduce!r}")
    if reduce == "prod":
        out = written(line_of_products(dtype), x, y, dim, index)
    else:
        x, y = signed_order(x), signed_order(y)
        out = restored(written(line_of_extremes(reduce == "amax", x.type), x, y, dim, index), given)
    return cast(out, given)


def combine_along(Tensor x, Tensor values, int dim, Tensor index, str reduce):
    """The same with the elements of `x` itself, of a dtype that is computed in as it is."""
    if compute_dtype(x.type) != x.type or signed_order(x) is not x:
        raise RuntimeError("combine_along: the dtype is not computed in")
    walk_over(line_of_products(x.type) if reduce == "prod" else (
        line_of_extremes(reduce == "amax", x.type)), x, values, dim, index)


# ---- pieces of a dim -----------------------------------------------------------------------------
# The elements of a piece are combined in their order, as where each goes to the position of its
# piece, and so with the same bits.

cdef enum:
    FEW = 1 << 14                # elements that are worth a chunk of work, or wait for the GIL

cdef enum Kind:
    SUM, PROD, AMAX, AMIN

KINDS = {"sum": SUM, "prod": PROD, "amax": AMAX, "amin": AMIN}

ctypedef struct Pieces:
    const char* x                # (rows, size, inner)
    char* y                      # (rows, pieces, inner)
    const int64_t* borders       # (rows, pieces + 1)
    Py_ssize_t size, inner, pieces
    double first                 # what each reduction begins with
    Kind kind
    int dtype


cdef inline floating joined(floating a, floating b, Kind kind) noexcept nogil:
    return a + b if kind == SUM else a * b if kind == PROD else chosen(a, b, kind == AMAX)


cdef inline void reduce_as(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t inner,
                           floating first, Kind kind) noexcept nogil:
    """y (inner) := the reduction of x (n, inner)"""
    cdef Py_ssize_t i, j
    cdef floating found = first
    if inner == 1:
        for i in range(n):
            found = joined(found, x[i], kind)
        y[0] = found
        return
    for j in range(inner):
        y[j] = first
    for i in range(n):
        for j in range(inner):
            y[j] = joined(y[j], x[i * inner + j], kind)


cdef inline void reduce_piece(const floating* x, floating* y, Py_ssize_t n,
                              Pieces* p) noexcept nogil:
    if p.kind == SUM:
        reduce_as(x, y, n, p.inner, <floating>p.first, SUM)
    elif p.kind == PROD:
        reduce_as(x, y, n, p.inner, <floating>p.first, PROD)
    elif p.kind == AMAX:
        reduce_as(x, y, n, p.inner, <floating>p.first, AMAX)
    else:
        reduce_as(x, y, n, p.inner, <floating>p.first, AMIN)


cdef void reduce_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Pieces* p = <Pieces*>context
    cdef Py_ssize_t at, row, low, n, place
    for at in range(begin, end):
        row = at // p.pieces
        low = p.borders[at + row]
        n = p.borders[at + row + 1] - low
        place = (row * p.size + low) * p.inner
        if p.dtype == FLOAT32:
            reduce_piece(<const float*>p.x + place, <float*>p.y + at * p.inner, n, p)
        else:
            reduce_piece(<const double*>p.x + place, <double*>p.y + at * p.inner, n, p)


cdef bint find_borders(int64_t* borders, const int64_t* given, Py_ssize_t rows, Py_ssize_t count,
                       Py_ssize_t size, bint as_lengths) noexcept:
    """borders := where pieces begin and end; False for lengths or offsets that do not fit."""
    cdef Py_ssize_t row, i
    cdef int64_t at, value
    for row in range(rows):
        at = 0
        if as_lengths:
            borders[0] = 0
            borders += 1
        for i in range(count):
            value = given[0]
            at = at + value if as_lengths and 0 <= value <= size - at else (
                value if not as_lengths and at <= value <= size else size + 1)
            if at > size:
                return False
            borders[0] = at
            given, borders = given + 1, borders + 1
        if as_lengths and at != size:
            return False
    return True


def reduced_pieces(Tensor data, Tensor given, bint as_lengths, int axis, str kind, double first):
    """The reductions of the pieces of a dim; None for what is not checked here: other dtypes, and
    lengths or offsets of the pieces that do not fit."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t rows = 1, count, borders_in_all
    cdef Pieces p
    cdef Tensor borders, places, x, y
    cdef int d
    if data.type not in (FLOAT32, FLOAT64) or given.ndim_ != axis + 1:
        return None
    p.inner, p.size, count = 1, data.dims[axis], given.dims[axis]
    p.pieces = count if as_lengths else count - 1
    for d in range(data.ndim_):
        dims[d] = data.dims[d]
        if d < axis:
            rows *= dims[d]
            if given.dims[d] != dims[d]:
                return None
        elif d > axis:
            p.inner *= dims[d]
    if p.pieces < 0:
        return None
    dims[axis] = p.pieces
    borders_in_all = given.numel_ + (rows if as_lengths else 0)
    borders, places = new_tensor(INT64, 1, &borders_in_all), packed(cast(given, INT64))
    p.borders = <const int64_t*>borders.data_pointer
    if not find_borders(<int64_t*>borders.data_pointer, <const int64_t*>places.data_pointer, rows,
                        count, p.size, as_lengths):
        return None
    x, y = packed(data), new_tensor(data.type, data.ndim_, dims)
    p.x, p.y, p.dtype, p.kind, p.first = (
        x.data_pointer, y.data_pointer, x.type, KINDS[kind], first)
    if y.numel_:
        share(reduce_all, &p, p.y, rows * p.pieces,
              1 + FEW * rows * p.pieces // max(x.numel_, <Py_ssize_t>1), x.numel_ <= FEW)
    return y
