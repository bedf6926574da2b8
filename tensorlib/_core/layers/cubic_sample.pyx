"""`grid_sample` by cubic convolution of the 16 elements around a point, and its gradients. Outside
autograd."""

from libc.math cimport fabs, floor
from libc.stdint cimport int32_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.shape cimport count, times
from tensorlib._core.base.work cimport share
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero

cdef enum:
    PIECE = 1 << 12      # elements of results in a piece of work
    NEAR = 4             # elements along a dim
    ALL = 16
    RUN = 64             # places whose weights are found together

PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}

cdef struct Look:
    const char* x            # (images, channels, high, wide)
    const char* grid         # (images, places, 2), columns first
    const char* g            # (images, channels, places)
    char* y                  # as g, or the gradient of x
    char* dgrid
    Py_ssize_t channels, high, wide, places
    int padding
    bint align, is_single


cdef inline Py_ssize_t inside(double at, Py_ssize_t size, int padding, bint align) noexcept nogil:
    """The index that an integer position stands for after padding, or -1."""
    cdef double low = 0 if align else -0.5, span = size - 1 if align else size, away, turns
    if padding == 0:
        return <Py_ssize_t>at if 0 <= at < size else -1
    if padding == 2:
        away = fabs(at - low)
        turns = floor(away / span) if span > 0 else 0
        away = away - turns * span if span > 0 else -low
        at = low + (away if turns % 2 == 0 else span - away)
    if not at > 0:                   # NaN, too
        return 0
    return <Py_ssize_t>(at + 0.25) if at < size - 1 else size - 1


cdef inline floating far(floating d) noexcept nogil:
    """The cubic convolution kernel, a = -0.75, at distances from 1 to 2."""
    cdef floating a = -0.75
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


cdef inline floating near(floating d) noexcept nogil:
    """The same at distances up to 1."""
    cdef floating a = -0.75
    return ((a + 2) * d - (a + 3)) * d * d + 1


cdef inline floating far_slope(floating d) noexcept nogil:
    cdef floating a = -0.75
    return (3 * a * d - 10 * a) * d + 8 * a


cdef inline floating near_slope(floating d) noexcept nogil:
    cdef floating a = -0.75
    return (3 * (a + 2) * d - 2 * (a + 3)) * d


cdef inline floating stands_at(const Look* look, floating c, Py_ssize_t size) noexcept nogil:
    """The position in a dim of a coordinate from -1 to 1."""
    return (c + 1) / 2 * (size - 1) if look.align else ((c + 1) * size - 1) / 2


cdef inline void weigh(floating t, floating* weights) noexcept nogil:
    """The weights of the four elements around a position that is t beyond the second of them."""
    weights[0], weights[1], weights[2], weights[3] = far(t + 1), near(t), near(1 - t), far(2 - t)


cdef inline void along(const Look* look, floating c, Py_ssize_t size, Py_ssize_t* at,
                       floating* weights, floating* slopes) noexcept nogil:
    """Finds the four elements around a coordinate of a dim, or -1, their weights, and the
    derivatives of these."""
    cdef floating place = stands_at(look, c, size)
    cdef floating low = <floating>floor(place), t = place - low
    cdef floating speed = <floating>(size - 1 if look.align else size) / 2
    cdef Py_ssize_t k
    for k in range(<Py_ssize_t>NEAR):
        at[k] = inside(<double>low + k - 1, size, look.padding, look.align)
    weigh(t, weights)
    slopes[0], slopes[1] = far_slope(t + 1) * speed, near_slope(t) * speed
    slopes[2], slopes[3] = -near_slope(1 - t) * speed, -far_slope(2 - t) * speed


cdef inline void go(const Look* look, const floating* x, const floating* grid, const floating* g,
                    floating* y, floating* dgrid, Py_ssize_t place) noexcept nogil:
    """Samples an image at one point, or adds the gradients there."""
    cdef Py_ssize_t[NEAR] rows, columns
    cdef Py_ssize_t[ALL] at
    cdef floating[NEAR] down, across, down_slopes, across_slopes
    cdef floating[ALL] weights, column_slopes, row_slopes, sums
    cdef floating total, nothing, given, of_column, of_row
    cdef Py_ssize_t i, j, k, channel, found = 0, size = look.high * look.wide
    along(look, grid[2 * place], look.wide, columns, across, across_slopes)
    along(look, grid[2 * place + 1], look.high, rows, down, down_slopes)
    nothing = of_column = of_row = down[0] * across[0] * 0             # 0, or NaN for a NaN point
    for i in range(<Py_ssize_t>NEAR):
        for j in range(<Py_ssize_t>NEAR):
            if rows[i] < 0 or columns[j] < 0:
                continue
            at[found], weights[found] = rows[i] * look.wide + columns[j], down[i] * across[j]
            column_slopes[found] = down[i] * across_slopes[j]
            row_slopes[found] = down_slopes[i] * across[j]
            found += 1
    for k in range(found):
        sums[k] = 0
    for channel in range(look.channels):
        if g != NULL:
            given = g[channel * look.places + place]
            for k in range(found):
                y[at[k]] += given * weights[k]
                sums[k] += given * x[at[k]]
            y += size
        else:
            total = nothing
            if found == ALL:                   # four sums, as one would wait for each addition
                for k in range(0, 16, 4):      # ALL by NEAR, as literals
                    total += ((x[at[k]] * weights[k] + x[at[k + 1]] * weights[k + 1])
                              + (x[at[k + 2]] * weights[k + 2] + x[at[k + 3]] * weights[k + 3]))
            else:
                for k in range(found):
                    total += x[at[k]] * weights[k]
            y[channel * look.places + place] = total
        x += size
    if g != NULL:
        for k in range(found):
            of_column += sums[k] * column_slopes[k]
            of_row += sums[k] * row_slopes[k]
        dgrid[2 * place], dgrid[2 * place + 1] = of_column, of_row


cdef inline void prepare(const Look* look, const floating* grid, Py_ssize_t n, int32_t* first,
                         floating* weights) noexcept nogil:
    """For n points: first := the first of the 16 elements around each, or -1 where one is outside;
    weights := those of the four columns, then of the four rows, each for all points."""
    cdef floating one = 1, wide = <floating>(look.wide - 3), high = <floating>(look.high - 3)
    cdef floating column, row, x, y
    cdef floating[NEAR] w
    cdef int32_t left, top, width = <int32_t>look.wide
    cdef Py_ssize_t i
    for i in range(n):
        column = stands_at(look, grid[2 * i], look.wide)
        row = stands_at(look, grid[2 * i + 1], look.high)
        x = column if column >= one else one             # NaN becomes one
        y = row if row >= one else one
        x, y = x if x <= wide else wide, y if y <= high else high
        left, top = <int32_t>x, <int32_t>y
        first[i] = (top - 1) * width + left - 1
        first[i] = first[i] if (x == column) & (y == row) else -1
        weigh(x - <floating>left, w)
        weights[i], weights[RUN + i], weights[2 * RUN + i], weights[3 * RUN + i] = (
            w[0], w[1], w[2], w[3])
        weigh(y - <floating>top, w)
        weights[4 * RUN + i], weights[5 * RUN + i] = w[0], w[1]
        weights[6 * RUN + i], weights[7 * RUN + i] = w[2], w[3]


cdef inline void see_inside(const Look* look, const floating* x, const floating* weights,
                            floating* y) noexcept nogil:
    """Samples at a point around which all elements are inside, from the first of these on."""
    cdef floating[NEAR] down, across, sums
    cdef Py_ssize_t j, channel, wide = look.wide, size = look.high * wide
    for j in range(<Py_ssize_t>NEAR):
        across[j], down[j] = weights[j * RUN], weights[(j + NEAR) * RUN]
    for channel in range(look.channels):
        for j in range(<Py_ssize_t>NEAR):
            sums[j] = ((down[0] * x[j] + down[1] * (x + wide)[j])
                       + (down[2] * (x + 2 * wide)[j] + down[3] * (x + 3 * wide)[j])) * across[j]
        y[channel * look.places] = (sums[0] + sums[1]) + (sums[2] + sums[3])
        x += size


cdef inline void see(const Look* look, const floating* x, const floating* grid, floating* y,
                     Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Samples an image at the points [begin, end)."""
    cdef int32_t[RUN] first
    cdef floating[2 * NEAR * RUN] weights
    cdef Py_ssize_t i, n
    cdef bint small = 3 < look.wide < 1 << 15 and 3 < look.high < 1 << 15
    while begin < end:
        n = min(<Py_ssize_t>RUN, end - begin)
        if small:
            prepare(look, grid + 2 * begin, n, first, weights)
        for i in range(n):
            if small and first[i] >= 0:
                see_inside(look, x + first[i], weights + i, y + begin + i)
            else:
                go(look, x, grid, <const floating*>NULL, y, <floating*>NULL, begin + i)
        begin += n


cdef inline void go_through(const Look* look, const floating* x, const floating* grid,
                            const floating* g, floating* y, floating* dgrid, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil:
    """Samples at the points [begin, end) of all images; backward: the images [begin, end)."""
    cdef Py_ssize_t i, n, image, size = look.channels * look.high * look.wide
    cdef Py_ssize_t seen = look.channels * look.places
    if g == NULL:
        while begin < end:
            image, i = begin // look.places, begin % look.places
            n = min(look.places - i, end - begin)
            see(look, x + image * size, grid + image * look.places * 2, y + image * seen, i, i + n)
            begin += n
        return
    for image in range(begin, end):
        for i in range(look.places):
            go(look, x + image * size, grid + image * look.places * 2, g + image * seen,
               y + image * size, dgrid + image * look.places * 2, i)


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Look* look = <Look*>context
    if look.is_single:
        go_through(look, <const float*>look.x, <const float*>look.grid, <const float*>look.g,
                   <float*>look.y, <float*>look.dgrid, begin, end)
    else:
        go_through(look, <const double*>look.x, <const double*>look.grid, <const double*>look.g,
                   <double*>look.y, <double*>look.dgrid, begin, end)


cdef int begin_look(Look* look, Tensor x, Tensor grid, object padding, bint align) except -1:
    if x.ndim_ != 4 or grid.ndim_ != 4 or padding not in PADDINGS or (
            KIND[x.type] != FLOAT_KIND or grid.dims[0] != x.dims[0] or grid.dims[3] != 2 or
            x.dims[2] < 1 or x.dims[3] < 1):
        raise RuntimeError(f"grid_sample: a grid of shape {tuple(grid.shape)} does not fit to an "
                           f"input of shape {tuple(x.shape)} and {dtype_object(x.type)}")
    look.x, look.grid = x.data_pointer, grid.data_pointer
    look.channels, look.high, look.wide = x.dims[1], x.dims[2], x.dims[3]
    look.places = grid.dims[1] * grid.dims[2]
    look.padding, look.align, look.is_single = PADDINGS[padding], align, x.type == FLOAT32
    return 0


def look_cubic(Tensor input, Tensor grid, padding, bint align):
    """(B, C, H, W) sampled at points (B, h, w, 2): (B, C, h, w). Raises: RuntimeError."""
    cdef Look look
    cdef Tensor x = packed(cast(input, compute_dtype(input.type)))
    cdef Tensor places = packed(cast(grid, x.type)), y
    cdef Py_ssize_t[4] dims
    begin_look(&look, x, places, padding, align)
    dims[0], dims[1], dims[2], dims[3] = x.dims[0], x.dims[1], places.dims[1], places.dims[2]
    count("grid_sample", 4, dims)
    y = new_tensor(x.type, 4, dims)
    look.y, look.g, look.dgrid = y.data_pointer, NULL, NULL
    if y.numel_:
        share(run, &look, look.y, x.dims[0] * look.places, 1 + PIECE // look.channels, False)
    return cast(y, input.type)


def look_cubic_back(Tensor grad, Tensor input, Tensor grid, padding, bint align):
    """The gradients of `look_cubic` for its images and its places. Raises: RuntimeError."""
    cdef Look look
    cdef Tensor x = packed(cast(input, compute_dtype(input.type)))
    cdef Tensor places = packed(cast(grid, x.type)), g = packed(cast(grad, x.type))
    cdef Tensor dx = new_like(x, x.type), dgrid = new_like(places, x.type)
    begin_look(&look, x, places, padding, align)
    if g.ndim_ != 4 or g.dims[0] != x.dims[0] or g.dims[1] != x.dims[1] or (
            g.dims[2] != places.dims[1] or g.dims[3] != places.dims[2]):
        raise RuntimeError(f"grid_sample: a gradient of shape {tuple(grad.shape)} does not fit to "
                           f"a grid of shape {tuple(grid.shape)}")
    zero(dx)
    zero(dgrid)
    look.y, look.g, look.dgrid = dx.data_pointer, g.data_pointer, dgrid.data_pointer
    if g.numel_:
        share(run, &look, look.y, x.dims[0],
              1 + PIECE // times(look.channels, look.places), False)
    return cast(dx, input.type), cast(dgrid, grid.type)
