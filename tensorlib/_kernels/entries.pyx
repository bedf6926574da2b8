"""Products of a sparse matrix, given by its entries, and dense ones.

    void add_entries(Entries* of, const T* values, const T* x, T* y)
    void entry_dots(Entries* of, const T* a, const T* x, T* y)
"""

from libc.stdint cimport int64_t

from tensorlib._kernels.entries cimport Entries
from tensorlib._kernels.vecmath cimport floating


# Others may write where the positions lie, so each is read once, and what is checked is what is
# used.

cdef void add_entries(Entries* of, const floating* values, const floating* x,
                      floating* y) noexcept nogil:
    """y[rows[e]] += values[e] * x[columns[e]]"""
    cdef Py_ssize_t e, j, width = of.width
    cdef const volatile int64_t* rows = of.rows
    cdef const volatile int64_t* columns = of.columns
    cdef int64_t row, column
    cdef const floating* source
    cdef floating* target
    cdef floating value
    for e in range(of.count):
        row, column = rows[e], columns[e]
        if not (0 <= row < of.n and 0 <= column < of.m):
            of.refused = 1
            return
        value, source, target = values[e], x + column * width, y + row * width
        for j in range(width):
            target[j] += value * source[j]


cdef void entry_dots(Entries* of, const floating* a, const floating* x,
                     floating* y) noexcept nogil:
    """y[e] := a[rows[e]] . x[columns[e]]"""
    cdef Py_ssize_t e, j, width = of.width
    cdef const volatile int64_t* rows = of.rows
    cdef const volatile int64_t* columns = of.columns
    cdef int64_t row, column
    cdef const floating* left
    cdef const floating* right
    cdef floating total
    for e in range(of.count):
        row, column = rows[e], columns[e]
        if not (0 <= row < of.n and 0 <= column < of.m):
            of.refused = 1
            return
        left, right, total = a + row * width, x + column * width, 0
        for j in range(width):
            total += left[j] * right[j]
        y[e] = total


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return [
        ("add_entries", ("float32",), "float32", <size_t>&add_entries[float]),
        ("add_entries", ("float64",), "float64", <size_t>&add_entries[double]),
        ("entry_dots", ("float32",), "float32", <size_t>&entry_dots[float]),
        ("entry_dots", ("float64",), "float64", <size_t>&entry_dots[double]),
    ]
