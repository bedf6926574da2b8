"""Distances of the rows of one matrix from those of another, and the gradients of the first.

The rows of the other matrix are packed in panels (m, LANES), with LANES rows side by side. For
`rows` rows of m elements, of which each has `step` distances, and the `count` rows of a panel:

    void distances(const T* x, const T* panel, T* y, rows, m, step, count)
    void slopes(const T* g, const T* y, const T* x, const T* panel, double* dx, rows, m, step,
                count)
"""

from tensorlib._kernels.products.distances cimport LANES
from tensorlib._kernels.vecmath.basics cimport floating, magnitude, sqrt

from tensorlib._kernels import FLOATS, rows_for

cdef enum:
    BLOCK = 64      # elements that are summed in their dtype; the sums are added in double

cdef enum Norm:
    TOTAL           # of differences
    EUCLIDEAN
    MOST


cdef inline double euclidean(const floating* x, const floating* row, Py_ssize_t m) noexcept nogil:
    """The distance from a row of a panel, scaled, as squares would overflow or underflow"""
    cdef double top = 0, total = 0, away
    cdef Py_ssize_t k = 0
    while k < m and x[k] - row[k * LANES] == 0:     # equal elements, if they are finite
        k += 1
    for k in range(k, m):
        away = magnitude(<double>x[k] - row[k * LANES])
        top = away if (away > top) | (away != away) else top
    if not 0 < top < top * 2:        # 0, infinity or NaN
        return top
    for k in range(m):
        away = (<double>x[k] - row[k * LANES]) / top
        total += away * away
    return sqrt(total) * top


cdef inline void norms(const floating* x, const floating* panel, floating* y, Py_ssize_t rows,
                       Py_ssize_t m, Py_ssize_t step, Py_ssize_t count, Norm norm) noexcept nogil:
    cdef floating part[LANES]
    cdef double total[LANES]
    cdef floating own, away
    cdef floating least = 1e-30 if floating is float else 1e-280
    cdef floating most = 3e38 if floating is float else 1e308
    cdef floating zero = <floating>(m < 0)     # no constant, of which GCC makes a slow `rep stos`
    cdef Py_ssize_t i, k, l, first
    cdef int odd[LANES]
    cdef int coarse
    for i in range(rows):
        for l in range(LANES):
            part[l] = zero
        for first in range(0, m, 64):          # BLOCK
            if first and norm != MOST:
                for l in range(LANES):
                    total[l] = part[l] if first == BLOCK else total[l] + part[l]
                    part[l] = zero
            for k in range(first, min(m, first + BLOCK)):
                own = x[i * m + k]
                for l in range(LANES):
                    away = magnitude(own - panel[k * LANES + l])
                    if norm == TOTAL:
                        part[l] += away
                    elif norm == EUCLIDEAN:
                        part[l] += away * away
                    else:
                        part[l] = away if (away > part[l]) | (away != away) else part[l]
        if m > BLOCK and norm != MOST:
            for l in range(LANES):
                part[l] = <floating>(total[l] + part[l])
        if norm == EUCLIDEAN:
            coarse = 0
            for l in range(LANES):
                odd[l] = 1 - ((part[l] > least * m) & (part[l] < most))
                coarse |= odd[l]
                part[l] = sqrt(part[l])
            if coarse:
                for l in range(count):
                    if odd[l]:
                        part[l] = <floating>euclidean(x + i * m, panel + l, m)
        for l in range(count):
            y[i * step + l] = part[l]


cdef inline void weigh(const floating* g, const floating* y, const floating* x,
                       const floating* panel, floating* weight, floating* size, Py_ssize_t m,
                       Py_ssize_t count, Norm norm) noexcept nogil:
    """The factor of each difference in the gradient; 0 if the gradient or the distance is 0"""
    cdef floating ties[LANES]
    cdef floating away
    cdef floating zero = <floating>(m < 0)     # as above
    cdef Py_ssize_t k, l
    for l in range(LANES):
        weight[l] = size[l] = ties[l] = zero
    for l in range(count):
        weight[l] = g[l]
    if norm == EUCLIDEAN:
        for l in range(count):
            weight[l] = weight[l] / y[l] if (weight[l] != 0) & (y[l] != 0) else 0
    elif norm == MOST:               # y may be rounded: nothing would be the greatest
        for k in range(m):
            for l in range(LANES):
                away = magnitude(x[k] - panel[k * LANES + l])
                ties[l] = 1 if away > size[l] else ties[l] + (away == size[l])
                size[l] = away if away > size[l] else size[l]
        for l in range(count):
            weight[l] = weight[l] / ties[l] if ties[l] != 0 else 0


cdef inline void slopes(const floating* g, const floating* y, const floating* x,
                        const floating* panel, double* dx, Py_ssize_t rows, Py_ssize_t m,
                        Py_ssize_t step, Py_ssize_t count, Norm norm) noexcept nogil:
    cdef floating weight[LANES]
    cdef floating size[LANES]
    cdef floating part[LANES]
    cdef floating own, away, slope
    cdef Py_ssize_t i, k, l
    for i in range(rows):
        weigh(g + i * step, y + i * step, x + i * m, panel, weight, size, m, count, norm)
        for k in range(m):
            own = x[i * m + k]
            for l in range(LANES):
                away, slope = own - panel[k * LANES + l], weight[l]
                if norm == EUCLIDEAN:
                    part[l] = away * slope if slope != 0 else 0
                else:
                    slope = slope if away > 0 else -slope
                    if norm == MOST:
                        slope = slope if magnitude(away) == size[l] else 0
                    part[l] = slope if (away > 0) | (away < 0) else 0
            for l in range(LANES // 2):        # a tree
                part[l] += part[l + LANES // 2]
            for l in range(LANES // 4):
                part[l] += part[l + LANES // 4]
            dx[i * m + k] += ((part[0] + part[4]) + (part[1] + part[5])
                              + ((part[2] + part[6]) + (part[3] + part[7])))


cdef void total_away(const floating* x, const floating* panel, floating* y, Py_ssize_t rows,
                     Py_ssize_t m, Py_ssize_t step, Py_ssize_t count) noexcept nogil:
    norms(x, panel, y, rows, m, step, count, TOTAL)


cdef void root_away(const floating* x, const floating* panel, floating* y, Py_ssize_t rows,
                    Py_ssize_t m, Py_ssize_t step, Py_ssize_t count) noexcept nogil:
    norms(x, panel, y, rows, m, step, count, EUCLIDEAN)


cdef void most_away(const floating* x, const floating* panel, floating* y, Py_ssize_t rows,
                    Py_ssize_t m, Py_ssize_t step, Py_ssize_t count) noexcept nogil:
    norms(x, panel, y, rows, m, step, count, MOST)


cdef void total_back(const floating* g, const floating* y, const floating* x,
                     const floating* panel, double* dx, Py_ssize_t rows, Py_ssize_t m,
                     Py_ssize_t step, Py_ssize_t count) noexcept nogil:
    slopes(g, y, x, panel, dx, rows, m, step, count, TOTAL)


cdef void root_back(const floating* g, const floating* y, const floating* x,
                    const floating* panel, double* dx, Py_ssize_t rows, Py_ssize_t m,
                    Py_ssize_t step, Py_ssize_t count) noexcept nogil:
    slopes(g, y, x, panel, dx, rows, m, step, count, EUCLIDEAN)


cdef void most_back(const floating* g, const floating* y, const floating* x,
                    const floating* panel, double* dx, Py_ssize_t rows, Py_ssize_t m,
                    Py_ssize_t step, Py_ssize_t count) noexcept nogil:
    slopes(g, y, x, panel, dx, rows, m, step, count, MOST)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("total", <size_t>&total_away[float], <size_t>&total_away[double]),
        ("euclidean", <size_t>&root_away[float], <size_t>&root_away[double]),
        ("most", <size_t>&most_away[float], <size_t>&most_away[double]),
        ("total_back", <size_t>&total_back[float], <size_t>&total_back[double]),
        ("euclidean_back", <size_t>&root_back[float], <size_t>&root_back[double]),
        ("most_back", <size_t>&most_back[float], <size_t>&most_back[double]),
    ])
