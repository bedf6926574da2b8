"""Layer and batch normalisation, (x - mean) / std, and their gradients.

With `centered` false the mean is taken as 0, which makes it the division by the root mean square.

Of rows (rows, n), with a weight and a bias for each column:

    void rows(const T* x, const T* w, const T* b, T* y, Py_ssize_t rows, n, double eps, centered)
    void rows_backward(const T* g, const T* x, const T* w, T* y, rows, n, eps, centered)
    void rows_weight(const T* g, const T* x, T* y, rows, n, eps, centered)      y (n)

Of the channels [begin, end) of (outer, channels, inner), over all but the channels:

    void channels(const T* x, const T* w, const T* b, T* y, T* mean, T* var, const Sizes* sizes,
                  Py_ssize_t begin, end)

The mean and the variance are computed anew in each: two looks at what lies in the cache cost less
than keeping and finding them.
"""

from tensorlib._kernels.moments cimport (
    TOGETHER, in_double, is_rough, row_statistics, rows_together, slopes, sum_of, sum_of_squares,
)
from tensorlib._kernels.vecmath cimport floating, sqrt

from tensorlib._kernels import FLOATS, rows_for

ctypedef struct Sizes:
    Py_ssize_t outer, channels, inner
    double eps
    bint centered

cdef enum:
    COLUMNS = 64        # channels that go together where each is one element
    LEAF = 32           # of which so many are added before they are added in double


# ---- rows ----------------------------------------------------------------------------------------

cdef void rows(const floating* x, const floating* w, const floating* b, floating* y,
               Py_ssize_t rows, Py_ssize_t n, double eps, bint centered) noexcept nogil:
    """y := (x - mean) * scale * w + b"""
    cdef floating mean[TOGETHER]
    cdef floating scale[TOGETHER]
    cdef floating center, factor
    cdef Py_ssize_t together, r, i
    while rows > 0:
        together = rows_together(rows, n)
        row_statistics(x, together, n, eps, centered, mean, scale)
        for r in range(together):
            center, factor = mean[r], scale[r]
            for i in range(n):
                y[i] = (x[i] - center) * factor * w[i] + b[i]
            x += n
            y += n
        rows -= together


cdef void rows_backward(const floating* g, const floating* x, const floating* w, floating* y,
                        Py_ssize_t rows, Py_ssize_t n, double eps, bint centered) noexcept nogil:
    """y := scale * (h - mean(h) - u * mean(h * u)), h = g * w and u the normalised x"""
    cdef floating mean[TOGETHER]
    cdef floating scale[TOGETHER]
    cdef floating shift[TOGETHER]
    cdef floating slope[TOGETHER]
    cdef floating center, factor, down, turn
    cdef double plain[TOGETHER]
    cdef double moved[TOGETHER]
    cdef Py_ssize_t together, r, i
    while rows > 0:
        together = rows_together(rows, n)
        row_statistics(x, together, n, eps, centered, mean, scale)
        for r in range(together):
            slopes(g + r * n, w, x + r * n, mean[r], n, &plain[r], &moved[r])
        for r in range(together):
            shift[r] = <floating>(plain[r] / n) if centered else 0
            slope[r] = <floating>(moved[r] / n * scale[r] * scale[r])
        for r in range(together):
            center, factor, down, turn = mean[r], scale[r], shift[r], slope[r]
            for i in range(n):
                y[i] = factor * (g[i] * w[i] - down - (x[i] - center) * turn)
            g += n
            x += n
            y += n
        rows -= together


cdef void rows_weight(const floating* g, const floating* x, floating* y, Py_ssize_t rows,
                      Py_ssize_t n, double eps, bint centered) noexcept nogil:
    """y := sum over rows of g * u"""
    cdef floating mean[TOGETHER]
    cdef floating scale[TOGETHER]
    cdef floating center, factor
    cdef Py_ssize_t together, r, i
    for i in range(n):
        y[i] = 0
    while rows > 0:
        together = rows_together(rows, n)
        row_statistics(x, together, n, eps, centered, mean, scale)
        for r in range(together):
            center, factor = mean[r], scale[r]
            for i in range(n):
                y[i] += g[i] * ((x[i] - center) * factor)
            g += n
            x += n
        rows -= together


# ---- channels ------------------------------------------------------------------------------------

cdef inline void channel_statistics(const floating* x, const Sizes* sizes, floating* mean,
                                    double* var) noexcept nogil:
    """The mean and the variance of one channel, whose first element is at x"""
    cdef Py_ssize_t step = sizes.channels * sizes.inner, o, n = sizes.outer * sizes.inner
    cdef double total = 0
    for o in range(sizes.outer):
        total += sum_of(x + o * step, sizes.inner)
    mean[0] = <floating>(total / n) if sizes.centered else 0
    total = 0
    for o in range(sizes.outer):
        total += sum_of_squares(x + o * step, mean[0], sizes.inner)
    var[0] = total / n


cdef inline void column_statistics(const floating* x, const Sizes* sizes, Py_ssize_t width,
                                   floating* mean, double* var) noexcept nogil:
    """The same of `width` channels of one element each"""
    cdef double totals[COLUMNS]
    cdef floating part[COLUMNS]
    cdef Py_ssize_t o = 0, j, end
    cdef floating moved
    for j in range(width):
        totals[j] = mean[j] = 0
    while o < sizes.outer and sizes.centered:
        end = min(o + LEAF, sizes.outer)
        for j in range(width):
            part[j] = 0
        while o < end:
            for j in range(width):
                part[j] += x[o * sizes.channels + j]
            o += 1
        for j in range(width):
            totals[j] += part[j]
    for j in range(width):
        mean[j] = <floating>(totals[j] / sizes.outer)
        totals[j] = 0
    o = 0
    while o < sizes.outer:
        end = min(o + LEAF, sizes.outer)
        for j in range(width):
            part[j] = 0
        while o < end:
            for j in range(width):
                moved = x[o * sizes.channels + j] - mean[j]
                part[j] += moved * moved
            o += 1
        for j in range(width):
            totals[j] += part[j]
    for j in range(width):
        var[j] = totals[j] / sizes.outer


cdef inline void statistics(const floating* x, const Sizes* sizes, Py_ssize_t width,
                            floating* mean, double* var, floating* scale) noexcept nogil:
    """Of `width` channels: columns, or one channel. scale := 1 / sqrt(var + eps)"""
    cdef Py_ssize_t j
    cdef double one = 1
    if sizes.inner == 1:
        column_statistics(x, sizes, width, mean, var)
    else:
        channel_statistics(x, sizes, mean, var)
    for j in range(width):
        if is_rough(var[j], mean[j]):
            in_double(x + j, sizes.outer, sizes.channels * sizes.inner, sizes.inner,
                      sizes.centered, mean + j, var + j)
        scale[j] = <floating>(one / sqrt(var[j] + sizes.eps))


cdef inline Py_ssize_t width_of(const Sizes* sizes, Py_ssize_t channels) noexcept nogil:
    return min(channels, <Py_ssize_t>COLUMNS) if sizes.inner == 1 else 1


cdef inline void normalise(const floating* x, floating* y, Py_ssize_t n, floating center,
                           floating factor, floating shift) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] - center) * factor + shift


cdef void channels(const floating* x, const floating* w, const floating* b, floating* y,
                   floating* mean, floating* var, const Sizes* sizes, Py_ssize_t begin,
                   Py_ssize_t end) noexcept nogil:
    """y := (x - mean) * scale * w + b; mean and var (channels) are given, too"""
    cdef double spread[COLUMNS]
    cdef floating scale[COLUMNS]
    cdef floating center[COLUMNS]        # beside y, which compilers keep apart from these alone
    cdef floating shift[COLUMNS]
    cdef Py_ssize_t step = sizes.channels * sizes.inner, c = begin, width, o, i, at
    while c < end:
        width = width_of(sizes, end - c)
        statistics(x + c * sizes.inner, sizes, width, mean + c, spread, scale)
        for i in range(width):
            var[c + i] = <floating>spread[i]
            scale[i], center[i], shift[i] = scale[i] * w[c + i], mean[c + i], b[c + i]
        for o in range(sizes.outer):
            at = o * step + c * sizes.inner
            if sizes.inner == 1:
                for i in range(width):
                    y[at + i] = (x[at + i] - center[i]) * scale[i] + shift[i]
            else:
                normalise(x + at, y + at, sizes.inner, center[0], scale[0], shift[0])
        c += width


cdef inline void column_sums(const floating* g, const floating* x, const Sizes* sizes,
                             Py_ssize_t width, const floating* mean, double* plain,
                             double* moved) noexcept nogil:
    """The sums of `channel_sums` for channels of one element each"""
    cdef floating sums[COLUMNS]
    cdef floating products[COLUMNS]
    cdef Py_ssize_t o = 0, i, at, end
    while o < sizes.outer:
        end = min(o + LEAF, sizes.outer)
        for i in range(width):
            sums[i] = products[i] = 0
        while o < end:
            at = o * sizes.channels
            for i in range(width):
                sums[i] += g[at + i]
                products[i] += g[at + i] * (x[at + i] - mean[i])
            o += 1
        for i in range(width):
            plain[i] += sums[i]
            moved[i] += products[i]


cdef inline void channel_sums(const floating* g, const floating* x, const Sizes* sizes,
                              Py_ssize_t width, const floating* mean, double* plain,
                              double* moved) noexcept nogil:
    """The sums of g and of g * (x - mean) over the channels whose first elements are at g and x"""
    cdef Py_ssize_t step = sizes.channels * sizes.inner, o, i
    cdef double sums, products
    for i in range(width):
        plain[i] = moved[i] = 0
    if sizes.inner == 1:
        column_sums(g, x, sizes, width, mean, plain, moved)
        return
    for o in range(sizes.outer):
        slopes(g + o * step, <const floating*>NULL, x + o * step, mean[0], sizes.inner, &sums,
               &products)
        plain[0] += sums
        moved[0] += products


cdef void channels_backward(const floating* g, const floating* x, const floating* w, floating* y,
                            const Sizes* sizes, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil:
    """y := scale * w * (g - mean(g) - u * mean(g * u))"""
    cdef floating mean[COLUMNS]
    cdef floating scale[COLUMNS]
    cdef floating shift[COLUMNS]
    cdef floating slope[COLUMNS]
    cdef double plain[COLUMNS]
    cdef double moved[COLUMNS]
    cdef double spread[COLUMNS]
    cdef Py_ssize_t step = sizes.channels * sizes.inner, c = begin, width, o, i, at
    cdef Py_ssize_t n = sizes.outer * sizes.inner
    while c < end:
        width, at = width_of(sizes, end - c), c * sizes.inner
        statistics(x + at, sizes, width, mean, spread, scale)
        channel_sums(g + at, x + at, sizes, width, mean, plain, moved)
        for i in range(width):
            slope[i] = <floating>(moved[i] / n * scale[i] * scale[i])
            shift[i] = <floating>(plain[i] / n) if sizes.centered else 0
            scale[i] *= w[c + i]
        for o in range(sizes.outer):
            at = o * step + c * sizes.inner
            if sizes.inner == 1:
                for i in range(width):
                    y[at + i] = scale[i] * (
                        g[at + i] - shift[i] - (x[at + i] - mean[i]) * slope[i])
            else:
                one_channel(g + at, x + at, y + at, sizes.inner, scale[0], shift[0], mean[0],
                            slope[0])
        c += width


cdef inline void one_channel(const floating* g, const floating* x, floating* y, Py_ssize_t n,
                             floating scale, floating shift, floating mean,
                             floating slope) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = scale * (g[i] - shift - (x[i] - mean) * slope)


cdef void channels_weight(const floating* g, const floating* x, floating* y, const Sizes* sizes,
                          Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y (channels) := sum of g * u"""
    cdef floating mean[COLUMNS]
    cdef floating scale[COLUMNS]
    cdef double spread[COLUMNS]
    cdef double plain[COLUMNS]
    cdef double moved[COLUMNS]
    cdef Py_ssize_t c = begin, width, i, at
    while c < end:
        width, at = width_of(sizes, end - c), c * sizes.inner
        statistics(x + at, sizes, width, mean, spread, scale)
        channel_sums(g + at, x + at, sizes, width, mean, plain, moved)
        for i in range(width):
            y[c + i] = <floating>(moved[i] * scale[i])
        c += width


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("rows", <size_t>&rows[float], <size_t>&rows[double]),
        ("rows_backward", <size_t>&rows_backward[float], <size_t>&rows_backward[double]),
        ("rows_weight", <size_t>&rows_weight[float], <size_t>&rows_weight[double]),
        ("channels", <size_t>&channels[float], <size_t>&channels[double]),
        ("channels_backward",
         <size_t>&channels_backward[float], <size_t>&channels_backward[double]),
        ("channels_weight", <size_t>&channels_weight[float], <size_t>&channels_weight[double]),
    ])
