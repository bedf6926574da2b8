"""Max and average pooling over planes.

Planes and windows are as in `windows.pyx`; see there.

    void run(const T* x, T* y, const Window* w, Py_ssize_t planes)
"""

from libc.stdint cimport int64_t

from tensorlib._kernels.vecmath.basics cimport floating, infinity
from tensorlib._kernels.layers.windows cimport Window, area, cut, first_inside, inside

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "layers/pool_rows.h" nogil:
    void pool_row_float(const float* x, const Py_ssize_t* taps, Py_ssize_t n_taps, Py_ssize_t step,
                        Py_ssize_t n, float* y, int64_t* at)
    void pool_row_double(const double* x, const Py_ssize_t* taps, Py_ssize_t n_taps,
                         Py_ssize_t step, Py_ssize_t n, double* y, int64_t* at)
    void pool_mean_row_float(const float* x, const Py_ssize_t* taps, Py_ssize_t n_taps,
                             Py_ssize_t step, Py_ssize_t n, float divisor, float* y)
    void pool_mean_row_double(const double* x, const Py_ssize_t* taps, Py_ssize_t n_taps,
                              Py_ssize_t step, Py_ssize_t n, double divisor, double* y)

cdef enum:
    RUN = 256        # neighbouring windows that are processed together
    NARROW = 5       # fewer windows are processed one by one
    LEAST = 4        # the same for maxima
    TOGETHER = 4096  # elements of planes that are looked at together
    TAPS = 1024      # elements of a window up to which windows are looked at together
    MOST = 32        # elements of a row of a window up to which windows are looked at together
    LEAST_ROWS = 4   # of a window that has its elements alone, for which its rows go together first
    ROW = 2048       # elements of a row of a plane, with its padding, that are looked at together

cdef Py_ssize_t FARTHEST = 0x7FFFFFFF            # the largest place that fits an int32

# ---- maxima --------------------------------------------------------------------------------------

cdef void max_pool(const floating* x, floating* y, int64_t* at, const Window* w,
                   Py_ssize_t planes) noexcept nogil:
    """y, at := the greatest element of each window and, unless `at` is NULL, its place in the
    plane, the first of equals; NaN is the greatest, the last of several. Each window has an element
    in the plane."""
    cdef Py_ssize_t taps[TAPS]
    cdef int64_t* places
    cdef Py_ssize_t size = area(w.size), out = area(w.out), begin = 0, end = w.out[2]
    cdef Py_ssize_t together = 1 + TOGETHER // max(size, 1), low, high, i, j, k, p, row, count
    if w.adaptive:
        max_of_parts(x, y, at, w, planes)
        return
    for k in range(w.kernel[2]):         # the windows that lie in the plane from side to side
        inside(w.size[2], w.out[2], w.stride[2], k * w.dilation[2] - w.pad[2], &low, &high)
        begin, end = max(begin, low), min(end, high)
    if end <= begin or area(w.kernel) > TAPS or size > FARTHEST:
        begin = end = 0
    while planes > 0:
        together = min(together, planes)
        for i in range(w.out[0]):
            for j in range(w.out[1]):
                row = (i * w.out[1] + j) * w.out[2]
                count = taps_of(w, i, j, begin, taps) if begin < end else 0
                for p in range(together):
                    k = p * out + row
                    places = at + k if at != NULL else NULL
                    max_of_each(x + p * size, y + k, places, w, i, j, 0, begin)
                    max_of_run(x + p * size, taps, count, w.stride[2], end - begin, y + k + begin,
                               places + begin if at != NULL else NULL)
                    max_of_each(x + p * size, y + k, places, w, i, j, end, w.out[2])
        x += together * size
        y += together * out
        if at != NULL:
            at += together * out
        planes -= together


cdef inline Py_ssize_t taps_of(const Window* w, Py_ssize_t i, Py_ssize_t j, Py_ssize_t first,
                               Py_ssize_t* taps) noexcept nogil:
    """Writes the places in the plane of the elements of a window of a row, and returns how many
    there are"""
    cdef Py_ssize_t a, b, c, base, count = 0
    for a in range(w.kernel[0]):
        for b in range(w.kernel[1]):
            base = row_of(w, i, j, a, b)
            if base < 0:
                continue
            for c in range(w.kernel[2]):
                taps[count] = base + first * w.stride[2] + c * w.dilation[2] - w.pad[2]
                count += 1
    return count


cdef inline Py_ssize_t row_of(const Window* w, Py_ssize_t i, Py_ssize_t j, Py_ssize_t a,
                              Py_ssize_t b) noexcept nogil:
    """Where the row of the plane begins that has the row (a, b) of a window; -1 if it has none"""
    cdef Py_ssize_t z = i * w.stride[0] + a * w.dilation[0] - w.pad[0]
    cdef Py_ssize_t row = j * w.stride[1] + b * w.dilation[1] - w.pad[1]
    if not (0 <= z < w.size[0] and 0 <= row < w.size[1]):
        return -1
    return (z * w.size[1] + row) * w.size[2]


cdef inline void max_of_run(const floating* x, const Py_ssize_t* taps, Py_ssize_t count,
                            Py_ssize_t step, Py_ssize_t n, floating* y,
                            int64_t* at) noexcept nogil:
    """n windows of a row, `step` apart; taps: the places of the elements of the first one"""
    cdef Py_ssize_t k, tap, place, one, better
    cdef floating value
    if n >= LEAST:
        if floating is float:
            pool_row_float(x, taps, count, step, n, y, at)
        else:
            pool_row_double(x, taps, count, step, n, y, at)
        return
    for k in range(n):
        place = taps[0] + k * step
        for tap in range(1, count):
            one = taps[tap] + k * step
            value = x[one]
            # GCC makes a branch of a choice, which is never foreseen
            better = -<Py_ssize_t>((value > x[place]) | (value != value))
            place = (one & better) | (place & ~better)
        y[k] = x[place]
        if at != NULL:
            at[k] = place


cdef inline void max_of_parts(const floating* x, floating* y, int64_t* at, const Window* w,
                              Py_ssize_t planes) noexcept nogil:
    """The same of windows that cover the plane, and differ in size"""
    cdef floating best, value
    cdef Py_ssize_t p, i, j, k, z, row, col, base, place
    cdef Py_ssize_t begin[3]
    cdef Py_ssize_t end[3]
    for p in range(planes):
        for i in range(w.out[0]):
            cut(w, 0, i, &begin[0], &end[0])
            for j in range(w.out[1]):
                cut(w, 1, j, &begin[1], &end[1])
                for k in range(w.out[2]):
                    cut(w, 2, k, &begin[2], &end[2])
                    place = (begin[0] * w.size[1] + begin[1]) * w.size[2] + begin[2]
                    best = x[place]
                    for z in range(begin[0], end[0]):
                        for row in range(begin[1], end[1]):
                            base = (z * w.size[1] + row) * w.size[2]
                            for col in range(base + begin[2], base + end[2]):
                                value = x[col]
                                if not value <= best and (value > best or value != value):
                                    best, place = value, col
                    y[k], at[k] = best, place
                y += w.out[2]
                at += w.out[2]
        x += area(w.size)


cdef inline void max_of_each(const floating* x, floating* y, int64_t* at, const Window* w,
                             Py_ssize_t i, Py_ssize_t j, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil:
    """The windows [begin, end) of a row, one after the other"""
    cdef floating best, value
    cdef Py_ssize_t a, b, c, k, column, base, place, better
    for k in range(begin, end):
        best, place = 0, -1
        for a in range(w.kernel[0]):
            for b in range(w.kernel[1]):
                base = row_of(w, i, j, a, b)
                if base < 0:
                    continue
                for c in range(w.kernel[2]):
                    column = k * w.stride[2] + c * w.dilation[2] - w.pad[2]
                    if 0 <= column < w.size[2]:
                        value = x[base + column]
                        # GCC makes a branch of a choice, which is never foreseen
                        better = -<int64_t>((place < 0) | (value > best) | (value != value))
                        place = ((base + column) & better) | (place & ~better)
                        best = x[place]
        y[k] = best
        if at != NULL:
            at[k] = place


cdef inline void bounds(const Window* w, Py_ssize_t c, Py_ssize_t first, Py_ssize_t n,
                        Py_ssize_t* begin, Py_ssize_t* end) noexcept nogil:
    """Which windows of a run of n have their element c of a row in the plane"""
    inside(w.size[2], w.out[2], w.stride[2], c * w.dilation[2] - w.pad[2], begin, end)
    begin[0], end[0] = max(begin[0], first) - first, min(end[0], first + n) - first


# ---- maxima without their places -----------------------------------------------------------------

cdef void max_rows(const floating* x, floating* y, const Window* w,
                   Py_ssize_t planes) noexcept nogil:
    """y := the values of `max_pool`, of windows whose rows are at most half of ROW wide

    Of windows that overlap, the greatest elements of the rows that a row of windows has are found
    first, with no bounds, then those of each window among them.
    """
    cdef floating best[ROW]
    cdef Py_ssize_t p, i, j, z, row, begin = 0, count, left, low, high, top, far, below, last
    cdef Py_ssize_t wide = (w.kernel[2] - 1) * w.dilation[2] + 1
    cdef Py_ssize_t most = (<Py_ssize_t>ROW - wide) // w.stride[2] + 1
    cdef const floating* source
    cdef const floating* before
    if w.kernel[0] * w.kernel[1] < LEAST_ROWS and are_apart(w):
        max_pool(x, y, NULL, w, planes)
        return
    while begin < w.out[2]:
        count, left = min(most, w.out[2] - begin), begin * w.stride[2] - w.pad[2]
        last = (count - 1) * w.stride[2] + wide
        low, high = max(<Py_ssize_t>0, -left), min(last, w.size[2] - left)
        for z in range(low):
            best[z] = -infinity(best[0])
        for z in range(high, last):
            best[z] = -infinity(best[0])
        for p in range(planes):
            for i in range(w.out[0]):
                far = min(w.size[0], i * w.stride[0] - w.pad[0] + w.kernel[0] * w.dilation[0])
                for j in range(w.out[1]):
                    below = min(w.size[1], j * w.stride[1] - w.pad[1]
                                + w.kernel[1] * w.dilation[1])
                    z, top, before = first_inside(w, 0, i), first_inside(w, 1, j), NULL
                    while z < far:
                        row = top
                        while row < below:
                            source = x + ((p * w.size[0] + z) * w.size[1] + row) * w.size[2] + left
                            if before == NULL:
                                before = source
                            elif before == best:
                                larger_of(best, source, best, low, high)
                            else:                            # the first two rows at once
                                larger_of(before, source, best, low, high)
                                before = best
                            row += w.dilation[1]
                        z += w.dilation[0]
                    if before != best and not (low == 0 and high == last):
                        for row in range(low, high):
                            best[row] = before[row]
                        before = best
                    max_along(before, y + begin, w, count)
                    y += w.out[2]
        y -= planes * area(w.out)
        begin += most


cdef inline bint are_apart(const Window* w) noexcept nogil:
    """Whether no element is in several windows"""
    cdef int d
    for d in range(3):
        if w.kernel[d] > 1 and (w.dilation[d] > 1 or w.kernel[d] > w.stride[d]):
            return False
    return True


cdef inline floating larger(floating a, floating b) noexcept nogil:
    """The larger one, b if that is NaN or if they are equal, a if that is"""
    return b if (b > a) | (b != b) else a


cdef inline void larger_of(const floating* a, const floating* b, floating* y, Py_ssize_t begin,
                           Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(begin, end):
        y[k] = larger(a[k], b[k])


cdef inline void max_along(const floating* x, floating* y, const Window* w,
                           Py_ssize_t n) noexcept nogil:
    """y := the greatest elements of windows of a row, which begin at x and lie in it"""
    cdef Py_ssize_t c
    if w.stride[2] == 1:                     # constant steps are vectorised
        begin_along(x, y, w, n, 1)
    elif w.stride[2] == 2:
        begin_along(x, y, w, n, 2)
    else:
        begin_along(x, y, w, n, w.stride[2])
    for c in range(3, w.kernel[2]):          # as `begin_along` has seen three
        if w.stride[2] == 1:
            go_on(x + c * w.dilation[2], y, n, 1)
        else:
            go_on(x + c * w.dilation[2], y, n, w.stride[2])


cdef inline void begin_along(const floating* x, floating* y, const Window* w, Py_ssize_t n,
                             Py_ssize_t stride) noexcept nogil:
    """The same of the first three elements of windows at most"""
    cdef Py_ssize_t k
    cdef const floating* second = x + w.dilation[2]
    cdef const floating* third = second + w.dilation[2]
    if w.kernel[2] >= 3:
        for k in range(n):
            y[k] = larger(larger(x[k * stride], second[k * stride]), third[k * stride])
    elif w.kernel[2] == 2:
        for k in range(n):
            y[k] = larger(x[k * stride], second[k * stride])
    else:
        for k in range(n):
            y[k] = x[k * stride]


cdef inline void go_on(const floating* x, floating* best, Py_ssize_t n,
                       Py_ssize_t stride) noexcept nogil:
    """best := the elements of x, `stride` apart, where they are larger"""
    cdef Py_ssize_t k
    for k in range(n):
        best[k] = larger(best[k], x[k * stride])


# ---- the places of maxima ------------------------------------------------------------------------

cdef int put_places(const floating* g, const int64_t* at, floating* y, Py_ssize_t planes,
                    Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """y (planes, size) += g (planes, n) at places; false for one that is not in the plane"""
    cdef Py_ssize_t p, i, place
    for p in range(planes):
        for i in range(n):
            place = (<const volatile int64_t*>at)[i]
            if not 0 <= place < size:
                return False
            y[place] += g[i]
        g += n
        at += n
        y += size
    return True


# ---- means ---------------------------------------------------------------------------------------

cdef void avg_pool(const floating* x, floating* y, const Window* w,
                   Py_ssize_t planes) noexcept nogil:
    """y := the mean of each window"""
    means(x, y, w, planes, False)


cdef void avg_pool_backward(const floating* x, floating* y, const Window* w,
                            Py_ssize_t planes) noexcept nogil:
    """y (planes) += each element of x, divided, over its window"""
    means(y, <floating*>x, w, planes, True)


cdef inline void means(const floating* x, floating* y, const Window* w, Py_ssize_t planes,
                       bint back) noexcept nogil:
    cdef Py_ssize_t k
    if w.adaptive or w.out[2] < NARROW or w.kernel[2] > MOST:
        means_of_each(x, y, w, planes, back)
        return
    if not back and fits_side_by_side(w):
        means_of_rows(x, y, w, planes)
        return
    for k in range(0, w.out[2], 256):    # RUN
        mean_runs(x, y + k, w, planes, k, min(<Py_ssize_t>RUN, w.out[2] - k), back)


cdef inline bint fits_side_by_side(const Window* w) noexcept nogil:
    """Whether all windows of a row lie in the plane from side to side"""
    return w.pad[2] == 0 and (w.out[2] - 1) * w.stride[2] + w.kernel[2] <= w.size[2] and (
        area(w.kernel) <= TAPS)


cdef inline void means_of_rows(const floating* x, floating* y, const Window* w,
                               Py_ssize_t planes) noexcept nogil:
    """The means of such windows, each in the order of `means_of_each`"""
    cdef Py_ssize_t taps[TAPS]
    cdef Py_ssize_t size = area(w.size), out = area(w.out), n = w.out[2]
    cdef Py_ssize_t together = 1 + TOGETHER // max(size, 1), p, i, j, row, count, covered
    cdef Py_ssize_t low, high
    cdef floating divisor
    while planes > 0:
        together = min(together, planes)
        for i in range(w.out[0]):
            for j in range(w.out[1]):
                covered = cut(w, 0, i, &low, &high) * cut(w, 1, j, &low, &high) * w.kernel[2]
                divisor = <floating>(w.divisor if w.divisor else covered)
                row = (i * w.out[1] + j) * n
                count = taps_of(w, i, j, 0, taps)
                for p in range(together):
                    if floating is float:
                        pool_mean_row_float(x + p * size, taps, count, w.stride[2], n, divisor,
                                            y + p * out + row)
                    else:
                        pool_mean_row_double(x + p * size, taps, count, w.stride[2], n, divisor,
                                             y + p * out + row)
        x += together * size
        y += together * out
        planes -= together


cdef inline void mean_runs(const floating* x, floating* y, const Window* w, Py_ssize_t planes,
                           Py_ssize_t first, Py_ssize_t n, bint back) noexcept nogil:
    """The windows [first, first + n) of each row of them, each in the order of `means_of_each`"""
    cdef floating total[RUN]
    cdef floating wide[RUN]
    cdef Py_ssize_t begin[MOST]
    cdef Py_ssize_t end[MOST]
    cdef Py_ssize_t lows[3]
    cdef Py_ssize_t highs[3]
    cdef Py_ssize_t p, i, j, k, z, row, c, last = w.kernel[2] - 1
    cdef floating divisor
    cdef const floating* source
    for k in range(n):
        wide[k] = 1 if w.divisor else <floating>cut(w, 2, first + k, &lows[2], &highs[2])
    for c in range(w.kernel[2]):
        bounds(w, c, first, n, &begin[c], &end[c])
    for p in range(planes):
        for i in range(w.out[0]):
            for j in range(w.out[1]):
                z = cut(w, 0, i, &lows[0], &highs[0]) * cut(w, 1, j, &lows[1], &highs[1])
                divisor = <floating>(w.divisor if w.divisor else z)
                for k in range(n):
                    total[k] = y[k] / (divisor * wide[k]) if back else 0
                for z in range(lows[0], highs[0]):
                    for row in range(lows[1], highs[1]):
                        source = x + ((z * w.size[1] + row) * w.size[2] + first * w.stride[2]
                                      - w.pad[2])
                        for c in range(w.kernel[2]):
                            if back:     # from the end, so that windows come in their order
                                add_back(total, <floating*>source + last - c, begin[last - c],
                                         end[last - c], w.stride[2])
                            elif w.stride[2] == 1:       # constant steps are vectorised
                                add_at(source + c, total, begin[c], end[c], 1)
                            elif w.stride[2] == 2:
                                add_at(source + c, total, begin[c], end[c], 2)
                            else:
                                add_at(source + c, total, begin[c], end[c], w.stride[2])
                if not back:
                    for k in range(n):
                        y[k] = total[k] / (divisor * wide[k])
                y += w.out[2]
        x += area(w.size)


cdef inline void add_at(const floating* x, floating* total, Py_ssize_t begin, Py_ssize_t end,
                        Py_ssize_t stride) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(begin, end):
        total[k] += x[k * stride]


cdef inline void add_back(const floating* total, floating* x, Py_ssize_t begin, Py_ssize_t end,
                          Py_ssize_t stride) noexcept nogil:
    cdef Py_ssize_t k
    if stride == 1:
        for k in range(begin, end):
            x[k] += total[k]
    else:
        for k in range(begin, end):
            x[k * stride] += total[k]


cdef inline void means_of_each(const floating* x, floating* y, const Window* w, Py_ssize_t planes,
                               bint back) noexcept nogil:
    """Computes the windows one by one."""
    cdef Py_ssize_t p, i, j, k, z, row, col, count, deep, high, wide
    cdef Py_ssize_t begin[3]
    cdef Py_ssize_t end[3]
    cdef const floating* source
    cdef floating total, divisor
    for p in range(planes):
        for i in range(w.out[0]):
            deep = cut(w, 0, i, &begin[0], &end[0])
            for j in range(w.out[1]):
                high = cut(w, 1, j, &begin[1], &end[1])
                for k in range(w.out[2]):
                    wide = cut(w, 2, k, &begin[2], &end[2])
                    count = w.divisor if w.divisor else deep * high * wide
                    divisor = <floating>count
                    total = 0
                    if back:
                        total = y[k] / divisor
                    for z in range(begin[0], end[0]):
                        for row in range(begin[1], end[1]):
                            source = x + (z * w.size[1] + row) * w.size[2]
                            for col in range(begin[2], end[2]):
                                if back:
                                    (<floating*>source)[col] += total
                                else:
                                    total += source[col]
                    if not back:
                        y[k] = total / divisor
                y += w.out[2]
        x += area(w.size)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("max_pool", <size_t>&max_pool[float], <size_t>&max_pool[double]),
        ("max_rows", <size_t>&max_rows[float], <size_t>&max_rows[double]),
        ("put_places", <size_t>&put_places[float], <size_t>&put_places[double]),
        ("avg_pool", <size_t>&avg_pool[float], <size_t>&avg_pool[double]),
        ("avg_pool_backward", <size_t>&avg_pool_backward[float],
         <size_t>&avg_pool_backward[double]),
    ])
