"""The folds of greatest and least elements."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from tensorlib._kernels.rows.fold_tags cimport Max, Min, NanSum, Product, Squares, Sum

ctypedef fused Op:
    Max
    Min

ctypedef fused element:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

include "fold.pxi"
