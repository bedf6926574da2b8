"""The entries of a sparse matrix and the sizes of what it is multiplied with; bags of rows."""

from libc.stdint cimport int64_t

ctypedef struct Entries:
    const int64_t* rows
    const int64_t* columns
    Py_ssize_t count, width          # how many entries; of the rows that are added or multiplied
    Py_ssize_t n, m                  # the rows of the left and of the right matrix
    Py_ssize_t refused               # becomes 1 where a position is outside

# parts of a vector of places, which begin at offsets
ctypedef struct Bags:
    const char* table        # (rows, n), or the gradient of the bags
    char* y                  # (count, n), or the gradient of the table
    const int64_t* places    # (given,)
    const int64_t* offsets   # (count,), and one more for the end, where that is given
    Py_ssize_t rows, n, given, count
    bint mean, has_end, is_single, back
    Py_ssize_t wrong_bag     # whose offsets are none, or -1
    int64_t wrong_place      # what is no place, where there is one
    bint is_wrong
