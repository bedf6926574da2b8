"""Binary searches: where values belong in sorted rows."""

from libc.stdint cimport int32_t, int64_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, INT32, INT64, KIND, promote, signed_twin,
)
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.unsigned cimport signed_order
from tensorlib._core.tensor.tensor cimport Tensor, alias, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed

cdef enum:
    TOGETHER = 16            # searches that go on in step, so that their cache misses overlap
    GRAIN = 2048             # searches that a thread does at least: 10 us
    BRIEF = 128              # up to so many searches the GIL is kept: less than 1 us

ctypedef fused number:
    int32_t
    int64_t
    float
    double


cdef struct Search:
    const char* x
    const char* wanted
    int64_t* y
    Py_ssize_t n, count
    int dtype
    bint right, parts                # parts: the places go through `as_parts`


cdef inline bint passes(number mid, number value, bint right) noexcept nogil:
    """Whether the value belongs after this element. NaN belongs after all elements."""
    return not (mid > value if right else mid >= value)


cdef inline void search_by(const number* x, Py_ssize_t n, const number* values, int64_t* y,
                           Py_ssize_t count, bint right) noexcept nogil:
    """y := the places of the values, by TOGETHER binary searches in step, without branches"""
    cdef number[TOGETHER] wanted
    cdef int64_t[TOGETHER] at
    cdef int64_t left, half
    cdef Py_ssize_t i, k
    for i in range(0, count, 16):             # TOGETHER, as a literal: the sign must be known
        for k in range(TOGETHER):             # filled up with the last value
            wanted[k] = values[min(i + k, count - 1)]
            at[k] = 0
        left = n
        while left > 1:
            half = left // 2
            for k in range(TOGETHER):
                at[k] += half & -<int64_t>passes(x[at[k] + half - 1], wanted[k], right)
            left -= half
        for k in range(min(<Py_ssize_t>TOGETHER, count - i)):
            y[i + k] = at[k] + (n > 0 and passes(x[at[k]], wanted[k], right))


cdef void search(const number* x, Py_ssize_t n, const number* values, int64_t* y,
                 Py_ssize_t count, bint right) noexcept nogil:
    """y := how many of the n sorted elements are below each value (`right`: or equal to it)"""
    if right:                                # a specialised loop for each comparison
        search_by(x, n, values, y, count, True)
    else:
        search_by(x, n, values, y, count, False)


cdef void search_in(const number* x, Search* of, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Finds the places of the values [begin, end), of which each row has `count`."""
    cdef const number* values = <const number*>of.wanted
    cdef Py_ssize_t row, count
    while begin < end:
        row = begin // of.count
        count = min(end, (row + 1) * of.count) - begin
        search(x + row * of.n, of.n, values + begin, of.y + begin, count, of.right)
        if of.parts:
            as_parts(x, of.n, values + begin, of.y + begin, count)
        begin += count


cdef void as_parts(const number* x, Py_ssize_t n, const number* values, int64_t* y,
                   Py_ssize_t count) noexcept nogil:
    """Turns places among n edges (`right`) into the numbers of parts between edges, from 1 on.

    The last edge is in the last part. What lies outside all parts, or is NaN, gets 0.
    """
    cdef Py_ssize_t i
    cdef int64_t last
    for i in range(count):
        last = n - 1 if values[i] == x[n - 1] else y[i]
        y[i] = last & -<int64_t>((values[i] >= x[0]) & (values[i] <= x[n - 1]))


def insertion_places(Tensor sequence, Tensor values, bint right):
    """int64 positions in the rows of `sequence`: one row for all values, or one for each row.

    Raises: RuntimeError for other numbers of rows.
    """
    return found_places(sequence, values, right, False)


def parts_of(str name, Tensor edges, Tensor values):
    """For each value the number (int64) of the part between two edges that it is in, from 1 on.

    The last edge is in the last part. What is outside all parts, or NaN, has the number 0.
    Raises: RuntimeError unless the edges are a vector of at least 2.
    """
    if edges.ndim_ != 1 or edges.dims[0] < 2:
        raise RuntimeError(f"{name}: bins must be a vector of at least 2 edges, got shape "
                           f"{list(edges.shape)}")
    return found_places(edges, values, True, True)


cdef Tensor found_places(Tensor sequence, Tensor values, bint right, bint parts):
    sequence, values = alias(sequence), alias(values)  # threads may change them during a copy
    cdef int dtype = promote("searchsorted", sequence.type, values.type), d
    cdef Py_ssize_t rows = 1, count = values.numel_, n
    cdef bint fits = sequence.ndim_ == 1 or sequence.ndim_ == values.ndim_ > 0
    cdef Tensor x, at, out
    if KIND[dtype] == FLOAT_KIND:
        dtype = FLOAT64 if dtype == FLOAT64 else FLOAT32
    elif signed_twin(dtype) != dtype:
        sequence, values = signed_order(sequence), signed_order(values)
        dtype = sequence.type
    if KIND[dtype] != FLOAT_KIND:
        dtype = INT64 if dtype == INT64 else INT32
    if fits and sequence.ndim_ > 1:
        count = values.dims[values.ndim_ - 1]
        for d in range(values.ndim_ - 1):
            fits &= values.dims[d] == sequence.dims[d]
            rows *= sequence.dims[d]
    if not fits:
        raise RuntimeError(
            "searchsorted: boundaries must be 1-dimensional, or have the dims of the values but "
            f"for the last, got shapes {list(sequence.shape)} and {list(values.shape)}")
    n = sequence.dims[sequence.ndim_ - 1]
    x, at = packed(cast(sequence, dtype)), packed(cast(values, dtype))
    out = new_tensor(INT64, values.ndim_, values.dims)
    cdef Search job
    job.x, job.wanted, job.y = x.data_pointer, at.data_pointer, <int64_t*>out.data_pointer
    job.dtype, job.n, job.count, job.right, job.parts = dtype, n, count, right, parts
    share(search_all, &job, job.y, rows * count, GRAIN, rows * count <= BRIEF)
    return out


cdef void search_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Search* of = <Search*>context
    if of.dtype == INT32:
        search_in(<const int32_t*>of.x, of, begin, end)
    elif of.dtype == INT64:
        search_in(<const int64_t*>of.x, of, begin, end)
    elif of.dtype == FLOAT32:
        search_in(<const float*>of.x, of, begin, end)
    else:
        search_in(<const double*>of.x, of, begin, end)
