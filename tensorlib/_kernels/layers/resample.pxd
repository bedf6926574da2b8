"""The taps of resampling along a dim: which elements each result is a sum of."""

from libc.stdint cimport int64_t

ctypedef struct Taps:
    Py_ssize_t n, count              # elements along the dim, before and after
    Py_ssize_t inner                 # elements of the dims behind it
    const int64_t* first             # (count + 1): where the taps of each element begin
    const int64_t* places            # of each tap, along the dim
    const double* weights
