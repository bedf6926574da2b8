"""Binary searches: where values belong in sorted rows."""

from libc.stdint cimport int32_t, int64_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, INT32, INT64, KIND, promote, signed_twin,
)
from tensorlib._core.base.work cimport run_once
from tensorlib._core.reduce.unsigned cimport signed_order
from tensorlib._core.tensor.tensor cimport Tensor, alias, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed

cdef enum:
    TOGETHER = 16            # searches that wait for memory at the same time

ctypedef fused number:
    int32_t
    int64_t
    float
    double


cdef inline bint passes(number mid, number value, bint right) noexcept nogil:
    """Whether the value belongs behind this element. NaN belongs behind all."""
    return not (mid > value if right else mid >= value)


cdef inline void search_by(const number* x, Py_ssize_t n, const number* values, int64_t* y,
                           Py_ssize_t count, bint right) noexcept nogil:
    """Several searches go on in step, without branches: one alone waits for memory at each."""
    cdef Py_ssize_t at[TOGETHER]
    cdef Py_ssize_t i, k, left, half, width
    for i in range(0, count, 16):             # TOGETHER; Cython wants the sign of a step
        width = min(<Py_ssize_t>TOGETHER, count - i)
        for k in range(width):
            at[k] = 0
        left = n
        while left > 1:
            half = left // 2
            for k in range(width):
                at[k] += half & -<Py_ssize_t>passes(x[at[k] + half - 1], values[i + k], right)
            left -= half
        for k in range(width):
            y[i + k] = at[k] + (n > 0 and passes(x[at[k]], values[i + k], right))


cdef void search(const number* x, Py_ssize_t n, const number* values, int64_t* y,
                 Py_ssize_t count, bint right) noexcept nogil:
    """y := how many of the n sorted elements are below each value (`right`: or equal to it)"""
    if right:                                # each with the one comparison that it needs
        search_by(x, n, values, y, count, True)
    else:
        search_by(x, n, values, y, count, False)


cdef void search_rows(const number* x, Py_ssize_t rows, Py_ssize_t n, const number* values,
                      int64_t* y, Py_ssize_t count, bint right) noexcept nogil:
    """The search in each row for its own `count` values."""
    cdef Py_ssize_t row
    for row in range(rows):
        search(x + row * n, n, values + row * count, y + row * count, count, right)


def insertion_places(Tensor sequence, Tensor values, bint right):
    """int64 positions in the rows of `sequence`: one row for all values, or one for each row.

    Raises: RuntimeError for other numbers of rows.
    """
    sequence, values = alias(sequence), alias(values)  # while one is copied, others may change both
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
    job.dtype, job.rows, job.n, job.count, job.right = dtype, rows, n, count, right
    run_once(search_all, &job, job.y, False)
    return out


cdef struct Search:
    const char* x
    const char* wanted
    int64_t* y
    Py_ssize_t rows, n, count
    int dtype
    bint right


cdef void search_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Search* of = <Search*>context
    if of.dtype == INT32:
        search_rows(<const int32_t*>of.x, of.rows, of.n, <const int32_t*>of.wanted, of.y, of.count,
                    of.right)
    elif of.dtype == INT64:
        search_rows(<const int64_t*>of.x, of.rows, of.n, <const int64_t*>of.wanted, of.y, of.count,
                    of.right)
    elif of.dtype == FLOAT32:
        search_rows(<const float*>of.x, of.rows, of.n, <const float*>of.wanted, of.y, of.count,
                    of.right)
    else:
        search_rows(<const double*>of.x, of.rows, of.n, <const double*>of.wanted, of.y, of.count,
                    of.right)
