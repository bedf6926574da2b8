"""Steps of the recursions over the alignments of a sequence, in logarithms of probabilities.

A row holds the log-probabilities of `n` states, a multiple of 8, and of two impossible states
before the first. `skips` is 0 for a state that may follow the one two before it, and else
impossible.

    void step(const T* row, const T* skips, const T* emitted, T* next, Py_ssize_t n)
    void occupied(const T* row, const T* back, const T* emitted, T total, T* y, Py_ssize_t n)

`back` is a row of the recursion from the end of the sequence, with the states in reverse order: it
points at the element of the first state, and the others are before it.
"""

from tensorlib._kernels.rows.softmax_rows cimport exp_below
from tensorlib._kernels.vecmath.basics cimport floating
from tensorlib._kernels.vecmath.log cimport log

from tensorlib._kernels import FLOATS, rows_for


cdef void step(const floating* row, const floating* skips, const floating* emitted,
               floating* next, Py_ssize_t n) noexcept nogil:
    """next := log(exp(row) + exp(row of one before) + exp(row of two before)) + emitted"""
    cdef floating never = -1e30          # in place of log(0), so that sums stay finite
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
        y[i] = exp_below(zero if found > zero else found)      # above 0 only by rounding errors


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("step", <size_t>&step[float], <size_t>&step[double]),
        ("occupied", <size_t>&occupied[float], <size_t>&occupied[double]),
    ])
