"""The folds of reductions: all operations and dtypes."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from tensorlib._kernels.fold_tags cimport Max, Min, Product, Squares, Sum

ctypedef fused Op:
    Sum
    Product
    Squares
    Max
    Min

ctypedef fused element:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint64_t
    float
    double

include "fold.pxi"
