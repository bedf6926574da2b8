"""New tensors of evenly spaced numbers, identity matrices, triangles of matrices."""

from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_Check
from cpython.long cimport PyLong_AsSsize_t
from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.math cimport ceil, isfinite, pow
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX64, COMPLEX128, COMPLEX_KIND, FLOAT32, FLOAT64, FLOAT_KIND, INT64, INTEGER_KIND,
    ITEMSIZE, KIND, UINT64, dtype_object, default_float,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.create.creation cimport (
    Bits, allotted, check_options, chosen_dtype, finish, number_bits, plain_number, run_over, zero,
)
from tensorlib._core.layout.views cimport reshaped
from tensorlib._core.tensor.tensor cimport Tensor, new_like
from tensorlib._core.tiles.copies cimport cast, packed_copy

from tensorlib._core.interpreters.recording import UnsupportedDtype
from tensorlib._core.layout.views import empty
from tensorlib._core.tensor.numbers import OutOfRangeError

cdef extern from "<complex.h>" nogil:
    double complex cpow(double complex base, double complex exponent)

cdef enum:
    RAMP_GRAIN = 1 << 15         # elements written by a thread at once
    LONG = 384                   # bytes of a row from which on its parts are copied by themselves


# ---- evenly spaced -------------------------------------------------------------------------------

# Element i of n is start + i * step, or, in the second half, stop - (n - 1 - i) * step.
cdef struct Ramp:
    char* y
    double start, step, stop
    uint64_t first, stride       # of integers, which wrap as int64 and uint64 do
    Py_ssize_t half, last


cdef void ramp_integers(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Ramp* ramp = <Ramp*>context
    cdef uint64_t* y = <uint64_t*>ramp.y
    cdef uint64_t value = ramp.first + <uint64_t>begin * ramp.stride, stride = ramp.stride
    cdef Py_ssize_t i
    for i in range(begin, end):
        y[i] = value
        value += stride


cdef inline void ramp_reals(floating* y, Ramp* ramp, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t middle = min(max(ramp.half, begin), end)
    steps_from(y + begin, ramp.start, ramp.step, 0, begin, middle)
    steps_from(y + middle, ramp.stop, ramp.step, ramp.last, middle, end)


cdef inline void steps_from(floating* y, double start, double step, Py_ssize_t origin,
                            Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y[i - begin] := start + (i - origin) * step; an int is sooner a double than a Py_ssize_t,
    and the sums are exact"""
    cdef double first
    cdef int k, n
    while begin < end:
        first = <double>(begin - origin)
        n = <int>min(end - begin, <Py_ssize_t>RAMP_GRAIN)
        for k in range(n):
            y[k] = <floating>(start + (first + <double>k) * step)
        y += n
        begin += n


cdef void ramp_floats(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    ramp_reals(<float*>(<Ramp*>context).y, <Ramp*>context, begin, end)


cdef void ramp_doubles(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    ramp_reals(<double*>(<Ramp*>context).y, <Ramp*>context, begin, end)


cdef Tensor run_ramp(str name, Ramp* ramp, Py_ssize_t n, int dtype, object device):
    """A vector of int64, float32 or float64."""
    cdef Tensor x = allotted(name, dtype, 1, &n, device)
    ramp.y = x.data_pointer
    if dtype == INT64:
        run_over(ramp_integers, ramp, x, RAMP_GRAIN)
    elif dtype == FLOAT32:
        run_over(ramp_floats, ramp, x, RAMP_GRAIN)
    else:
        run_over(ramp_doubles, ramp, x, RAMP_GRAIN)
    return x


def arange(start=None, end=None, step=1, *, out=None, dtype=None, layout=None, device=None,
           pin_memory=False, requires_grad=False):
    """The numbers start, start + step, ... before `end`.

    `arange(end)` counts from 0. The dtype is int64 if all are integers, else the default one.
    Shapes: (ceil((end - start) / step),).
    Raises: RuntimeError for a step of 0 or away from `end` and for infinite ranges, TypeError for
    what is not a number, OutOfRangeError for numbers that the dtype can't hold and for a step that
    int64 cuts to 0.

    >>> tensorlib.arange(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """
    cdef int id
    if end is None:
        start, end = 0, start
    start = plain_number("arange", "start", 0 if start is None else start)
    end = plain_number("arange", "end", end)
    step = plain_number("arange", "step", step)
    check_options("arange", layout, device, pin_memory)
    reals = PyFloat_Check(start) or PyFloat_Check(end) or PyFloat_Check(step)
    id = chosen_dtype("arange", dtype, out, default_float() if reals else INT64)
    if not (isfinite(start) and isfinite(end) and isfinite(step)):
        raise RuntimeError(f"arange: unsupported range: {start} -> {end} in steps of {step}")
    if KIND[id] == INTEGER_KIND:
        x = integer_range(start, end, step, id, device)
    elif KIND[id] == FLOAT_KIND:
        x = real_range(start, end, step, id, device)
    else:
        raise UnsupportedDtype(f"arange: not implemented for {dtype_object(id)}")
    return finish("arange", in_order(x, out), out, requires_grad)


cdef Tensor in_order(Tensor x, object out):
    """`x` in the shape of an `out` of as many elements, which keeps it."""
    if not isinstance(out, Tensor) or (<Tensor>out).numel_ != x.numel_:
        return x
    return reshaped("out", x, (<Tensor>out).ndim_, (<Tensor>out).dims, False)


cdef int check_direction(object start, object end, object step) except -1:
    if step == 0:
        raise RuntimeError("arange: step must not be 0")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError(
            f"arange: the bounds are inconsistent with the sign of the step: {start} -> {end} in "
            f"steps of {step}")
    return 0


cdef Py_ssize_t checked_count(object n) except -1:
    if n > 1 << 59:
        raise RuntimeError(f"arange: {n} elements are too many")
    return int(n)


cdef Tensor integer_range(object start, object end, object step, int id, object device):
    """Integers of any width. As in PyTorch, int64 cuts the bounds before it counts, others do not;
    uint64 does, whose bounds a double may not hold either."""
    cdef Ramp ramp
    cdef Py_ssize_t n
    cdef Tensor x
    if id == INT64 or id == UINT64:
        if step and not int(step):
            raise OutOfRangeError(f"arange: step must not be 0 as an integer, got {step}")
        start, end, step = int(start), int(end), int(step)
        check_direction(start, end, step)
        n = checked_count(-((start - end) // step))
    else:
        check_direction(start, end, step)
        n = checked_count(ceil((<double>end - <double>start) / <double>step))
    start, step = int(start), int(step)
    if n:
        check_fits("arange", start, id)
        check_fits("arange", start + (n - 1) * step, id)
    ramp.first = <uint64_t>(start % 2**64) if n else 0        # uint64 wraps in between
    ramp.stride = <uint64_t>(step % 2**64) if n > 1 else 0
    return cast(run_ramp("arange", &ramp, n, INT64, device), id)


cdef int check_fits(str name, object value, int id) except -1:
    cdef Bits bits
    return number_bits(name, value, id, &bits)


cdef Tensor real_range(double start, double end, double step, int id, object device):
    cdef Ramp ramp
    cdef Py_ssize_t n
    check_direction(start, end, step)
    n = checked_count(ceil((end - start) / step))
    ramp.start, ramp.step, ramp.half = start, step, n
    return cast(run_ramp("arange", &ramp, n, id if id == FLOAT32 else FLOAT64, device), id)


cdef Py_ssize_t plain_size(str name, str argument, object value) except -1:
    """A size of 0 or more. Raises TypeError or RuntimeError."""
    cdef Py_ssize_t size
    if not PyIndex_Check(value):
        raise TypeError(f"{name}: {argument} must be an int, not {type(value).__name__}")
    try:
        size = PyLong_AsSsize_t(PyNumber_Index(value))
    except OverflowError:
        raise RuntimeError(f"{name}: {argument} is too large, got {value}") from None
    if size < 0:
        raise RuntimeError(f"{name}: {argument} must be 0 or more, got {size}")
    return size


cdef int dtype_between(str name, object start, object end, object dtype, object out) except -1:
    """The dtype of numbers between two bounds. Raises: RuntimeError for complex bounds of reals."""
    cdef bint is_complex = PyComplex_Check(start) or PyComplex_Check(end)
    cdef int usual = default_float(), id
    if is_complex:
        usual = COMPLEX128 if usual == FLOAT64 else COMPLEX64
    id = chosen_dtype(name, dtype, out, usual)
    if is_complex and KIND[id] != COMPLEX_KIND:
        raise RuntimeError(f"{name}: numbers between complex bounds do not fit in "
                           f"{dtype_object(id)}")
    return id


cdef Tensor spaced(str name, object start, object end, object steps, int id, int computed,
                   object device):
    """The numbers of a result of one dtype, in that in which they are computed, which is complex128
    for complex bounds."""
    cdef Ramp ramp
    cdef Tensor x
    cdef Parts parts
    if PyComplex_Check(start) or PyComplex_Check(end):
        real = spaced(name, start.real, end.real, steps, FLOAT64, FLOAT64, device)
        imag = spaced(name, start.imag, end.imag, steps, FLOAT64, FLOAT64, device)
        x = allotted(name, COMPLEX128, 1, (<Tensor>real).dims, device)
        parts.z = <double*>x.data_pointer
        parts.real = <double*>(<Tensor>real).data_pointer
        parts.imag = <double*>(<Tensor>imag).data_pointer
        run_over(join_parts, &parts, x, RAMP_GRAIN)
        return x
    cdef Py_ssize_t n = plain_size(name, "steps", steps)
    ramp.step = 0
    if id == BOOL:
        raise RuntimeError(f"{name}: not implemented for tensorlib.bool")
    if KIND[id] == INTEGER_KIND and n > 1:      # the bounds are cut first, as in PyTorch
        check_fits(name, start, id)
        check_fits(name, end, id)
        start, end = int(start), int(end)
    ramp.start, ramp.stop = start, end
    ramp.half, ramp.last = n // 2, n - 1
    if computed == FLOAT32:                # the step is a float32 too, as in PyTorch, bit for bit
        ramp.start, ramp.stop = <float>ramp.start, <float>ramp.stop
        ramp.step = <float>(<float>(ramp.stop - ramp.start) / <float>(n - 1)) if n > 1 else 0
    elif n > 1:
        ramp.step = (ramp.stop - ramp.start) / (n - 1)
    if n == 1:
        ramp.half = 1
    return run_ramp(name, &ramp, n, computed, device)


cdef struct Parts:
    double* z
    double* real
    double* imag


cdef void join_parts(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """z := real + i imag"""
    cdef Parts* parts = <Parts*>context
    cdef Py_ssize_t i
    for i in range(begin, end):
        parts.z[2 * i], parts.z[2 * i + 1] = parts.real[i], parts.imag[i]


def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None,
             pin_memory=False, requires_grad=False):
    """`steps` numbers from `start` to `end`, both included, at equal distances.

    Of the default dtype, or of its complex one where a bound is complex. Of integers the bounds
    are cut first, and then each number.
    Shapes: (steps,).
    Raises: RuntimeError for a negative number of steps and for complex bounds of real numbers,
    TypeError for what is not a number, OutOfRangeError for bounds that a dtype of integers can't
    hold.

    >>> tensorlib.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    start = plain_number("linspace", "start", start)
    end = plain_number("linspace", "end", end)
    cdef int id = dtype_between("linspace", start, end, dtype, out)
    check_options("linspace", layout, device, pin_memory)
    x = spaced("linspace", start, end, steps, id, FLOAT32 if id == FLOAT32 else FLOAT64, device)
    return finish("linspace", in_order(cast(x, id), out), out, requires_grad)


def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None,
             pin_memory=False, requires_grad=False):
    """`steps` powers of `base`, whose exponents are those of `linspace(start, end, steps)`.

    base: a real number. Of the dtype of `linspace`. Shapes: (steps,).
    Raises: RuntimeError for a negative number of steps and for complex bounds of real numbers,
    TypeError for what is not a number, OutOfRangeError as `linspace`.

    >>> tensorlib.logspace(0, 3, 4, base=2)
    tensor([1., 2., 4., 8.])
    """
    start = plain_number("logspace", "start", start)
    end = plain_number("logspace", "end", end)
    cdef int id = dtype_between("logspace", start, end, dtype, out)
    cdef Powers powers
    cdef Tensor x
    check_options("logspace", layout, device, pin_memory)
    x = spaced("logspace", start, end, steps, id, FLOAT64, device)
    powers.y, powers.radix = <double*>x.data_pointer, plain_number("logspace", "base", base)
    run_alone(raise_to_complex_powers if x.type == COMPLEX128 else raise_to_powers,
              &powers, powers.y, x.numel_)
    return finish("logspace", in_order(cast(x, id), out), out, requires_grad)


cdef struct Powers:
    double* y
    double radix


cdef void raise_to_powers(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := radix ** y"""
    cdef Powers* powers = <Powers*>context
    cdef Py_ssize_t i
    for i in range(begin, end):
        powers.y[i] = pow(powers.radix, powers.y[i])


cdef void raise_to_complex_powers(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """z := radix ** z"""
    cdef Powers* powers = <Powers*>context
    cdef double complex* z = <double complex*>powers.y
    cdef Py_ssize_t i
    for i in range(begin, end):
        z[i] = cpow(powers.radix, z[i])


# ---- matrices ------------------------------------------------------------------------------------

def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
        requires_grad=False):
    """The identity matrix of n rows and m columns (n unless given).

    Shapes: (n, m). Raises: RuntimeError for a size that is negative or too large, TypeError.
    """
    cdef Py_ssize_t dims[2]
    cdef Diagonal diagonal
    cdef Tensor x
    check_options("eye", layout, device, pin_memory)
    dims[0] = plain_size("eye", "n", n)
    dims[1] = dims[0] if m is None else plain_size("eye", "m", m)
    x = allotted("eye", chosen_dtype("eye", dtype, out, default_float()), 2, dims, device)
    zero(x)
    number_bits("eye", 1, x.type, &diagonal.bits)
    diagonal.y, diagonal.size = x.data_pointer, ITEMSIZE[x.type]
    diagonal.step = (dims[1] + 1) * diagonal.size
    run_alone(write_diagonal, &diagonal, diagonal.y, min(dims[0], dims[1]))
    return finish("eye", x, out, requires_grad)


cdef struct Diagonal:
    char* y
    Py_ssize_t step, size        # bytes
    Bits bits


cdef void write_diagonal(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Diagonal* of = <Diagonal*>context
    cdef Py_ssize_t i
    for i in range(begin, end):
        memcpy(of.y + i * of.step, &of.bits, of.size)


def triangle(Tensor x, Py_ssize_t diagonal, bint upper):
    """A copy of `x` with zeros below (`upper`) or above a diagonal of the last two dims."""
    cdef Triangle of = triangle_in(x, diagonal, upper)
    cdef Tensor y
    cdef Py_ssize_t rows = x.numel_ // of.cols if of.cols else 0
    if x.packed and of.cols * of.size >= LONG:
        y = new_like(x, x.type)
        of.x, of.y = x.data_pointer, y.data_pointer
        share(write_triangle, &of, of.y, rows, 1 + RAMP_GRAIN // of.cols, x.numel_ < RAMP_GRAIN)
    else:
        y = packed_copy(x, x.type)
        of.y = y.data_pointer
        run_alone(write_triangle, &of, of.y, rows)
    return y


def clear_triangle(Tensor x, Py_ssize_t diagonal, bint upper):
    """Writes the zeros of `triangle` to `x`, which is packed."""
    cdef Triangle of = triangle_in(x, diagonal, upper)
    of.y = x.data_pointer
    run_alone(write_triangle, &of, of.y, x.numel_ // of.cols if of.cols else 0)


cdef Triangle triangle_in(Tensor x, Py_ssize_t diagonal, bint upper) except *:
    """The sizes of the matrices. Raises: RuntimeError."""
    cdef Triangle of
    if x.ndim_ < 2:
        raise RuntimeError(f"{'triu' if upper else 'tril'}: input must have at least 2 dims, got "
                           f"{x.ndim_}")
    of.x, of.y, of.upper = NULL, NULL, upper
    of.rows, of.cols, of.size = x.dims[x.ndim_ - 2], x.dims[x.ndim_ - 1], ITEMSIZE[x.type]
    of.diagonal = min(max(diagonal, -of.rows), of.cols)
    return of


cdef struct Triangle:
    const char* x                # or NULL, of what y has already
    char* y
    Py_ssize_t rows, cols, size, diagonal
    bint upper


cdef void write_triangle(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows [begin, end) of the matrices: zeros of what goes, and a copy of the rest"""
    cdef Triangle of = (<Triangle*>context)[0]
    cdef Py_ssize_t row, first, last, width = of.cols * of.size, here = 0
    cdef char* place = of.y + begin * width
    if begin < end:                      # else there may be no rows to divide by
        here = begin % of.rows
    for row in range(begin, end):
        first = 0 if of.upper else here + of.diagonal + 1
        last = here + of.diagonal if of.upper else of.cols
        here = 0 if here + 1 == of.rows else here + 1
        first = min(max(first, <Py_ssize_t>0), of.cols) * of.size
        last = max(min(last, of.cols) * of.size, first)
        if first < last:
            memset(place + first, 0, last - first)
        if of.x != NULL:
            memcpy(place, of.x + row * width, first)
            memcpy(place + last, of.x + row * width + last, width - last)
        place += width


# ---- places in a triangle ------------------------------------------------------------------------

def triangle_places(str name, row, col, offset, bint above):
    """The rows and columns of the elements of a triangle of (row, col), in a tensor of two rows.

    The upper triangle from the diagonal `offset` on, or the lower one up to it, row by row.
    Raises: MemoryError for more than there is memory for.
    """
    cdef Places of
    offset = max(-row, min(offset - above, col))         # of the last diagonal that is below
    first = min(row, max(0, -offset))                    # the first row with an element below
    full = min(row, max(first, col - 1 - offset))        # and the first that is below as a whole
    below = (first + full + 1 + 2 * offset) * (full - first) // 2 + (row - full) * col
    total = row * col - below if above else below
    cdef Tensor out = empty((2, total), dtype_object(INT64), name=name)
    if out.numel_:
        of.rows = <int64_t*>out.data_pointer
        of.columns = of.rows + out.dims[1]
        of.first, of.last, of.offset, of.above = 0 if above else first, row, offset + 1, above
        if above:
            of.last = min(row, col - 1 - offset)
        of.col = col if above else min(col, row + offset + 1)
        run_alone(write_places, &of, out.data_pointer, out.numel_)
    return out


cdef struct Places:
    int64_t* rows
    int64_t* columns
    Py_ssize_t first, last, col, offset  # in row r the elements below are those before r + offset
    bint above


cdef void write_places(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Places* of = <Places*>context
    cdef int64_t* rows = of.rows
    cdef int64_t* columns = of.columns
    cdef Py_ssize_t r, i, start, stop
    for r in range(of.first, of.last):
        start, stop = 0, max(min(r + of.offset, of.col), <Py_ssize_t>0)
        if of.above:
            start, stop = stop, of.col
        for i in range(stop - start):
            rows[i] = r
        for i in range(stop - start):
            columns[i] = start + i
        rows += stop - start
        columns += stop - start
