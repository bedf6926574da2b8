"""Max and average pooling of channels-last planes (NHWC).

Planes and windows are as in `windows.pyx`, with `lanes` channels at each place of both. The rows
[begin, end) are those of windows, w.out[0] * w.out[1] to a plane.

    void run(const T* x, T* y, int64_t* at, const Window* w, lanes, begin, end)
"""

from libc.stdint cimport int32_t, int64_t

from tensorlib._kernels.vecmath.basics cimport floating
from tensorlib._kernels.layers.windows cimport Window, area, cut, first_inside

from tensorlib._kernels import FLOATS, rows_for

cdef enum:
    RUN = 64         # lanes that are processed together

ctypedef fused integer:
    int32_t
    int64_t


cdef inline void extent(const Window* w, int d, Py_ssize_t window, Py_ssize_t* begin,
                        Py_ssize_t* end, Py_ssize_t* step) noexcept nogil:
    """The places along a dim that a window sees"""
    if w.adaptive:
        cut(w, d, window, begin, end)
        step[0] = 1
        return
    begin[0], step[0] = first_inside(w, d, window), w.dilation[d]
    end[0] = min(w.size[d], window * w.stride[d] - w.pad[d] + w.kernel[d] * w.dilation[d])


cdef void max_lanes(const floating* x, floating* y, int64_t* at, const Window* w,
                    Py_ssize_t lanes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y, at := as `max_pool` gives them, of planes of less than 2**31 places; without places where
    `at` is NULL"""
    cdef int32_t narrow[RUN]             # as wide as the elements, for vectors
    cdef int64_t wide[RUN]
    cdef Py_ssize_t row, k, c, first, rows = w.out[0] * w.out[1]
    cdef Py_ssize_t begins[3]
    cdef Py_ssize_t ends[3]
    cdef Py_ssize_t steps[3]
    cdef const floating* plane
    cdef floating* out
    for row in range(begin, end):
        plane = x + row // rows * area(w.size) * lanes
        extent(w, 0, row % rows // w.out[1], &begins[0], &ends[0], &steps[0])
        extent(w, 1, row % w.out[1], &begins[1], &ends[1], &steps[1])
        for k in range(w.out[2]):
            extent(w, 2, k, &begins[2], &ends[2], &steps[2])
            first = (row * w.out[2] + k) * lanes
            out = y + first
            if at == NULL:
                max_of_window(plane, out, lanes, w, lanes, begins, ends, steps, narrow, False)
                continue
            for c in range(0, lanes, 64):            # RUN
                if floating is float:
                    max_of_window(plane + c, out + c, min(<Py_ssize_t>RUN, lanes - c), w, lanes,
                                  begins, ends, steps, narrow, True)
                    put_places_of(narrow, at + first + c, min(<Py_ssize_t>RUN, lanes - c))
                else:
                    max_of_window(plane + c, out + c, min(<Py_ssize_t>RUN, lanes - c), w, lanes,
                                  begins, ends, steps, wide, True)
                    put_places_of(wide, at + first + c, min(<Py_ssize_t>RUN, lanes - c))


cdef inline void put_places_of(const integer* places, int64_t* at, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(n):
        at[c] = places[c]


cdef inline void max_of_window(const floating* x, floating* y, Py_ssize_t n, const Window* w,
                               Py_ssize_t lanes, const Py_ssize_t* begins, const Py_ssize_t* ends,
                               const Py_ssize_t* steps, integer* places,
                               bint with_places) noexcept nogil:
    """y (n), and places if they are wanted, of one window"""
    cdef Py_ssize_t z, row, column, c, place
    cdef const floating* source
    cdef floating value
    cdef bint better
    place = (begins[0] * w.size[1] + begins[1]) * w.size[2] + begins[2]
    for c in range(n):
        y[c] = x[place * lanes + c]
        if with_places:
            places[c] = <integer>place
    z = begins[0]
    while z < ends[0]:
        row = begins[1]
        while row < ends[1]:
            column = begins[2]
            while column < ends[2]:
                place = (z * w.size[1] + row) * w.size[2] + column
                source = x + place * lanes
                for c in range(n):
                    value = source[c]
                    better = (value > y[c]) | (value != value)
                    y[c] = value if better else y[c]
                    if with_places:
                        places[c] = <integer>place if better else places[c]
                column += steps[2]
            row += steps[1]
        z += steps[0]


cdef int put_lanes(const floating* g, const int64_t* at, floating* y, Py_ssize_t n, Py_ssize_t size,
                   Py_ssize_t lanes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y (planes, size, lanes) += g (planes, n, lanes) at places, for the planes [begin, end); false
    for one that is not in the plane"""
    cdef Py_ssize_t p, i, c, place
    for p in range(begin, end):
        for i in range(p * n, (p + 1) * n):
            for c in range(lanes):
                place = (<const volatile int64_t*>at)[i * lanes + c]
                if not 0 <= place < size:
                    return False
                y[(p * size + place) * lanes + c] += g[i * lanes + c]
    return True


cdef void mean_lanes(const floating* x, floating* y, int64_t* unused, const Window* w,
                     Py_ssize_t lanes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := the mean of each window"""
    means(x, y, w, lanes, begin, end, False)


cdef void mean_lanes_backward(const floating* x, floating* y, int64_t* unused, const Window* w,
                              Py_ssize_t lanes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y += each element of x, divided, over its window; for the planes [begin, end)"""
    means(y, <floating*>x, w, lanes, begin * w.out[0] * w.out[1], end * w.out[0] * w.out[1], True)


cdef inline void means(const floating* x, floating* y, const Window* w, Py_ssize_t lanes,
                       Py_ssize_t begin, Py_ssize_t end, bint back) noexcept nogil:
    cdef Py_ssize_t row, k, z, j, column, c, count, high, rows = w.out[0] * w.out[1]
    cdef Py_ssize_t begins[3]
    cdef Py_ssize_t ends[3]
    cdef const floating* source
    cdef floating* out
    cdef floating divisor
    for row in range(begin, end):
        high = cut(w, 0, row % rows // w.out[1], &begins[0], &ends[0])
        high *= cut(w, 1, row % w.out[1], &begins[1], &ends[1])
        for k in range(w.out[2]):
            count = high * cut(w, 2, k, &begins[2], &ends[2])
            divisor = <floating>(w.divisor if w.divisor else count)
            out = y + (row * w.out[2] + k) * lanes
            if not back:
                for c in range(lanes):
                    out[c] = 0
            for z in range(begins[0], ends[0]):
                for j in range(begins[1], ends[1]):
                    for column in range(begins[2], ends[2]):
                        source = x + (((row // rows * w.size[0] + z) * w.size[1] + j) * w.size[2]
                                      + column) * lanes
                        if back:
                            for c in range(lanes):
                                (<floating*>source)[c] += out[c] / divisor
                        else:
                            for c in range(lanes):
                                out[c] += source[c]
            if not back:
                for c in range(lanes):
                    out[c] /= divisor


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("max_lanes", <size_t>&max_lanes[float], <size_t>&max_lanes[double]),
        ("put_lanes", <size_t>&put_lanes[float], <size_t>&put_lanes[double]),
        ("mean_lanes", <size_t>&mean_lanes[float], <size_t>&mean_lanes[double]),
        ("mean_lanes_backward", <size_t>&mean_lanes_backward[float],
         <size_t>&mean_lanes_backward[double]),
    ])
