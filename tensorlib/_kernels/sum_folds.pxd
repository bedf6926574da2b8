"""The folds of sums and products."""

from libc.stdint cimport uint64_t

from tensorlib._kernels.fold_tags cimport Known, Max, Min, Product, Squares, Sum

ctypedef fused Op:
    Sum
    Known
    Product
    Squares

ctypedef fused element:
    uint64_t
    float
    double

include "fold.pxi"
