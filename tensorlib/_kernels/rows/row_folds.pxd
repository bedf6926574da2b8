"""The folds that the kernels of rows need: sums and greatest elements of floats."""

from tensorlib._kernels.rows.fold_tags cimport Max, Min, NanSum, Product, Squares, Sum

ctypedef fused Op:
    Sum
    Max

ctypedef fused element:
    float
    double

include "fold.pxi"
