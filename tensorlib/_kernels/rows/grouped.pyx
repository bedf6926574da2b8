"""Group normalisation, and the affine map of channels (scale and shift).

Of the groups [begin, end) of all examples, whose channels lie one after the other, with a weight
and a bias for each channel:

    void groups(const T* x, const T* w, const T* b, T* y, const Planes* planes, begin, end)
    void groups_backward(const T* g, const T* x, const T* w, T* y, T* dw, T* db,
                         const Planes* planes, begin, end)
        dw and db (examples, channels): the gradients of weight and bias by each example

Of the channels [begin, end) of all examples:

    void scaled(const T* x, const T* w, const T* b, T* y, const Planes* planes, begin, end)
    void scaled_backward(const T* g, const T* x, const T* w, T* y, T* dw, T* db,
                         const Planes* planes, begin, end)

The mean and the variance of a group are computed anew in its gradient, as in `normalize.pyx`.
"""

from tensorlib._kernels.rows.moments cimport TOGETHER, row_statistics, rows_together, slopes
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for

ctypedef struct Planes:
    Py_ssize_t channels, together, inner     # of an example, of a group; elements of a channel
    double eps

cdef enum:
    SHORT = 12          # elements that are added one by one before the vector loops have begun


# ---- groups --------------------------------------------------------------------------------------

cdef inline void group_of(const floating* x, const floating* w, const floating* b, floating* y,
                          const Planes* planes, floating mean, floating scale) noexcept nogil:
    """y := (x - mean) * scale * w + b of one group"""
    cdef Py_ssize_t c, i
    cdef floating factor, shift
    if planes.inner == 1:
        for c in range(planes.together):
            y[c] = (x[c] - mean) * scale * w[c] + b[c]
        return
    for c in range(planes.together):
        factor, shift = scale * w[c], b[c]
        for i in range(planes.inner):
            y[i] = (x[i] - mean) * factor + shift
        x += planes.inner
        y += planes.inner


cdef void groups(const floating* x, const floating* w, const floating* b, floating* y,
                 const Planes* planes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := (x - mean) * scale * w + b"""
    cdef floating mean[TOGETHER]
    cdef floating scale[TOGETHER]
    cdef Py_ssize_t n = planes.together * planes.inner, here, r, c
    while begin < end:
        here = rows_together(end - begin, n)
        row_statistics(x + begin * n, here, n, planes.eps, True, mean, scale)
        for r in range(here):
            c = (begin + r) * planes.together % planes.channels
            group_of(x + (begin + r) * n, w + c, b + c, y + (begin + r) * n, planes, mean[r],
                     scale[r])
        begin += here


cdef inline void channel_slopes(const floating* g, const floating* x, floating mean, Py_ssize_t n,
                                double* plain, double* moved) noexcept nogil:
    """The sums of g and of g * (x - mean) of one channel"""
    cdef floating sums = 0
    cdef floating products = 0
    cdef Py_ssize_t i
    if n > SHORT:
        slopes(g, <const floating*>NULL, x, mean, n, plain, moved)
        return
    for i in range(n):
        sums += g[i]
        products += g[i] * (x[i] - mean)
    plain[0], moved[0] = sums, products


cdef inline void group_slopes(const floating* g, const floating* x, const floating* w,
                              floating* dw, floating* db, const Planes* planes, floating mean,
                              floating scale, double* plain, double* moved) noexcept nogil:
    """The sums of g * w and of g * w * (x - mean) of one group, and the gradients of w and b"""
    cdef Py_ssize_t c
    cdef double sums, products
    if planes.inner == 1:
        slopes(g, w, x, mean, planes.together, plain, moved)
        for c in range(planes.together):
            dw[c] = g[c] * ((x[c] - mean) * scale)
            db[c] = g[c]
        return
    plain[0] = moved[0] = 0
    for c in range(planes.together):
        channel_slopes(g + c * planes.inner, x + c * planes.inner, mean, planes.inner, &sums,
                       &products)
        dw[c], db[c] = <floating>(products * scale), <floating>sums
        plain[0] += sums * w[c]
        moved[0] += products * w[c]


cdef inline void group_back(const floating* g, const floating* x, const floating* w, floating* y,
                            const Planes* planes, floating mean, floating scale, floating shift,
                            floating slope) noexcept nogil:
    """y := scale * (g * w - shift - (x - mean) * slope) of one group"""
    cdef Py_ssize_t c, i
    cdef floating factor
    if planes.inner == 1:
        for c in range(planes.together):
            y[c] = scale * (g[c] * w[c] - shift - (x[c] - mean) * slope)
        return
    for c in range(planes.together):
        factor = w[c]
        for i in range(planes.inner):
            y[i] = scale * (g[i] * factor - shift - (x[i] - mean) * slope)
        g += planes.inner
        x += planes.inner
        y += planes.inner


cdef void groups_backward(const floating* g, const floating* x, const floating* w, floating* y,
                          floating* dw, floating* db, const Planes* planes, Py_ssize_t begin,
                          Py_ssize_t end) noexcept nogil:
    """y := scale * (h - mean(h) - u * mean(h * u)), h = g * w and u the normalised x"""
    cdef floating mean[TOGETHER]
    cdef floating scale[TOGETHER]
    cdef double plain, moved
    cdef Py_ssize_t n = planes.together * planes.inner, here, r, c, at, first
    while begin < end:
        here = rows_together(end - begin, n)
        row_statistics(x + begin * n, here, n, planes.eps, True, mean, scale)
        for r in range(here):
            at, first = (begin + r) * n, (begin + r) * planes.together
            c = first % planes.channels
            group_slopes(g + at, x + at, w + c, dw + first, db + first, planes, mean[r], scale[r],
                         &plain, &moved)
            group_back(g + at, x + at, w + c, y + at, planes, mean[r], scale[r],
                       <floating>(plain / n), <floating>(moved / n * scale[r] * scale[r]))
        begin += here


# ---- channels ------------------------------------------------------------------------------------

cdef inline void row_scaled(const floating* x, floating factor, floating shift, floating* y,
                            Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] * factor + shift


cdef void scaled(const floating* x, const floating* w, const floating* b, floating* y,
                 const Planes* planes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := x * w + b"""
    cdef Py_ssize_t n = planes.inner, c = begin % planes.channels, here, i
    while begin < end:
        if n == 1:                                  # a whole example, whose channels are a row
            here = min(end - begin, planes.channels - c)
            for i in range(here):
                y[begin + i] = x[begin + i] * w[c + i] + b[c + i]
        else:
            here = 1
            row_scaled(x + begin * n, w[c], b[c], y + begin * n, n)
        begin += here
        c += here
        if c == planes.channels:
            c = 0


cdef void scaled_backward(const floating* g, const floating* x, const floating* w, floating* y,
                          floating* dw, floating* db, const Planes* planes, Py_ssize_t begin,
                          Py_ssize_t end) noexcept nogil:
    """y := g * w; dw := sum of g * x and db := sum of g of each channel of each example"""
    cdef Py_ssize_t n = planes.inner, c = begin % planes.channels, at, i
    cdef double plain, moved
    cdef floating factor
    g += begin * n
    x += begin * n
    y += begin * n
    for at in range(begin, end):
        channel_slopes(g, x, <floating>0, n, &plain, &moved)
        dw[at], db[at] = <floating>moved, <floating>plain
        factor = w[c]
        for i in range(n):
            y[i] = g[i] * factor
        g += n
        x += n
        y += n
        c += 1
        if c == planes.channels:
            c = 0


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("groups", <size_t>&groups[float], <size_t>&groups[double]),
        ("groups_backward", <size_t>&groups_backward[float], <size_t>&groups_backward[double]),
        ("scaled", <size_t>&scaled[float], <size_t>&scaled[double]),
        ("scaled_backward", <size_t>&scaled_backward[float], <size_t>&scaled_backward[double]),
    ])
