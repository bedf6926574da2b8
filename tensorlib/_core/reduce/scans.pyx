"""Running products, sums of exponentials, extremes and linear recurrences along a dim.

A tensor is seen as (outer, n, inner). The loops go down WIDTH columns of inner at a time, so that
the running values stay in the L1 cache; threads share these blocks of columns. float32 is computed
in float64.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint64_t

from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX128, COMPLEX64, FLOAT32, FLOAT_KIND, INT16, INT32, INT64, INT8, KIND, UINT8,
    compute_dtype,
)
from tensorlib._core.base.items cimport complex128_t, complex64_t, floating, ordered
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.shape cimport settled, wrap_dim
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.log_sums cimport WIDTH, log_sums
from tensorlib._core.reduce.unsigned cimport restored, signed_order
from tensorlib._core.tensor.tensor cimport Tensor, new_like, same_shape
from tensorlib._core.tiles.copies cimport cast, packed
from tensorlib._kernels.vecmath.complex_numbers cimport log_of_two, pair

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    ROWS = 4                     # rows whose running products are computed side by side
    GRAIN = 1 << 13              # elements that a thread takes at least

ctypedef fused factor:
    float
    double
    uint64_t                 # also for int64, whose bits are the same: in C only unsigned ones wrap

ctypedef fused complex_number:
    complex64_t
    complex128_t

cdef struct Sizes:
    Py_ssize_t outer, n, inner


cdef Sizes sizes_along(Tensor x, int dim) noexcept:
    """The sizes before, at and after a dim."""
    cdef Sizes sizes = [1, 1, 1]
    cdef int d
    for d in range(x.ndim_):
        if d < dim:
            sizes.outer *= x.dims[d]
        elif d > dim:
            sizes.inner *= x.dims[d]
        else:
            sizes.n = x.dims[d]
    return sizes


# ---- loops over some columns ---------------------------------------------------------------------

cdef void products_of_rows(const factor* x, factor* y, Py_ssize_t n) noexcept nogil:
    """y := the running products of ROWS rows, whose multiplications overlap in the pipeline"""
    cdef double a = 1, b = 1, c = 1, d = 1
    cdef uint64_t e = 1, f = 1, g = 1, h = 1
    cdef Py_ssize_t i
    for i in range(n):
        if factor is uint64_t:
            e *= x[i]
            f *= x[n + i]
            g *= x[2 * n + i]
            h *= x[3 * n + i]
            y[i], y[n + i], y[2 * n + i], y[3 * n + i] = e, f, g, h
        else:
            a *= x[i]
            b *= x[n + i]
            c *= x[2 * n + i]
            d *= x[3 * n + i]
            y[i], y[n + i] = <factor>a, <factor>b
            y[2 * n + i], y[3 * n + i] = <factor>c, <factor>d


cdef void products(const factor* x, factor* y, Py_ssize_t n, Py_ssize_t step,
                   Py_ssize_t width) noexcept nogil:
    """y[i] := x[0] ... x[i]"""
    cdef double reals[WIDTH]
    cdef uint64_t wholes[WIDTH]
    cdef double real = 1
    cdef uint64_t number = 1
    cdef Py_ssize_t i, j
    if step == 1:                            # a row: its running product stays in a register
        for i in range(n):
            if factor is uint64_t:
                number *= x[i]
                y[i] = number
            else:
                real *= x[i]
                y[i] = <factor>real
        return
    for j in range(width):
        reals[j] = 1
        wholes[j] = 1
    for i in range(n):
        for j in range(width):
            if factor is uint64_t:
                wholes[j] *= x[j]
                y[j] = wholes[j]
            else:
                reals[j] *= x[j]
                y[j] = <factor>reals[j]
        x += step
        y += step


cdef void complex_log_sums(const complex_number* x, complex_number* y, Py_ssize_t n,
                           Py_ssize_t step, Py_ssize_t width) noexcept nogil:
    """`log_sums` of complex numbers, column by column"""
    cdef complex128_t total
    cdef Py_ssize_t i, j
    for j in range(width):
        total = pair(-INFINITY, 0)
        for i in range(n):
            total = log_of_two(pair(x[i * step + j].real, x[i * step + j].imag), total)
            y[i * step + j].real, y[i * step + j].imag = total.real, total.imag


cdef void recur(const floating* x, const floating* factors, floating* y, Py_ssize_t n,
                Py_ssize_t step, Py_ssize_t width, bint backwards) noexcept nogil:
    """y[i] := x[i] + factors[i] y[i - 1], or backwards x[i] + factors[i + 1] y[i + 1]"""
    cdef double state[WIDTH]
    cdef double total = 0
    cdef Py_ssize_t i, j, at
    if step == 1:
        for i in range(n):
            at = n - 1 - i if backwards else i
            total = x[at] + (total * factors[at + 1 if backwards else at] if i else 0)
            y[at] = <floating>total
        return
    for j in range(width):
        state[j] = 0
    for i in range(n):
        at = (n - 1 - i if backwards else i) * step
        for j in range(width):
            if i == 0:
                state[j] = x[at + j]
            else:
                state[j] = x[at + j] + state[j] * factors[at + j + (step if backwards else 0)]
            y[at + j] = <floating>state[j]


cdef void complex_products(const complex_number* x, complex_number* y, Py_ssize_t n,
                           Py_ssize_t step, Py_ssize_t width) noexcept nogil:
    """`products` of complex numbers, column by column"""
    cdef double re, im, by_re, by_im
    cdef Py_ssize_t i, j
    for j in range(width):
        re, im = 1, 0
        for i in range(n):
            by_re, by_im = x[i * step + j].real, x[i * step + j].imag
            re, im = re * by_re - im * by_im, re * by_im + im * by_re
            y[i * step + j].real, y[i * step + j].imag = re, im


cdef void complex_recur(const complex_number* x, const complex_number* factors, complex_number* y,
                        Py_ssize_t n, Py_ssize_t step, Py_ssize_t width,
                        bint backwards) noexcept nogil:
    """`recur` of complex numbers, column by column"""
    cdef complex128_t total
    cdef Py_ssize_t i, j, at
    for j in range(width):
        total = 0
        for i in range(n):
            at = (n - 1 - i if backwards else i) * step + j
            total = x[at] + total * factors[at + step if backwards else at] if i else x[at]
            y[at] = <complex_number>total


cdef inline bint beaten(ordered extreme, ordered x, bint largest) noexcept nogil:
    """Whether `x` takes the place of the extreme: it is equal or further out, or a NaN."""
    return ((x >= extreme) if largest else (x <= extreme)) | (x != x)


cdef inline void integer_extremes(const ordered* x, ordered* values, int64_t* y, Py_ssize_t n,
                                  bint largest) noexcept nogil:
    """`extremes` of one row without branches, as random integers are often equal"""
    cdef int64_t most = <int64_t>x[0], place = 0, each
    cdef Py_ssize_t i
    for i in range(n):
        each = <int64_t>x[i]
        place = max(place, i & -<int64_t>(each >= most if largest else each <= most))
        most = max(most, each) if largest else min(most, each)
        values[i] = <ordered>most
        y[i] = place


cdef inline void extremes(const ordered* x, ordered* values, int64_t* y, Py_ssize_t n,
                          Py_ssize_t step, Py_ssize_t width, bint largest) noexcept nogil:
    """values[i] := the extreme of x[0] ... x[i], y[i] := its last place; a NaN is an extreme"""
    cdef ordered best[WIDTH]
    cdef int64_t places[WIDTH]
    cdef Py_ssize_t i, j
    cdef bint better
    cdef ordered extreme = x[0], value
    cdef int64_t place = 0
    if step == 1 and (ordered is not float and ordered is not double):
        integer_extremes(x, values, y, n, largest)
        return
    if step == 1:
        for i in range(n):
            if x[i] >= extreme if largest else x[i] <= extreme:    # rare, and so well predicted
                extreme = x[i]
                place = i
            elif x[i] != x[i]:
                extreme = x[i]
                place = i
            values[i] = extreme
            y[i] = place
        return
    for j in range(width):
        best[j] = x[j]
        places[j] = 0
    for i in range(n):
        for j in range(width):
            value = x[j]
            better = beaten(best[j], value, largest)
            best[j] = value if better else best[j]
            places[j] = i if better else places[j]
            values[j] = best[j]
            y[j] = places[j]
        x += step
        values += step
        y += step


# ---- blocks of columns ---------------------------------------------------------------------------

cdef inline Py_ssize_t blocks_of(const Sizes* size) noexcept nogil:
    """The number of blocks of at most WIDTH columns in all slices."""
    return (size.inner + WIDTH - 1) // WIDTH


cdef inline Py_ssize_t place_of_block(const Sizes* size, Py_ssize_t block,
                                      Py_ssize_t* width) noexcept nogil:
    """Where a block begins; `width` := its columns."""
    cdef Py_ssize_t blocks = blocks_of(size), j = block % blocks * WIDTH
    width[0] = min(<Py_ssize_t>WIDTH, size.inner - j)
    return block // blocks * size.n * size.inner + j


cdef void all_products(const factor* x, factor* y, const Sizes* size, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    while size.inner == 1 and begin + ROWS <= end:
        products_of_rows(x + begin * size.n, y + begin * size.n, size.n)
        begin += ROWS
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        products(x + at, y + at, size.n, size.inner, width)


cdef void all_log_sums(const floating* x, floating* y, const Sizes* size, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        log_sums(x + at, y + at, size.n, size.inner, width)


cdef void all_complex_log_sums(const complex_number* x, complex_number* y, const Sizes* size,
                               Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        complex_log_sums(x + at, y + at, size.n, size.inner, width)


cdef void recur_all(const floating* x, const floating* factors, floating* y, const Sizes* size,
                    bint backwards, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        recur(x + at, factors + at, y + at, size.n, size.inner, width, backwards)


cdef void all_complex_products(const complex_number* x, complex_number* y, const Sizes* size,
                               Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        complex_products(x + at, y + at, size.n, size.inner, width)


cdef void recur_all_complex(const complex_number* x, const complex_number* factors,
                            complex_number* y, const Sizes* size, bint backwards, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        complex_recur(x + at, factors + at, y + at, size.n, size.inner, width, backwards)


cdef void all_extremes(const ordered* x, char* by, int64_t* y, const Sizes* size, bint largest,
                       Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t block, width = 0, at
    cdef ordered* values = <ordered*>by
    for block in range(begin, end):
        at = place_of_block(size, block, &width)
        if largest:                          # a constant for each specialised loop
            extremes(x + at, values + at, y + at, size.n, size.inner, width, True)
        else:
            extremes(x + at, values + at, y + at, size.n, size.inner, width, False)


# ---- of any dtype --------------------------------------------------------------------------------

cdef struct Scan:
    int dtype
    Sizes size
    const char* x
    char* by                     # the factors of a recurrence, the values of extremes
    char* y
    bint flag                    # whether a recurrence runs backwards, an extreme is the largest


cdef int scan(range_fn which, int dtype, Sizes size, Tensor x, Tensor by, Tensor out,
              bint flag) except -1:
    cdef Scan of
    of.dtype, of.size, of.flag = dtype, size, flag
    of.x, of.y = x.data_pointer, out.data_pointer
    of.by = NULL if by is None else by.data_pointer
    return share(which, &of, of.y, size.outer * blocks_of(&size),
                 max(GRAIN // (size.n * min(size.inner, <Py_ssize_t>WIDTH)), 1), x.numel_ < GRAIN)


cdef void run_products(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Scan* of = <Scan*>context
    if of.dtype == INT64:
        all_products(<const uint64_t*>of.x, <uint64_t*>of.y, &of.size, begin, end)
    elif of.dtype == FLOAT32:
        all_products(<const float*>of.x, <float*>of.y, &of.size, begin, end)
    elif of.dtype == COMPLEX64:
        all_complex_products(<const complex64_t*>of.x, <complex64_t*>of.y, &of.size, begin, end)
    elif of.dtype == COMPLEX128:
        all_complex_products(<const complex128_t*>of.x, <complex128_t*>of.y, &of.size, begin, end)
    else:
        all_products(<const double*>of.x, <double*>of.y, &of.size, begin, end)


cdef void run_log_sums(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Scan* of = <Scan*>context
    if of.dtype == FLOAT32:
        all_log_sums(<const float*>of.x, <float*>of.y, &of.size, begin, end)
    elif of.dtype == COMPLEX64:
        all_complex_log_sums(<const complex64_t*>of.x, <complex64_t*>of.y, &of.size, begin, end)
    elif of.dtype == COMPLEX128:
        all_complex_log_sums(<const complex128_t*>of.x, <complex128_t*>of.y, &of.size, begin, end)
    else:
        all_log_sums(<const double*>of.x, <double*>of.y, &of.size, begin, end)


cdef void run_recurrence(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Scan* of = <Scan*>context
    if of.dtype == FLOAT32:
        recur_all(<const float*>of.x, <const float*>of.by, <float*>of.y, &of.size, of.flag, begin,
                  end)
    elif of.dtype == COMPLEX64:
        recur_all_complex(<const complex64_t*>of.x, <const complex64_t*>of.by, <complex64_t*>of.y,
                          &of.size, of.flag, begin, end)
    elif of.dtype == COMPLEX128:
        recur_all_complex(<const complex128_t*>of.x, <const complex128_t*>of.by,
                          <complex128_t*>of.y, &of.size, of.flag, begin, end)
    else:
        recur_all(<const double*>of.x, <const double*>of.by, <double*>of.y, &of.size, of.flag,
                  begin, end)


cdef void run_extremes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Scan* of = <Scan*>context
    cdef int64_t* y = <int64_t*>of.y
    if of.dtype == UINT8:
        all_extremes(<const uint8_t*>of.x, of.by, y, &of.size, of.flag, begin, end)
    elif of.dtype == INT8:
        all_extremes(<const int8_t*>of.x, of.by, y, &of.size, of.flag, begin, end)
    elif of.dtype == INT16:
        all_extremes(<const int16_t*>of.x, of.by, y, &of.size, of.flag, begin, end)
    elif of.dtype == INT32:
        all_extremes(<const int32_t*>of.x, of.by, y, &of.size, of.flag, begin, end)
    elif of.dtype == INT64:
        all_extremes(<const int64_t*>of.x, of.by, y, &of.size, of.flag, begin, end)
    elif of.dtype == FLOAT32:
        all_extremes(<const float*>of.x, of.by, y, &of.size, of.flag, begin, end)
    else:
        all_extremes(<const double*>of.x, of.by, y, &of.size, of.flag, begin, end)


# ---- of tensors ----------------------------------------------------------------------------------

# Sizes are taken from the copy that is read, since another thread may give the input other memory
# while the copy is made.

cdef int place_of(str name, object dim, Tensor x) except -1:
    """The index of a dim, which is converted to an int before the tensor is read."""
    dim = settled(dim)
    return wrap_dim(name, dim, x.ndim_)


def cumprod(Tensor input, dim):
    """The running products along `dim`; integers give int64."""
    cdef int along = place_of("cumprod", dim, input)
    cdef int dtype = (
        compute_dtype(input.type) if KIND[input.type] >= FLOAT_KIND else INT64)
    cdef Tensor x = packed(cast(input, dtype)), out = new_like(x, dtype)
    if out.numel_:
        scan(run_products, dtype, sizes_along(x, along), x, None, out, False)
    return cast(out, INT64 if dtype == INT64 else input.type)


def logcumsumexp(Tensor input, dim):
    """The logarithms of running sums of exponentials along `dim`, for floats or complex numbers."""
    cdef int along = place_of("logcumsumexp", dim, input)
    cdef int dtype = compute_dtype(input.type)
    cdef Tensor x = packed(cast(input, dtype)), out = new_like(x, dtype)
    if KIND[dtype] < FLOAT_KIND:
        raise UnsupportedDtype(f"logcumsumexp: takes floating-point dtypes, got {input.dtype}")
    if out.numel_:
        scan(run_log_sums, dtype, sizes_along(x, along), x, None, out, False)
    return cast(out, input.type)


def recurrence(Tensor input, Tensor factors, dim, bint backwards):
    """input[i] + factors[i] * out[i - 1] along `dim`; backwards input[i] + factors[i+1] * out[i+1].

    Raises: RuntimeError unless both are floating and of one shape.
    """
    cdef int along = place_of("recurrence", dim, input)
    cdef int dtype = compute_dtype(input.type)
    cdef bint alike = KIND[dtype] >= FLOAT_KIND and KIND[dtype] == KIND[factors.type]
    cdef Tensor a = packed(cast(factors, dtype)) if alike else factors
    cdef Tensor x = packed(cast(input, dtype)), out
    if not alike or not same_shape(x, a):
        raise RuntimeError(f"recurrence: takes floating tensors of one shape, got "
                           f"{list(x.shape)} and {list(a.shape)} of {input.dtype}")
    out = new_like(x, dtype)
    if out.numel_:
        scan(run_recurrence, dtype, sizes_along(x, along), x, a, out, backwards)
    return cast(out, input.type)


def extremes_so_far(Tensor input, dim, bint largest):
    """The running extremes along `dim`, and the last place of each."""
    cdef str name = "cummax" if largest else "cummin"
    cdef int along = place_of(name, dim, input)
    cdef Tensor x = cast(input, UINT8 if input.type == BOOL else compute_dtype(input.type))
    cdef Tensor values, out
    x = packed(signed_order(x))
    values, out = new_like(x, x.type), new_like(x, INT64)
    if out.numel_:
        scan(run_extremes, x.type, sizes_along(x, along), x, values, out, largest)
    return cast(restored(values, input.type), input.type), out
