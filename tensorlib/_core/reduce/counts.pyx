"""How often integers occur, and how many numbers fall into bins of equal widths."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT8, is_unsigned,
)
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.work cimport run_once
from tensorlib._core.reduce.schedule cimport MAX, MIN, reduce_run
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero


ctypedef fused whole:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t

cdef enum:
    FEW = 1024               # counters: up to so many a second set of them is cheap


cdef int64_t value_of(int dtype, const void* x) noexcept nogil:
    """An integer in memory."""
    if dtype == UINT8: return (<const uint8_t*>x)[0]
    if dtype == INT8: return (<const int8_t*>x)[0]
    if dtype == INT16: return (<const int16_t*>x)[0]
    if dtype == INT32: return (<const int32_t*>x)[0]
    return (<const int64_t*>x)[0]


cdef int64_t extreme(int kind, int dtype, const char* x, Py_ssize_t n) except? -1:
    """The least or the greatest of n integers; 0 or -1 if n is 0."""
    cdef Py_ssize_t[5] sizes = [1, n, 1, n, 1]
    cdef int64_t found = 0
    if n == 0:
        return 0 if kind == MIN else -1
    if reduce_run(kind, dtype, x, NULL, <char*>&found, sizes):
        raise MemoryError("bincount: no memory for extremes")
    return value_of(dtype, &found)


# Another thread may write to the integers after their bounds were found. So each is read just once
# (volatile), and checked as it is counted.

cdef void count(const volatile whole* x, int64_t* y, Py_ssize_t n, int64_t size) noexcept nogil:
    """y[x[i]] += 1; every second one in another set of counters, so that equal neighbours do not
    wait for each other"""
    cdef int64_t[FEW] others
    cdef int64_t place
    cdef Py_ssize_t i, paired = n // 2 * 2 if size <= FEW else 0
    if paired:
        memset(others, 0, size * sizeof(int64_t))
    for i in range(0, paired, 2):
        place = x[i]
        if <size_t>place < <size_t>size:
            y[place] += 1
        place = x[i + 1]
        if <size_t>place < <size_t>size:
            others[place] += 1
    for i in range(paired, n):
        place = x[i]
        if <size_t>place < <size_t>size:
            y[place] += 1
    if paired:
        for i in range(size):
            y[i] += others[i]


cdef void count_any(int dtype, const void* x, int64_t* y, Py_ssize_t n,
                    int64_t size) noexcept nogil:
    if dtype == UINT8: count(<const volatile uint8_t*>x, y, n, size)
    elif dtype == INT8: count(<const volatile int8_t*>x, y, n, size)
    elif dtype == INT16: count(<const volatile int16_t*>x, y, n, size)
    elif dtype == INT32: count(<const volatile int32_t*>x, y, n, size)
    else: count(<const volatile int64_t*>x, y, n, size)


cdef void add_weights(const volatile int64_t* x, const floating* weights, floating* y,
                      Py_ssize_t n, int64_t size) noexcept nogil:
    """y[x[i]] += weights[i]"""
    cdef Py_ssize_t i
    cdef int64_t place
    for i in range(n):
        place = x[i]
        if 0 <= place < size:
            y[place] += weights[i]


cdef void fill_bins(const floating* x, int64_t* y, Py_ssize_t n, floating low, floating high,
                    Py_ssize_t bins) noexcept nogil:
    """y[b] += the number of elements in bin b of [low, high], whose last bin has both ends

    If the width of the range is 0 or infinite in this dtype, all are counted in the middle bin.
    """
    cdef floating width = high - low, part
    cdef Py_ssize_t i, place
    for i in range(n):
        if low <= x[i] <= high:              # which NaN is not
            part = (x[i] - low) * bins / width
            place = <Py_ssize_t>part if part < bins else bins // 2 if part != part else bins - 1
            y[place] += 1


def bincount(Tensor input, Py_ssize_t least, weights=None):
    """How often each integer from 0 on occurs in a vector, or the sums of its weights.

    Raises: RuntimeError for negative integers, and for weights of another length.
    """
    cdef Tensor x, out, w
    cdef int64_t low, high
    cdef Py_ssize_t size
    cdef int epoch, dtype, given = input.type
    cdef const char* places
    cdef int64_t* counted
    cdef Py_ssize_t n
    if weights is not None or given not in (UINT8, INT8, INT16, INT32):
        given = INT64
    x = packed(cast(input, given))
    places = elements("bincount (the size of what it gives depends on the values)", x)
    n = x.numel_
    low, high = extreme(MIN, given, places, n), extreme(MAX, given, places, n)
    if low < 0 and is_unsigned(input.type):
        raise RuntimeError(f"bincount: {<uint64_t>low} is too large")
    if low < 0:
        raise RuntimeError(f"bincount: takes non-negative integers, got {low}")
    if high >= (<int64_t>1 << 59):
        raise RuntimeError(f"bincount: {high} is too large")
    size = max(least, <Py_ssize_t>high + 1)
    if weights is None:
        out = new_tensor(INT64, 1, &size)
        zero(out)
        counted = <int64_t*>out.data_pointer
        epoch = work_begins()
        with nogil:
            count_any(given, places, counted, n, size)
        work_ends(epoch)
        return out
    dtype = FLOAT32 if (<Tensor?>weights).type == FLOAT32 else FLOAT64
    w = packed(cast(weights, dtype))
    if w.numel_ != x.numel_:
        raise RuntimeError(f"bincount: got {w.numel_} weights for {x.numel_} elements")
    out = new_tensor(dtype, 1, &size)
    zero(out)
    if dtype == FLOAT32:
        add_weights(<const int64_t*>places, <const float*>w.data_pointer,
                    <float*>out.data_pointer, x.numel_, size)
    else:
        add_weights(<const int64_t*>places, <const double*>w.data_pointer,
                    <double*>out.data_pointer, x.numel_, size)
    return out


def histogram_counts(Tensor input, double low, double high, Py_ssize_t bins):
    """The numbers (int64) of elements in each of `bins` equal parts of [low, high], low < high.

    Raises: RuntimeError for no bins or a range that is empty.
    """
    cdef int dtype = FLOAT64 if input.type == FLOAT64 else FLOAT32
    cdef Tensor x = packed(cast(input, dtype)), out
    if bins < 1 or not low < high:
        raise RuntimeError(f"histc: expects bins and a range, got {bins} in [{low}, {high}]")
    out = new_tensor(INT64, 1, &bins)
    cdef Bins job
    job.x, job.y, job.dtype = x.data_pointer, <int64_t*>out.data_pointer, dtype
    job.n, job.bins, job.low, job.high = x.numel_, bins, low, high
    zero(out)
    run_once(fill_all_bins, &job, job.y, False)
    return out


cdef struct Bins:
    const char* x
    int64_t* y
    int dtype
    Py_ssize_t n, bins
    double low, high


cdef void fill_all_bins(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Bins* of = <Bins*>context
    if of.dtype == FLOAT32:
        fill_bins(<const float*>of.x, of.y, of.n, <float>of.low, <float>of.high, of.bins)
    else:
        fill_bins(<const double*>of.x, of.y, of.n, of.low, of.high, of.bins)
