"""The order of short rows.

The loop of `table()` has the signature

    void rank_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n)

and takes rows of at most 64 elements: see rank_rows.h. `tensorlib._core.reduce.order` calls it.
"""

from libc.stdint cimport int64_t

cdef extern from "rank_rows.h" nogil:
    void rank_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n)


def table():
    return [("order", ("int64",), "int64", <size_t>&rank_rows)]
