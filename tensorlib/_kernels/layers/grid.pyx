"""`grid_sample`: images interpolated at points between their elements, and the gradients.

    void look(const T* x, const T* grid, T* y, const Look* look, Py_ssize_t begin, Py_ssize_t end)
    void look_back(const T* g, const T* x, const T* grid, T* dx, T* dgrid, const Look* look)

of one image x (channels, high, wide), with places (n, 2) that have the column first, y and g
(channels, n); `look` does the places [begin, end). Elements outside of the image count as zero.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from tensorlib._kernels.layers.grid cimport Look
from tensorlib._kernels.vecmath.rounding cimport floor
from tensorlib._kernels.vecmath.basics cimport floating, magnitude, round_even

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "layers/grid_pairs.h" nogil:
    void grid_blend_float(const float* plane, const int32_t* above, const int32_t* under,
                          const int32_t* masks, const float* parts, Py_ssize_t stride, float* out,
                          Py_ssize_t n)
    void grid_blend_double(const double* plane, const int32_t* above, const int32_t* under,
                           const int64_t* masks, const double* parts, Py_ssize_t stride,
                           double* out, Py_ssize_t n)

cdef enum:
    RUN = 128            # places that are computed together: whole vectors
    CORNERS = 4          # around a place: above, below; on the left, on the right

ctypedef fused mask:
    int32_t
    int64_t


cdef inline void stand(const floating* grid, Py_ssize_t n, floating size, int padding, bint align,
                       floating* at, floating* slopes) noexcept nogil:
    """The places in a dim of n coordinates from -1 to 1, and how fast they move"""
    cdef floating zero = 0, one = 1, half = 0.5, two = 2, most = size - one
    cdef floating scale = (most if align else size) * half, middle = most * half
    cdef floating low = zero if align else -half, span = most if align else size
    cdef floating away, turns, rest, odd, slope
    cdef Py_ssize_t i
    for i in range(n):
        at[i], slopes[i] = grid[2 * i] * scale + middle, scale
    if padding == 2 and span == zero:
        for i in range(n):
            at[i] = zero
    elif padding == 2:                   # mirrors at both ends, one element or half of it beyond
        for i in range(n):
            away = magnitude(at[i] - low)
            turns = floor(away / span)
            rest = away - turns * span
            odd = turns - two * floor(turns * half)
            slopes[i] = (-scale if at[i] < low else scale) * (one - two * odd)
            at[i] = low + (span - rest) * odd + rest * (one - odd)
    if padding:
        for i in range(n):
            slope, away = slopes[i], at[i]
            slopes[i] = slope if (away > zero) & (away < most) else zero
            away = away if away > zero else zero             # NaN, too, is at the first element
            at[i] = away if away < most else most


cdef inline int32_t at_or_none(int32_t at, int32_t there) noexcept nogil:
    """at if there (1), else (0) -1: a choice would be a branch"""
    return (at & -there) | (there - 1)


cdef inline void find(const floating* xs, const floating* ys, Py_ssize_t n, floating wide,
                      floating high, bint nearest, int32_t width, int32_t height, int32_t* corners,
                      floating* right, floating* below) noexcept nogil:
    """For n places the elements at their corners, or -1; the parts of these on the right and
    below. Sizes above 2**24 are not exact as float32"""
    cdef Py_ssize_t i
    cdef floating x, y, left, top
    cdef floating zero = 0, two = 2
    cdef int32_t at, col, row
    cdef int32_t first, second, upper, lower
    for i in range(n):
        x, y = xs[i], ys[i]
        left = round_even(x) if nearest else floor(x)
        top = round_even(y) if nearest else floor(y)
        right[i] = zero if nearest else x - left
        below[i] = zero if nearest else y - top
        left = left if left > -two else -two             # NaN, too, is outside
        top = top if top > -two else -two
        col, row = <int32_t>(left if left < wide else wide), <int32_t>(top if top < high else high)
        at = row * width + col
        first, second = (col >= 0) & (col < width), (col >= -1) & (col < width - 1)
        upper, lower = (row >= 0) & (row < height), (row >= -1) & (row < height - 1)
        corners[i] = at_or_none(at, first & upper)
        corners[RUN + i] = at_or_none(at + 1, second & upper)
        corners[2 * RUN + i] = at_or_none(at + width, first & lower)
        corners[3 * RUN + i] = at_or_none(at + width + 1, second & lower)


cdef inline void found(const floating* grid, Py_ssize_t n, const Look* look, int32_t* corners,
                       floating* right, floating* below, floating* slopes) noexcept nogil:
    """`find` with constants for the kinds, so that its loops do not ask for them; the slopes of the
    places, columns first"""
    cdef floating wide = <floating>look.wide, high = <floating>look.high
    cdef int32_t width = <int32_t>look.wide, height = <int32_t>look.high
    cdef floating xs[RUN]
    cdef floating ys[RUN]
    stand(grid, n, wide, look.padding, look.align, xs, slopes)
    stand(grid + 1, n, high, look.padding, look.align, ys, slopes + RUN)
    if look.nearest:
        find(xs, ys, n, wide, high, True, width, height, corners, right, below)
    else:
        find(xs, ys, n, wide, high, False, width, height, corners, right, below)


cdef inline floating seen(const floating* x, int32_t at) noexcept nogil:
    cdef floating value = x[at if at >= 0 else 0], zero = 0
    return value if at >= 0 else zero


cdef inline void nearest_of(const floating* xs, const floating* ys, Py_ssize_t n, floating wide,
                            floating high, int32_t width, int32_t height, int32_t* at,
                            mask* inside) noexcept nogil:
    """The nearest elements of n places, and masks of those that are there"""
    cdef Py_ssize_t i
    cdef floating x, y, two = 2
    cdef int32_t col, row, there
    for i in range(n):
        x, y = round_even(xs[i]), round_even(ys[i])
        x, y = x if x > -two else -two, y if y > -two else -two         # NaN, too, is outside
        col, row = <int32_t>(x if x < wide else wide), <int32_t>(y if y < high else high)
        there = (col >= 0) & (col < width) & (row >= 0) & (row < height)
        at[i], inside[i] = (row * width + col) & -there, -there


cdef inline void paired(const floating* xs, const floating* ys, Py_ssize_t n, floating wide,
                        floating high, int32_t width, int32_t height, int32_t* pairs, mask* masks,
                        floating* parts) noexcept nogil:
    """The elements around n places as pairs of neighbours: where those above and under begin;
    masks of what is inside, on the left, on the right, above, under; weights.

    Where only one of a pair is inside, the pair begins at it on the left edge, and one before it on
    the right one: its weight and its mask are then those of the other side.
    """
    cdef Py_ssize_t i
    cdef floating x, y, left, top, right, one = 1, two = 2
    cdef int32_t col, row, first, above, under, last = width - 2, bottom = height - 1
    for i in range(n):
        x, y = xs[i], ys[i]
        left, top = floor(x), floor(y)
        right = x - left
        parts[2 * RUN + i] = y - top
        left, top = left if left > -two else -two, top if top > -two else -two
        col, row = <int32_t>(left if left < wide else wide), <int32_t>(top if top < high else high)
        first = col if col > 0 else 0
        first = first if first < last else last
        above = row if row > 0 else 0
        under = row + 1 if row + 1 < bottom else bottom
        pairs[i] = (above if above < bottom else bottom) * width + first
        pairs[RUN + i] = (under if under > 0 else 0) * width + first
        masks[i] = -((col >= -1) & (col <= last))
        masks[RUN + i] = -((col >= 0) & (col < width))
        masks[2 * RUN + i] = -((row >= 0) & (row < height))
        masks[3 * RUN + i] = -((row >= -1) & (row < bottom))
        parts[i] = right if col < 0 else one - right
        parts[RUN + i] = one - right if col > last else right
    for i in range(n, min(<Py_ssize_t>RUN, n + 7)):      # to a whole vector, of nothing
        pairs[i] = pairs[RUN + i] = 0
        masks[i] = masks[RUN + i] = masks[2 * RUN + i] = masks[3 * RUN + i] = 0
        parts[i] = parts[RUN + i] = parts[2 * RUN + i] = 0


cdef inline void look_nearest(const floating* x, const floating* grid, floating* y,
                              const Look* look, Py_ssize_t begin, Py_ssize_t end,
                              mask none) noexcept nogil:
    """`look` at the nearest elements"""
    cdef int32_t at[RUN]
    cdef mask inside[RUN]
    cdef floating xs[RUN]
    cdef floating ys[RUN]
    cdef floating slopes[2 * RUN]
    cdef floating wide = <floating>look.wide, high = <floating>look.high
    cdef const floating* plane
    cdef floating* out
    cdef mask all_inside
    cdef Py_ssize_t c, i, n
    while begin < end:
        n = min(<Py_ssize_t>RUN, end - begin)
        stand(grid + 2 * begin, n, wide, look.padding, look.align, xs, slopes)
        stand(grid + 2 * begin + 1, n, high, look.padding, look.align, ys, slopes + RUN)
        nearest_of(xs, ys, n, wide, high, <int32_t>look.wide, <int32_t>look.high, at, inside)
        all_inside = -1
        for i in range(n):
            all_inside &= inside[i]
        for c in range(look.channels):
            plane = x + c * look.high * look.wide
            out = y + c * look.places + begin
            for i in range(n):
                out[i] = plane[at[i]]
            if not all_inside:
                for i in range(n):
                    (<mask*>out)[i] &= inside[i]
        begin += n


cdef inline void look_between(const floating* x, const floating* grid, floating* y,
                              const Look* look, Py_ssize_t begin, Py_ssize_t end,
                              mask none) noexcept nogil:
    """`look` between the elements of an image of two columns or more"""
    cdef int32_t pairs[2 * RUN]
    cdef mask masks[CORNERS * RUN]
    cdef floating xs[RUN]
    cdef floating ys[RUN]
    cdef floating slopes[2 * RUN]
    cdef floating parts[3 * RUN]
    cdef floating wide = <floating>look.wide, high = <floating>look.high
    cdef Py_ssize_t c, n
    cdef const floating* plane
    cdef floating* out
    while begin < end:
        n = min(<Py_ssize_t>RUN, end - begin)
        stand(grid + 2 * begin, n, wide, look.padding, look.align, xs, slopes)
        stand(grid + 2 * begin + 1, n, high, look.padding, look.align, ys, slopes + RUN)
        paired(xs, ys, n, wide, high, <int32_t>look.wide, <int32_t>look.high, pairs, masks, parts)
        for c in range(look.channels):
            plane = x + c * look.high * look.wide
            out = y + c * look.places + begin
            if floating is float and mask is int32_t:
                grid_blend_float(plane, pairs, pairs + RUN, masks, parts, RUN, out, n)
            elif floating is double and mask is int64_t:
                grid_blend_double(plane, pairs, pairs + RUN, masks, parts, RUN, out, n)
        begin += n


cdef void look(const floating* x, const floating* grid, floating* y, const Look* look,
               Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := what is seen in the places [begin, end)"""
    if floating is float:
        if look.nearest:
            look_nearest(x, grid, y, look, begin, end, <int32_t>0)
        elif look.wide > 1:
            look_between(x, grid, y, look, begin, end, <int32_t>0)
        else:
            look_at_column(x, grid, y, look, begin, end)
    else:
        if look.nearest:
            look_nearest(x, grid, y, look, begin, end, <int64_t>0)
        elif look.wide > 1:
            look_between(x, grid, y, look, begin, end, <int64_t>0)
        else:
            look_at_column(x, grid, y, look, begin, end)


cdef void look_at_column(const floating* x, const floating* grid, floating* y, const Look* look,
                         Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """`look` between the elements of one column, where no pair has room"""
    cdef int32_t corners[CORNERS * RUN]
    cdef floating right[RUN]
    cdef floating below[RUN]
    cdef floating slopes[2 * RUN]
    cdef floating one = 1, a, b
    cdef Py_ssize_t c, i, n
    cdef const floating* plane
    cdef floating* out
    while begin < end:
        n = min(<Py_ssize_t>RUN, end - begin)
        found(grid + 2 * begin, n, look, corners, right, below, slopes)
        for c in range(look.channels):
            plane = x + c * look.high
            out = y + c * look.places + begin
            for i in range(n):
                a = (seen(plane, corners[i]) * (one - right[i])
                     + seen(plane, corners[RUN + i]) * right[i])
                b = (seen(plane, corners[2 * RUN + i]) * (one - right[i])
                     + seen(plane, corners[3 * RUN + i]) * right[i])
                out[i] = a * (one - below[i]) + b * below[i]
        begin += n


cdef void look_back(const floating* g, const floating* x, const floating* grid, floating* dx,
                    floating* dgrid, const Look* look) noexcept nogil:
    """dx += the gradient of the image, dgrid := that of the places"""
    cdef int32_t corners[CORNERS * RUN]
    cdef floating right[RUN]
    cdef floating below[RUN]
    cdef floating slopes[2 * RUN]
    cdef floating along[2 * RUN]
    cdef floating one = 1, a, b, c, d, slope
    cdef Py_ssize_t channel, i, k, n, begin = 0
    cdef const floating* plane
    cdef const floating* given
    cdef floating* target
    while begin < look.places:
        n = min(<Py_ssize_t>RUN, look.places - begin)
        found(grid + 2 * begin, n, look, corners, right, below, slopes)
        memset(along, 0, 2 * RUN * sizeof(floating))
        for channel in range(look.channels):
            plane = x + channel * look.high * look.wide
            target = dx + channel * look.high * look.wide
            given = g + channel * look.places + begin
            if look.nearest:
                for i in range(n):
                    if corners[i] >= 0:
                        target[corners[i]] += given[i]
                continue
            for i in range(n):
                a, b = seen(plane, corners[i]), seen(plane, corners[RUN + i])
                c, d = seen(plane, corners[2 * RUN + i]), seen(plane, corners[3 * RUN + i])
                along[i] += given[i] * ((b - a) * (one - below[i]) + (d - c) * below[i])
                along[RUN + i] += given[i] * ((c - a) * (one - right[i]) + (d - b) * right[i])
            for i in range(n):
                a, b = given[i] * (one - below[i]), given[i] * below[i]
                if corners[i] >= 0:
                    target[corners[i]] += a * (one - right[i])
                if corners[RUN + i] >= 0:
                    target[corners[RUN + i]] += a * right[i]
                if corners[2 * RUN + i] >= 0:
                    target[corners[2 * RUN + i]] += b * (one - right[i])
                if corners[3 * RUN + i] >= 0:
                    target[corners[3 * RUN + i]] += b * right[i]
        for i in range(n):
            for k in range(2):           # where the slope is 0, so is the gradient
                slope = slopes[k * RUN + i]
                dgrid[2 * (begin + i) + k] = along[k * RUN + i] * slope if slope else slope
        begin += n


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("look", <size_t>&look[float], <size_t>&look[double]),
        ("look_back", <size_t>&look_back[float], <size_t>&look_back[double]),
    ])
