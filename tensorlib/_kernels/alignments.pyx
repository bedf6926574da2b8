"""Steps of the recursions over the alignments of a sequence, in logarithms of probabilities.

A row holds the logarithms of `n` states, a multiple of 8, and two more before the first, which are
those of nothing. `skips` are 0 where a state may follow that two before it, and else of nothing.

    void step(const T* row, const T* skips, const T* emitted, T* next, Py_ssize_t n)
    void occupied(const T* row, const T* back, const T* emitted, T total, T* y, Py_ssize_t n)

`back` is a row of the sequence from its end, with the states the other way round: it points at what
belongs to the first state, and goes down from there.
"""

from tensorlib._kernels.rows cimport exp_below
from tensorlib._kernels.vecmath cimport floating
from tensorlib._kernels.vecmath_log cimport log

from tensorlib._kernels import FLOATS, rows_for


cdef void step(const floating* row, const floating* skips, const floating* emitted,
               floating* next, Py_ssize_t n) noexcept nogil:
    """next := log(exp(row) + exp(row of one before) + exp(row of two before)) + emitted"""
    cdef floating never = -1e30          # a probability of 0, which stays a number
    cdef floating a, b, c, top, found
    cdef Py_ssize_t i
    for i in range(n):
        a, b, c = row[i], row[i - 1], row[i - 2] + skips[i]
        top = a if a > b else b
        top = c if c > top else top
        found = log(exp_below(a - top) + exp_below(b - top) + exp_below(c - top)) + top + emitted[i]
        next[i] = never if found < never else found


cdef void occupied(const floating* row, const floating* back, const floating* emitted,
                   floating total, floating* y, Py_ssize_t n) noexcept nogil:
    """y := the part of all alignments, of probability exp(total), that is in each state"""
    cdef floating zero = 0, found
    cdef Py_ssize_t i
    for i in range(n):
        found = row[i] + back[-i] - emitted[i] - total
        y[i] = exp_below(zero if found > zero else found)      # rounding alone is above 0


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("step", <size_t>&step[float], <size_t>&step[double]),
        ("occupied", <size_t>&occupied[float], <size_t>&occupied[double]),
    ])
