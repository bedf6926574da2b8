"""`scatter_reduce` by product, maximum or minimum, as loops for the walk along lines (gather.pyx);
and reductions of the segments of a dim, which follow one another.

A NaN makes a maximum and a minimum NaN. Half types are combined in float32.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport (
    BOOL, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, ITEMSIZE, UINT8, compute_dtype,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport share
from tensorlib._core.index.scatter_along cimport walk_over, written_copy
from tensorlib._core.index.gather cimport line_loop
from tensorlib._core.reduce.unsigned cimport restored, signed_order
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed


# Signed integers are multiplied as unsigned ones: they have the same bits, and C defines overflow.
ctypedef fused combined:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

cdef enum Kind:
    SUM, PROD, AMAX, AMIN


cdef inline combined joined(combined a, combined b, Kind kind) noexcept nogil:
    """The sum, the product, the maximum or the minimum of two elements."""
    cdef combined most = b if b > a else a, least = b if b < a else a
    if kind == SUM:
        return a + b
    if kind == PROD:
        return a * b
    most = most if kind == AMAX else least
    return b if b != b else most


cdef inline bint join(combined* x, const volatile int64_t* places, Py_ssize_t place_step,
                      Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                      Py_ssize_t y_step, Py_ssize_t n, Kind kind) noexcept nogil:
    """x[places[i], i] := joined(x[places[i], i], y[i]), in the order of i"""
    cdef Py_ssize_t i, place
    cdef combined* run
    if place_step == 0 and x_step == sizeof(combined) and y_step == sizeof(combined) and n > 0:
        place = places[0]                    # the line is a contiguous slice at one position
        if not 0 <= place < size:
            return False
        run = <combined*>(<char*>x + place * along)
        for i in range(n):
            run[i] = joined(run[i], (<combined*>y)[i], kind)
        return True
    for i in range(n):
        place = places[i * place_step]
        if not 0 <= place < size:
            return False
        run = <combined*>(<char*>x + place * along + i * x_step)
        run[0] = joined(run[0], (<combined*>(y + i * y_step))[0], kind)
    return True


cdef bint product_line(combined* x, const volatile int64_t* places, Py_ssize_t place_step,
                       Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                       Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    return join(x, places, place_step, size, along, x_step, y, y_step, n, PROD)


cdef bint max_line(combined* x, const volatile int64_t* places, Py_ssize_t place_step,
                   Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                   Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    return join(x, places, place_step, size, along, x_step, y, y_step, n, AMAX)


cdef bint min_line(combined* x, const volatile int64_t* places, Py_ssize_t place_step,
                   Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                   Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    return join(x, places, place_step, size, along, x_step, y, y_step, n, AMIN)


cdef line_loop line_of_products(int dtype) noexcept:
    """The loop that multiplies along a line."""
    if dtype == FLOAT32: return <line_loop>product_line[float]
    if dtype == FLOAT64: return <line_loop>product_line[double]
    if ITEMSIZE[dtype] == 1: return <line_loop>product_line[uint8_t]
    if ITEMSIZE[dtype] == 2: return <line_loop>product_line[uint16_t]
    if ITEMSIZE[dtype] == 4: return <line_loop>product_line[uint32_t]
    return <line_loop>product_line[uint64_t]


cdef line_loop line_of_extremes(bint largest, int dtype) noexcept:
    """The loop that takes maxima, or minima, along a line."""
    if dtype == UINT8 or dtype == BOOL: return <line_loop>(
        max_line[uint8_t] if largest else min_line[uint8_t])
    if dtype == INT8: return <line_loop>(max_line[int8_t] if largest else min_line[int8_t])
    if dtype == INT16: return <line_loop>(max_line[int16_t] if largest else min_line[int16_t])
    if dtype == INT32: return <line_loop>(max_line[int32_t] if largest else min_line[int32_t])
    if dtype == FLOAT32: return <line_loop>(max_line[float] if largest else min_line[float])
    if dtype == FLOAT64: return <line_loop>(max_line[double] if largest else min_line[double])
    return <line_loop>(max_line[int64_t] if largest else min_line[int64_t])


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
        out = written_copy(line_of_products(dtype), x, y, dim, index)
    else:
        x, y = signed_order(x), signed_order(y)
        out = restored(written_copy(line_of_extremes(reduce == "amax", x.type), x, y, dim, index),
                       given)
    return cast(out, given)


def combine_along(Tensor x, Tensor values, int dim, Tensor index, str reduce):
    """Combines values with the elements of `x` itself, as `combined_along` does in a copy.

    Raises: RuntimeError, also for a dtype that is not computed in; IndexError.
    """
    if compute_dtype(x.type) != x.type or signed_order(x) is not x:
        raise RuntimeError("combine_along: the dtype is not computed in")
    walk_over(line_of_products(x.type) if reduce == "prod" else (
        line_of_extremes(reduce == "amax", x.type)), x, values, dim, index)


# ---- segments of a dim ---------------------------------------------------------------------------
# The elements of a segment are joined in order, as if each were scattered to the position of its
# segment: so both ways give the same bits.

cdef enum:
    FEW = 1 << 14                # elements: a thread's least share, and up to so many keep the GIL

KINDS = {"sum": SUM, "prod": PROD, "amax": AMAX, "amin": AMIN}

ctypedef struct Segments:
    const char* x                # (rows, size, inner)
    char* y                      # (rows, segments, inner)
    const int64_t* offsets       # (rows, segments + 1)
    Py_ssize_t size, inner, segments
    double first                 # what each reduction begins with
    Kind kind
    int dtype


cdef inline void reduce_rows(const floating* x, floating* y, Py_ssize_t n, Py_ssize_t inner,
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


cdef inline void reduce_segment(const floating* x, floating* y, Py_ssize_t n,
                                Segments* p) noexcept nogil:
    """`reduce_rows`, compiled for each kind of reduction"""
    if p.kind == SUM:
        reduce_rows(x, y, n, p.inner, <floating>p.first, SUM)
    elif p.kind == PROD:
        reduce_rows(x, y, n, p.inner, <floating>p.first, PROD)
    elif p.kind == AMAX:
        reduce_rows(x, y, n, p.inner, <floating>p.first, AMAX)
    else:
        reduce_rows(x, y, n, p.inner, <floating>p.first, AMIN)


cdef void reduce_segments(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Reduces the segments [begin, end) of all rows."""
    cdef Segments* p = <Segments*>context
    cdef Py_ssize_t at, row, low, n, place
    for at in range(begin, end):
        row = at // p.segments
        low = p.offsets[at + row]
        n = p.offsets[at + row + 1] - low
        place = (row * p.size + low) * p.inner
        if p.dtype == FLOAT32:
            reduce_segment(<const float*>p.x + place, <float*>p.y + at * p.inner, n, p)
        else:
            reduce_segment(<const double*>p.x + place, <double*>p.y + at * p.inner, n, p)


cdef bint find_offsets(int64_t* offsets, const int64_t* given, Py_ssize_t rows, Py_ssize_t count,
                       Py_ssize_t size, bint as_lengths) noexcept:
    """offsets := where segments begin and end; False for lengths or offsets that do not fit."""
    cdef Py_ssize_t row, i
    cdef int64_t at, value
    for row in range(rows):
        at = 0
        if as_lengths:
            offsets[0] = 0
            offsets += 1
        for i in range(count):
            value = given[0]
            at = at + value if as_lengths and 0 <= value <= size - at else (
                value if not as_lengths and at <= value <= size else size + 1)
            if at > size:
                return False
            offsets[0] = at
            given, offsets = given + 1, offsets + 1
        if as_lengths and at != size:
            return False
    return True


def segment_reduced(Tensor data, Tensor given, bint as_lengths, int axis, str kind, double first):
    """The reductions of the segments of a dim, in float32 or float64.

    None for other dtypes, and for lengths or offsets that do not fit: those the caller handles.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t rows = 1, count, n_offsets
    cdef Segments p
    cdef Tensor offsets, places, x, y
    cdef int d
    if data.type not in (FLOAT32, FLOAT64) or given.ndim_ != axis + 1:
        return None
    p.inner, p.size, count = 1, data.dims[axis], given.dims[axis]
    p.segments = count if as_lengths else count - 1
    for d in range(data.ndim_):
        dims[d] = data.dims[d]
        if d < axis:
            rows *= dims[d]
            if given.dims[d] != dims[d]:
                return None
        elif d > axis:
            p.inner *= dims[d]
    if p.segments < 0:
        return None
    dims[axis] = p.segments
    n_offsets = given.numel_ + (rows if as_lengths else 0)
    offsets, places = new_tensor(INT64, 1, &n_offsets), packed(cast(given, INT64))
    p.offsets = <const int64_t*>offsets.data_pointer
    if not find_offsets(<int64_t*>offsets.data_pointer, <const int64_t*>places.data_pointer, rows,
                        count, p.size, as_lengths):
        return None
    x, y = packed(data), new_tensor(data.type, data.ndim_, dims)
    p.x, p.y, p.dtype, p.kind, p.first = (
        x.data_pointer, y.data_pointer, x.type, KINDS[kind], first)
    if y.numel_:
        share(reduce_segments, &p, p.y, rows * p.segments,
              1 + FEW * rows * p.segments // max(x.numel_, <Py_ssize_t>1), x.numel_ <= FEW)
    return y
