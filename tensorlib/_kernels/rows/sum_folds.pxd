"""The folds of sums and products."""

from libc.stdint cimport uint64_t

from tensorlib._kernels.rows.fold_tags cimport Max, Min, NanSum, Product, Squares, Sum

ctypedef fused Op:
    Sum
    NanSum
    Product
    Squares

ctypedef fused element:
    uint64_t
    float
    double

include "fold.pxi"
