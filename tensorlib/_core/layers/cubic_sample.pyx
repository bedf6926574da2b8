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

cdef extern from * nogil:
    """
    /* What is seen in a place of all channels around which all elements are inside, from the first
       of these on. w: the weights of the columns, then of the rows, `run` apart; as vectors are
       made of them in registers, none waits for a number to be stored. */
    #define SEE_INSIDE(T)                                                                        \
        typedef T four_##T __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)),        \
                                          may_alias));                                           \
        static void see_inside_##T(const T *x, const T *w, Py_ssize_t run, Py_ssize_t wide,      \
                                   Py_ssize_t size, Py_ssize_t channels, T *y,                   \
                                   Py_ssize_t places) {                                          \
            const four_##T across = {w[0], w[run], w[2 * run], w[3 * run]};                      \
            const T a = w[4 * run], b = w[5 * run], c = w[6 * run], d = w[7 * run];              \
            for (; channels > 0; channels--, x += size, y += places) {                           \
                const four_##T seen = across * (                                                 \
                    (a * *(const four_##T *)x + b * *(const four_##T *)(x + wide))               \
                    + (c * *(const four_##T *)(x + 2 * wide)                                     \
                       + d * *(const four_##T *)(x + 3 * wide)));                                \
                *y = (seen[0] + seen[1]) + (seen[2] + seen[3]);                                  \
            }                                                                                    \
        }
    SEE_INSIDE(float)
    SEE_INSIDE(double)
    """
    void see_inside_float(const float* x, const float* w, Py_ssize_t run, Py_ssize_t wide,
                          Py_ssize_t size, Py_ssize_t channels, float* y, Py_ssize_t places)
    void see_inside_double(const double* x, const double* w, Py_ssize_t run, Py_ssize_t wide,
                           Py_ssize_t size, Py_ssize_t channels, double* y, Py_ssize_t places)

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
    if 0 <= at < size:
        return <Py_ssize_t>at
    if padding == 0:
        return -1
    if padding == 2:
        away = 2 * low - at if at < 0 else 2 * (low + span) - at
        if 0 <= away < size:             # once, as nearly all of them
            return <Py_ssize_t>away
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


cdef inline floating around(const Look* look, floating c, Py_ssize_t size, Py_ssize_t* at,
                            floating* weights) noexcept nogil:
    """The elements around a coordinate of a dim, or -1, and their weights; how far it is beyond
    the second of them"""
    cdef floating place = stands_at(look, c, size)
    cdef floating low = <floating>floor(place), t = place - low
    cdef Py_ssize_t k
    for k in range(<Py_ssize_t>NEAR):
        at[k] = inside(<double>low + k - 1, size, look.padding, look.align)
    weigh(t, weights)
    return t


cdef inline void along(const Look* look, floating c, Py_ssize_t size, Py_ssize_t* at,
                       floating* weights, floating* slopes) noexcept nogil:
    """The same, and how the weights change"""
    cdef floating t = around(look, c, size, at, weights)
    cdef floating speed = <floating>(size - 1 if look.align else size) / 2
    slopes[0], slopes[1] = far_slope(t + 1) * speed, near_slope(t) * speed
    slopes[2], slopes[3] = -near_slope(1 - t) * speed, -far_slope(2 - t) * speed


cdef inline Py_ssize_t those_inside(Py_ssize_t* at, floating* weights) noexcept nogil:
    """Drops of the four elements of a dim those outside of it; how many there are"""
    cdef Py_ssize_t k, count = 0
    for k in range(<Py_ssize_t>NEAR):
        if at[k] >= 0:
            at[count], weights[count] = at[k], weights[k]
            count += 1
    return count


cdef inline void see_at(const Look* look, const floating* x, const floating* grid, floating* y,
                        Py_ssize_t place) noexcept nogil:
    """What is seen in a place of an image"""
    cdef Py_ssize_t[NEAR] rows, columns
    cdef floating[NEAR] down, across
    cdef floating total, nothing
    cdef Py_ssize_t i, j, channel, high, wide
    cdef const floating* row
    around(look, grid[2 * place], look.wide, columns, across)
    around(look, grid[2 * place + 1], look.high, rows, down)
    nothing = down[0] * across[0] * 0                        # NaN for such a place
    high, wide = those_inside(rows, down), those_inside(columns, across)
    for channel in range(look.channels):
        total = nothing
        for i in range(high):
            row = x + rows[i] * look.wide
            if wide == NEAR:                   # two sums at once: one waits for each addition
                total += down[i] * ((row[columns[0]] * across[0] + row[columns[1]] * across[1])
                                    + (row[columns[2]] * across[2] + row[columns[3]] * across[3]))
            else:
                for j in range(wide):
                    total += down[i] * across[j] * row[columns[j]]
        y[channel * look.places + place] = total
        x += look.high * look.wide


cdef inline void go_back(const Look* look, const floating* x, const floating* grid,
                         const floating* g, floating* y, floating* dgrid,
                         Py_ssize_t place) noexcept nogil:
    """The gradients of a place of an image"""
    cdef Py_ssize_t[NEAR] rows, columns
    cdef Py_ssize_t[ALL] at
    cdef floating[NEAR] down, across, down_slopes, across_slopes
    cdef floating[ALL] weights, column_slopes, row_slopes, sums
    cdef floating given, of_column, of_row
    cdef Py_ssize_t i, j, k, channel, found = 0
    along(look, grid[2 * place], look.wide, columns, across, across_slopes)
    along(look, grid[2 * place + 1], look.high, rows, down, down_slopes)
    of_column = of_row = down[0] * across[0] * 0                       # NaN for such a place
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
        given = g[channel * look.places + place]
        for k in range(found):
            y[at[k]] += given * weights[k]
            sums[k] += given * x[at[k]]
        y += look.high * look.wide
        x += look.high * look.wide
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


cdef inline void see(const Look* look, const floating* x, const floating* grid, floating* y,
                     Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Samples an image at the points [begin, end)."""
    cdef int32_t[RUN] first
    cdef floating[2 * NEAR * RUN] weights
    cdef Py_ssize_t i, n, size = look.high * look.wide
    cdef bint small = 3 < look.wide < 1 << 15 and 3 < look.high < 1 << 15
    while begin < end:
        n = min(<Py_ssize_t>RUN, end - begin)
        if small:
            prepare(look, grid + 2 * begin, n, first, weights)
        for i in range(n):
            if not small or first[i] < 0:
                see_at(look, x, grid, y, begin + i)
            elif floating is float:
                see_inside_float(x + first[i], weights + i, RUN, look.wide, size, look.channels,
                                 y + begin + i, look.places)
            else:
                see_inside_double(x + first[i], weights + i, RUN, look.wide, size, look.channels,
                                  y + begin + i, look.places)
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
            go_back(look, x + image * size, grid + image * look.places * 2, g + image * seen,
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
