"""Layer, batch and group normalisation, (x - mean) / std, and their gradients.

For rows (rows, n), with a weight and a bias for each column. If `centered` is false the mean counts
as 0, and rows are divided by their root mean square:

    void rows(const T* x, const T* w, const T* b, T* y, Py_ssize_t rows, n, double eps, centered)
    void rows_backward(const T* g, const T* x, const T* w, T* y, rows, n, eps, centered)
    void rows_weight(const T* g, const T* x, T* y, rows, n, eps, centered)      y (n)

For the channels [begin, end) of (outer, channels, inner), over all other dims:

    void channels(const T* x, const T* w, const T* b, T* y, T* mean, T* var, const Sizes* sizes,
                  Py_ssize_t begin, end)
    void channels_backward(const T* g, const T* x, const T* w, T* y, T* dw, T* db, sizes, begin,
                           end)

For matrices (rows, n) whose columns are channels, `together` of which have one mean and one
variance. A matrix is cut into pieces of rows. One pass over each piece finds its sums, by leaves
that stay in the L1 cache; `settle` combines the pieces; and a second pass writes the results:

    void columns(const T* x, const T* g, const T* w, T* y, double* sums, Py_ssize_t rows, n)
    void settle(const T* x, const T* g, const T* w, double* sums, T* vectors, T* var, double* dw,
                double* db, const Columns* c)
    void spread_columns(const T* x, const T* g, const T* vectors, const T* b, T* y, rows, n)

sums (pieces, SUMS, n), vectors (VECTORS, n).

Each computes the mean and the variance anew: two passes over what is in the cache cost less than to
store and load them.
"""

from tensorlib._kernels.rows.moments cimport (
    TOGETHER, in_double, is_rough, row_statistics, rows_together, slopes, sum_of, sum_of_squares,
)
from tensorlib._kernels.vecmath.basics cimport floating, sqrt

from tensorlib._kernels import FLOATS, rows_for

ctypedef struct Sizes:
    Py_ssize_t outer, channels, inner
    double eps

ctypedef struct Columns:
    Py_ssize_t rows, most, channels, together    # most: rows of a piece
    double eps

cdef enum:
    COLUMNS = 64        # columns that go together
    LEAF = 32           # rows of them that stay in the L1 cache, and are added before double is
    SUMS = 4
    VECTORS = 4


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


# ---- channels in planes --------------------------------------------------------------------------

cdef inline void channel_statistics(const floating* x, const Sizes* sizes, floating* mean,
                                    double* var, floating* scale) noexcept nogil:
    """The mean and the variance of one channel, whose first element is at x, and
    1 / sqrt(var + eps)"""
    cdef Py_ssize_t step = sizes.channels * sizes.inner, o, n = sizes.outer * sizes.inner
    cdef double total = 0, one = 1
    for o in range(sizes.outer):
        total += sum_of(x + o * step, sizes.inner)
    mean[0] = <floating>(total / n)
    total = 0
    for o in range(sizes.outer):
        total += sum_of_squares(x + o * step, mean[0], sizes.inner)
    var[0] = total / n
    if is_rough(var[0], mean[0]):
        in_double(x, sizes.outer, step, sizes.inner, True, mean, var)
    scale[0] = <floating>(one / sqrt(var[0] + sizes.eps))


cdef inline void normalise(const floating* x, floating* y, Py_ssize_t n, floating center,
                           floating factor, floating shift) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] - center) * factor + shift


cdef void channels(const floating* x, const floating* w, const floating* b, floating* y,
                   floating* mean, floating* var, const Sizes* sizes, Py_ssize_t begin,
                   Py_ssize_t end) noexcept nogil:
    """y := (x - mean) * scale * w + b; mean and var (channels) are given, too"""
    cdef double spread
    cdef floating scale
    cdef Py_ssize_t step = sizes.channels * sizes.inner, c, o, at
    for c in range(begin, end):
        at = c * sizes.inner
        channel_statistics(x + at, sizes, mean + c, &spread, &scale)
        var[c] = <floating>spread
        for o in range(sizes.outer):
            normalise(x + at, y + at, sizes.inner, mean[c], scale * w[c], b[c])
            at += step


cdef inline void one_channel(const floating* g, const floating* x, floating* y, Py_ssize_t n,
                             floating scale, floating shift, floating mean,
                             floating slope) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = scale * (g[i] - shift - (x[i] - mean) * slope)


cdef void channels_backward(const floating* g, const floating* x, const floating* w, floating* y,
                            floating* dw, floating* db, const Sizes* sizes, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil:
    """y := scale * w * (g - mean(g) - u * mean(g * u)), dw := sum of g * u, db := sum of g"""
    cdef floating mean, scale, shift, slope
    cdef double spread, plain, moved, sums, products
    cdef Py_ssize_t step = sizes.channels * sizes.inner, c, o, at
    cdef Py_ssize_t n = sizes.outer * sizes.inner
    for c in range(begin, end):
        at = c * sizes.inner
        channel_statistics(x + at, sizes, &mean, &spread, &scale)
        plain = moved = 0
        for o in range(sizes.outer):
            slopes(g + at + o * step, <const floating*>NULL, x + at + o * step, mean, sizes.inner,
                   &sums, &products)
            plain += sums
            moved += products
        dw[c], db[c] = <floating>(moved * scale), <floating>plain
        shift, slope = <floating>(plain / n), <floating>(moved / n * scale * scale)
        for o in range(sizes.outer):
            one_channel(g + at, x + at, y + at, sizes.inner, scale * w[c], shift, mean, slope)
            at += step


# ---- columns -------------------------------------------------------------------------------------

cdef inline void leaf_means(const floating* x, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width,
                            floating* mean) noexcept nogil:
    cdef const floating* a = x
    cdef Py_ssize_t r = 0, j
    cdef floating part = <floating>1 / <floating>rows
    for j in range(width):
        mean[j] = 0
    while r + 4 <= rows:                     # which waits for a sum once instead of four times
        for j in range(width):
            mean[j] += (a[j] + a[step + j]) + (a[2 * step + j] + a[3 * step + j])
        a += 4 * step
        r += 4
    while r < rows:
        for j in range(width):
            mean[j] += a[j]
        a += step
        r += 1
    for j in range(width):
        mean[j] *= part


cdef inline void leaf_squares(const floating* x, Py_ssize_t rows, Py_ssize_t step,
                              Py_ssize_t width, const floating* mean,
                              floating* squares) noexcept nogil:
    cdef Py_ssize_t r = 0, j
    cdef floating first, second
    for j in range(width):
        squares[j] = 0
    while r + 2 <= rows:
        for j in range(width):
            first, second = x[j] - mean[j], x[step + j] - mean[j]
            squares[j] += first * first + second * second
        x += 2 * step
        r += 2
    if r < rows:
        for j in range(width):
            first = x[j] - mean[j]
            squares[j] += first * first


cdef inline void leaf_slopes(const floating* g, const floating* x, Py_ssize_t rows,
                             Py_ssize_t step, Py_ssize_t width, const floating* mean,
                             floating* plain, floating* moved) noexcept nogil:
    cdef Py_ssize_t r = 0, j
    for j in range(width):
        plain[j] = moved[j] = 0
    while r + 2 <= rows:
        for j in range(width):
            plain[j] += g[j] + g[step + j]
            moved[j] += g[j] * (x[j] - mean[j]) + g[step + j] * (x[step + j] - mean[j])
        g += 2 * step
        x += 2 * step
        r += 2
    if r < rows:
        for j in range(width):
            plain[j] += g[j]
            moved[j] += g[j] * (x[j] - mean[j])


cdef inline void add_flat(const floating* x, const floating* g, const floating* w, floating* y,
                          double* sums, Py_ssize_t rows, Py_ssize_t n,
                          Py_ssize_t width) noexcept nogil:
    """y := g * w; the last two of sums (SUMS, n) with those of a few rows more, about 0"""
    cdef floating mean[COLUMNS]
    cdef floating plain[COLUMNS]
    cdef floating moved[COLUMNS]
    cdef floating factor[COLUMNS]
    cdef Py_ssize_t j, r
    for j in range(width):
        mean[j], factor[j] = 0, w[j]
    leaf_slopes(g, x, rows, n, width, mean, plain, moved)
    for r in range(rows):
        for j in range(width):
            y[r * n + j] = g[r * n + j] * factor[j]
    for j in range(width):
        sums[2 * n + j] += plain[j]
        sums[3 * n + j] += moved[j]


cdef inline void add_leaf(const floating* x, const floating* g, double* sums, Py_ssize_t before,
                          Py_ssize_t rows, Py_ssize_t n, Py_ssize_t width) noexcept nogil:
    """sums (SUMS, n), of so many rows before, with those of a few more"""
    cdef floating mean[COLUMNS]
    cdef floating squares[COLUMNS]
    cdef floating plain[COLUMNS]
    cdef floating moved[COLUMNS]
    cdef double part = <double>rows / <double>(before + rows), both = before * part, off, step
    cdef Py_ssize_t j
    leaf_means(x, rows, n, width, mean)
    leaf_squares(x, rows, n, width, mean, squares)
    if g != NULL:
        leaf_slopes(g, x, rows, n, width, mean, plain, moved)
        for j in range(width):
            off = mean[j] - sums[j]
            step = off * part
            sums[3 * n + j] += moved[j] + (off - step) * plain[j] - step * sums[2 * n + j]
            sums[2 * n + j] += plain[j]
    for j in range(width):
        off = mean[j] - sums[j]
        sums[j] += off * part
        sums[n + j] += squares[j] + off * off * both


cdef void columns(const floating* x, const floating* g, const floating* w, floating* y,
                  double* sums, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """sums (SUMS, n) := of each column the mean, and the sums of (x - mean)^2, of g and of
    g * (x - mean); the last two if there is g. With y the mean is taken as 0, and y := g * w"""
    cdef Py_ssize_t r = 0, c, here, width, at
    for c in range(SUMS * n):
        sums[c] = 0
    while r < rows:
        here = min(<Py_ssize_t>LEAF, rows - r)
        c = 0
        while c < n:
            width, at = min(<Py_ssize_t>COLUMNS, n - c), r * n + c
            if y != NULL:
                add_flat(x + at, g + at, w + c, y + at, sums + c, here, n, width)
            else:
                add_leaf(x + at, <const floating*>NULL if g == NULL else g + at, sums + c, r, here,
                         n, width)
            c += width
        r += here


cdef inline void join(double* sums, const Columns* all) noexcept nogil:
    """The sums of the first piece of rows := those of all"""
    cdef double* more = sums
    cdef double part, off, step
    cdef Py_ssize_t before = all.most, rows, n = all.channels, j
    while before < all.rows:
        more += SUMS * n
        rows = min(all.most, all.rows - before)
        part = <double>rows / <double>(before + rows)
        for j in range(n):
            off = more[j] - sums[j]
            step = off * part
            sums[3 * n + j] += more[3 * n + j] + (off - step) * more[2 * n + j] - (
                step * sums[2 * n + j])
            sums[2 * n + j] += more[2 * n + j]
            sums[n + j] += more[n + j] + off * step * before
            sums[j] += step
        before += rows


cdef bint settle(const floating* x, const floating* g, const floating* w, double* sums,
                 floating* vectors, floating* var, double* dw, double* db,
                 const Columns* all) noexcept nogil:
    """vectors (VECTORS, n) := mean, scale * w, scale * mean(h) and scale^2 * mean(h * u), where
    h = g * w; var, or dw and db, of which the gradients are added, if they are there. Returns
    whether x is NULL although the sums are too rough without it."""
    cdef Py_ssize_t n = all.channels, c, i, r
    cdef double one = 1, center, spread, off, down, turn
    cdef double among = one / all.together, part = among / all.rows
    cdef floating middle, scale
    cdef Py_ssize_t end = 0
    join(sums, all)
    while end < n:
        c, end = end, end + all.together
        center = spread = down = turn = 0
        for i in range(c, end):
            center += sums[i]
        middle = <floating>(center * among)
        for i in range(c, end):
            off = sums[i] - middle
            spread += sums[n + i] + off * off * all.rows
            sums[3 * n + i] += off * sums[2 * n + i]
        spread *= part
        if is_rough(spread, middle):
            if x == NULL:
                return True
            in_double(x + c, all.rows, n, all.together, True, &middle, &spread)
            for i in range(c, end if g != NULL else c):
                sums[3 * n + i] = 0
                for r in range(all.rows):
                    sums[3 * n + i] += <double>g[r * n + i] * (x[r * n + i] - middle)
        scale = <floating>(one / sqrt(spread + all.eps))
        if var != NULL:
            var[c] = <floating>spread
        for i in range(c, end if g != NULL else c):
            down += sums[2 * n + i] * w[i]
            turn += sums[3 * n + i] * w[i]
            dw[i] += sums[3 * n + i] * scale
            db[i] += sums[2 * n + i]
        for i in range(c, end):
            vectors[i], vectors[n + i] = middle, scale * w[i]
            vectors[2 * n + i] = <floating>(down * part * scale)
            vectors[3 * n + i] = <floating>(turn * part * scale * scale * scale)
    return False


cdef void spread_columns(const floating* x, const floating* g, const floating* vectors,
                         const floating* b, floating* y, Py_ssize_t rows,
                         Py_ssize_t n) noexcept nogil:
    """y := (x - mean) * scale * w + b, or with g its gradient g * scale * w - ..."""
    cdef floating mean[COLUMNS]          # beside y, which compilers keep apart from these alone
    cdef floating factor[COLUMNS]
    cdef floating shift[COLUMNS]
    cdef floating slope[COLUMNS]
    cdef Py_ssize_t r = 0, c, i, j, at, here, width
    while r < rows:
        here = min(<Py_ssize_t>LEAF, rows - r)
        c = 0
        while c < n:
            width, at = min(<Py_ssize_t>COLUMNS, n - c), r * n + c
            for j in range(width):
                mean[j], factor[j] = vectors[c + j], vectors[n + c + j]
                shift[j] = b[c + j] if g == NULL else vectors[2 * n + c + j]
                slope[j] = vectors[3 * n + c + j]
            for i in range(here):
                if g == NULL:
                    for j in range(width):
                        y[at + j] = (x[at + j] - mean[j]) * factor[j] + shift[j]
                else:
                    for j in range(width):
                        y[at + j] = g[at + j] * factor[j] - shift[j] - (
                            x[at + j] - mean[j]) * slope[j]
                at += n
            c += width
        r += here


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("rows", <size_t>&rows[float], <size_t>&rows[double]),
        ("rows_backward", <size_t>&rows_backward[float], <size_t>&rows_backward[double]),
        ("rows_weight", <size_t>&rows_weight[float], <size_t>&rows_weight[double]),
        ("channels", <size_t>&channels[float], <size_t>&channels[double]),
        ("channels_backward",
         <size_t>&channels_backward[float], <size_t>&channels_backward[double]),
        ("columns", <size_t>&columns[float], <size_t>&columns[double]),
        ("settle", <size_t>&settle[float], <size_t>&settle[double]),
        ("spread_columns", <size_t>&spread_columns[float], <size_t>&spread_columns[double]),
    ])
