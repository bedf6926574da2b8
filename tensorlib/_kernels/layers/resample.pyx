"""Resampling along a dim: each element is a weighted sum of others.

    void run(const T* x, T* y, const Taps* taps, Py_ssize_t begin, Py_ssize_t end)

x is (outer, n, inner), y (outer, count, inner). Where inner is 1, [begin, end) are rows of outer,
else rows of outer * count.
"""

from libc.stdint cimport int64_t

from tensorlib._kernels.layers.resample cimport Taps
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for


cdef void elements(const floating* x, floating* y, const Taps* taps, Py_ssize_t begin,
                   Py_ssize_t end) noexcept nogil:
    """Rows of contiguous elements"""
    cdef Py_ssize_t o, j
    cdef int64_t k
    cdef floating total
    cdef const floating* source
    cdef floating* target
    cdef const int64_t* places = taps.places
    cdef const double* weights = taps.weights
    cdef bint paired = taps.first[taps.count] == 2 * taps.count
    for j in range(taps.count + 1):
        paired = paired & (taps.first[j] == 2 * j)
    for o in range(begin, end):
        source, target = x + o * taps.n, y + o * taps.count
        if paired:
            for j in range(taps.count):
                target[j] = (<floating>weights[2 * j] * source[places[2 * j]]
                             + <floating>weights[2 * j + 1] * source[places[2 * j + 1]])
            continue
        for j in range(taps.count):
            total = 0
            for k in range(taps.first[j], taps.first[j + 1]):
                total += <floating>weights[k] * source[places[k]]
            target[j] = total


cdef void rows(const floating* x, floating* y, const Taps* taps, Py_ssize_t begin,
               Py_ssize_t end) noexcept nogil:
    """Rows of the inner dims, up to four at once"""
    cdef Py_ssize_t r, i, n = taps.inner
    cdef int64_t k, last
    cdef floating a, b, c, d
    cdef const floating* p
    cdef const floating* q
    cdef const floating* s
    cdef const floating* t
    cdef const floating* plane
    for r in range(begin, end):
        plane = x + r // taps.count * taps.n * n
        k, last = taps.first[r % taps.count], taps.first[r % taps.count + 1]
        if last - k >= 4:
            p, a = plane + taps.places[k] * n, <floating>taps.weights[k]
            q, b = plane + taps.places[k + 1] * n, <floating>taps.weights[k + 1]
            s, c = plane + taps.places[k + 2] * n, <floating>taps.weights[k + 2]
            t, d = plane + taps.places[k + 3] * n, <floating>taps.weights[k + 3]
            for i in range(n):
                y[r * n + i] = (a * p[i] + b * q[i]) + (c * s[i] + d * t[i])
            k += 4
        elif last - k >= 2:
            p, a = plane + taps.places[k] * n, <floating>taps.weights[k]
            q, b = plane + taps.places[k + 1] * n, <floating>taps.weights[k + 1]
            for i in range(n):
                y[r * n + i] = a * p[i] + b * q[i]
            k += 2
        else:
            for i in range(n):
                y[r * n + i] = 0
        while k < last:
            p, a = plane + taps.places[k] * n, <floating>taps.weights[k]
            for i in range(n):
                y[r * n + i] += a * p[i]
            k += 1


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("elements", <size_t>&elements[float], <size_t>&elements[double]),
        ("rows", <size_t>&rows[float], <size_t>&rows[double]),
    ])
