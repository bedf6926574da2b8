from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    RANKED = 64              # elements: rows with no more are sorted by rank (rank_rows.h)

cdef enum Wanted:
    ALL, FIRST, ONE, MEDIAN, MEDIAN_OF_KNOWN

cdef tuple places_of(Tensor input, bint descending, Wanted wanted, Py_ssize_t k)
