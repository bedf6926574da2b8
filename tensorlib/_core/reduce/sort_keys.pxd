from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    RANKED = 64              # elements of a row that are all put in order: see rank_rows.h

cdef enum Wanted:
    ALL, FIRST, ONE, MEDIAN, MEDIAN_OF_KNOWN

cdef tuple places_of(Tensor input, bint descending, Wanted wanted, Py_ssize_t k)
