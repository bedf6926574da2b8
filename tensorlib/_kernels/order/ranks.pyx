"""The order of short rows, their most frequent elements, and the least elements of any.

The loops of `table()` take rows of int64 that lie behind each other, and have the signatures

    void rank_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n)
    void least_of_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                       Py_ssize_t k)
    Py_ssize_t place_of_least(const int64_t* keys, Py_ssize_t n, Py_ssize_t k)
    void frequent_of_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                          int bits, int floating, int64_t unknown)

The first takes rows of at most 64 elements (rank_rows.h), the last of at most 8
(frequent_rows.h); for the others see least_keys.h. `tensorlib._core.reduce.sort_keys` and
`tensorlib._core.reduce.runs` call them.
"""

from libc.stdint cimport int64_t

cdef extern from "order/least_keys.h" nogil:
    void rank_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n)
    void least_of_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                       Py_ssize_t k)
    Py_ssize_t place_of_least(const int64_t* keys, Py_ssize_t n, Py_ssize_t k)

cdef extern from "order/frequent_rows.h" nogil:
    void frequent_of_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                          int bits, int floating, int64_t unknown)


def table():
    return [("order", ("int64",), "int64", <size_t>&rank_rows),
            ("least", ("int64",), "int64", <size_t>&least_of_rows),
            ("place of least", ("int64",), "int64", <size_t>&place_of_least),
            ("most frequent", ("int64",), "int64", <size_t>&frequent_of_rows)]
