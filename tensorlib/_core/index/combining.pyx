"""Products and extremes of elements that meet at positions along a dim: the lines of a walk.

NaN counts as the greatest and as the least value. Half types are combined in float32.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport (
    BOOL, FLOAT32, FLOAT64, INT16, INT32, INT8, ITEMSIZE, UINT8, compute_dtype,
)
from tensorlib._core.base.items cimport number, ordered
from tensorlib._core.index.along cimport walk_over, written
from tensorlib._core.index.gather cimport line
from tensorlib._core.reduce.unsigned cimport restored, signed_order
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.copies cimport cast


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
