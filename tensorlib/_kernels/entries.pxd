"""The entries of a sparse matrix, and the sizes of what it is multiplied with."""

from libc.stdint cimport int64_t

ctypedef struct Entries:
    const int64_t* rows
    const int64_t* columns
    Py_ssize_t count, width          # how many entries; of the rows that are added or multiplied
    Py_ssize_t n, m                  # the rows of the left and of the right matrix
    Py_ssize_t refused               # becomes 1 where a position is outside
