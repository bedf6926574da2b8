"""What operations refuse: the type of each error, its first words and what it got."""

import re

import numpy as np
import pytest
from cases import each

import tensorlib as tl

VECTOR = tl.tensor([1.0, 2.0, 3.0])
ROWS = tl.ones(2, 3)
SCALAR = tl.tensor(1.0)
INTS = tl.tensor([0, 1, 2])
SMALL = INTS.to(tl.uint8)

INDEX, RUN, TYPE, VALUE = IndexError, RuntimeError, TypeError, ValueError
CALLS = [
    # arranging
    (RUN, "addr: vec1 must have one dim, got 2", lambda: tl.addr(ROWS, ROWS, VECTOR)),
    (RUN, "addr: vec2 must have one dim, got 0", lambda: tl.addr(ROWS, VECTOR, SCALAR)),
    (INDEX, "diag_embed: expects a tensor with at least a dim",
     lambda: tl.diag_embed(SCALAR, 0, 0, -1)),
    (RUN, "diagonal: dimensions cannot be identical 1, -1", lambda: tl.diagonal(ROWS, 0, 1, -1)),
    (RUN, "broadcast_shapes: sizes must be 0 or more, got (2, -1)",
     lambda: tl.broadcast_shapes((2,), (2, -1))),
    (VALUE, "unravel_index: sizes must be 0 or more, got (2, -3)",
     lambda: tl.unravel_index(INTS, (2, -3))),
    (RUN, "mT: expects a tensor with at least 2 dims, got 1", lambda: VECTOR.mT),
    (RUN, "shape", lambda: VECTOR.reshape_as(ROWS)),
    (TYPE, "vstack: expected a Tensor as element 1, got float", lambda: tl.vstack([VECTOR, 1.0])),
    (RUN, "meshgrid: expects tensors of the same dtype", lambda: tl.meshgrid(VECTOR, INTS)),
    (RUN, "meshgrid: indexing must be 'ij' or 'xy', got 'yx'",
     lambda: tl.meshgrid(VECTOR, indexing="yx")),
    (RUN, "as_strided_scatter: sizes (2,), strides (3,) and offset 0 are negative or out of bounds "
     "for 3 elements", lambda: tl.as_strided_scatter(VECTOR, tl.zeros(2), (2,), (3,))),
    (RUN, "as_strided_scatter: sizes (1,), strides (1,) and offset -1 are negative or out of",
     lambda: tl.as_strided_scatter(VECTOR, tl.zeros(1), (1,), (1,), -1)),
    (TYPE, "pad: expected a sequence of ints, got 2", lambda: tl.nn.functional.pad(VECTOR, 2)),
    # values
    (RUN, "masked_scatter: source has 2 elements, fewer than the 3 that the mask has places for",
     lambda: ROWS.masked_scatter(tl.tensor([[True] * 3, [False] * 3]), VECTOR[:2])),
    (TYPE, "to: other must be a Tensor, not float", lambda: VECTOR.to(other=2.0)),
    (TYPE, "matmul: other must be a Tensor, not list; tensorlib.as_tensor makes one",
     lambda: tl.matmul(VECTOR, [1.0])),
    (TYPE, "where: condition must be a Tensor, not bool", lambda: tl.where(True)),
    (RUN, "clamp: the bound 256 does not fit in tensorlib.uint8", lambda: tl.clamp(SMALL, 0, 256)),
    (RUN, "clamp: the bound -1 does not fit in tensorlib.uint8", lambda: tl.clamp(SMALL, -1, 2)),
    (RUN, "float_power_: the tensor must be of float64, got tensorlib.float32",
     lambda: VECTOR.clone().float_power_(2)),
    (TYPE, "float_power: input or exponent must be a Tensor", lambda: tl.float_power(2, 3)),
    (TYPE, "flip: takes dims, got none", lambda: VECTOR.flip()),
    (TYPE, "sum_to_size: takes size, got none", lambda: VECTOR.sum_to_size()),
    (RUN, "heaviside: input and values must have one dtype, got tensorlib.float32 and "
     "tensorlib.float64", lambda: tl.heaviside(VECTOR, VECTOR.double())),
    (TYPE, "cumsum_: takes no out: the result goes into the tensor itself",
     lambda: VECTOR.clone().cumsum_(0, out=VECTOR)),
    (RUN, "cuda: 'cpu' is no GPU", lambda: VECTOR.cuda("cpu")),
    (RUN, "xpu: device(type='cpu') is no GPU", lambda: VECTOR.xpu(tl.device("cpu"))),
    # reductions and counts
    (TYPE, "max: keepdim needs a dim", lambda: tl.max(VECTOR, keepdim=True)),
    (TYPE, "median: keepdim needs a dim", lambda: tl.median(VECTOR, keepdim=True)),
    (RUN, "median: no elements", lambda: tl.median(INTS[:0])),
    (RUN, "nanmedian: no elements", lambda: tl.nanmedian(INTS[:0])),
    (TYPE, "bincount: weights must be a Tensor, got list", lambda: tl.bincount(INTS, [1, 2, 3])),
    (RUN, "bincount: weights should be 1-d and have the same length as input, got [2] and [3]",
     lambda: tl.bincount(INTS, VECTOR[:2])),
    (RUN, "histogram: weight should have the shape of the input, got [2] and [3]",
     lambda: tl.histogram(VECTOR, 2, weight=VECTOR[:2])),
    (TYPE, "histogram: weight must be a Tensor, got float",
     lambda: tl.histogram(VECTOR, 2, weight=2.0)),
    (TYPE, "cov: fweights must be a Tensor, got list", lambda: tl.cov(ROWS, fweights=[1, 2, 3])),
    (RUN, "cov: aweights must be a vector of 3 numbers, got shape (2,)",
     lambda: tl.cov(ROWS, aweights=VECTOR[:2])),
    (RUN, "cov: aweights must be a vector of 3 numbers, got shape (1, 3)",
     lambda: tl.cov(ROWS, aweights=VECTOR[None])),
    (RUN, "cov: fweights must be integers, got tensorlib.float32",
     lambda: tl.cov(ROWS, fweights=VECTOR)),
    (RUN, "cov: aweights must be floating-point numbers, got tensorlib.int64",
     lambda: tl.cov(ROWS, aweights=INTS)),
    (RUN, "cov: aweights cannot be negative", lambda: tl.cov(ROWS, aweights=VECTOR - 2)),
    (RUN, "cov: fweights cannot be negative", lambda: tl.cov(ROWS, fweights=INTS - 9)),
    (RUN, "cov: the weights sum to 0", lambda: tl.cov(ROWS, aweights=VECTOR * 0)),
    # positions
    (INDEX, "index_put: indices must have at least one tensor",
     lambda: tl.index_put(VECTOR, (), SCALAR)),
    (TYPE, "put: index must be a Tensor, got list", lambda: tl.put(VECTOR, [0], SCALAR)),
    (RUN, "gather: index must have the same number of dimensions as input, got 1 and 2",
     lambda: tl.gather(ROWS, 0, INTS)),
    (RUN, "gather: size of index [3, 3] exceeds input [2, 3] apart from dimension 1",
     lambda: tl.gather(ROWS, 1, tl.zeros(3, 3, dtype=tl.int64))),
    (INDEX, "index_select: ", lambda: tl.index_select(VECTOR, 0, INTS + 1)),
    (INDEX, "unique: dim 0 of a tensor that has no dims", lambda: tl.unique(SCALAR, dim=0)),
    (RUN, "searchsorted: side can only be 'left' or 'right' but got 'both'",
     lambda: tl.searchsorted(VECTOR, SCALAR, side="both")),
    (RUN, "searchsorted: side and right can't be set to opposites, got side of left while right "
     "was True", lambda: tl.searchsorted(VECTOR, SCALAR, right=True, side="left")),
    (TYPE, "searchsorted: sorter must be a Tensor, not list",
     lambda: tl.searchsorted(VECTOR, SCALAR, sorter=[0, 1, 2])),
    (RUN, "searchsorted: boundary and sorter must have the same size, got [3] and [2]",
     lambda: tl.searchsorted(VECTOR, SCALAR, sorter=INTS[:2])),
    (RUN, "searchsorted: sorter: ", lambda: tl.searchsorted(VECTOR, SCALAR, sorter=INTS + 1)),
    (TYPE, "isin: expected a Tensor among elements and test_elements, got float and list",
     lambda: tl.isin(1.0, [1.0])),
    (RUN, "repeat_interleave: repeats must be one int of 0 or more, or one for each of the 3 "
     "slices, got ", lambda: tl.repeat_interleave(VECTOR, INTS[:2])),
    (VALUE, "repeat: expected one number of repeats, or one for each of 3 elements, got 2",
     lambda: np.repeat(VECTOR, [1, 2])),
    (RUN, "scatter_reduce: not implemented for bools",
     lambda: tl.scatter_reduce(VECTOR > 1, 0, INTS, VECTOR > 1, "mean")),
    # integrals
    (TYPE, "trapezoid: takes x or dx, not both", lambda: tl.trapezoid(VECTOR, VECTOR, dx=1.0)),
    (TYPE, "cumulative_trapezoid: x must be a Tensor, got list",
     lambda: tl.cumulative_trapezoid(VECTOR, [0.0, 1.0, 2.0])),
    (RUN, "gradient: edge_order must be 1 or 2, got 3", lambda: tl.gradient(VECTOR, edge_order=3)),
    (RUN, "gradient: a dim appears multiple times in [0, 0]",
     lambda: tl.gradient(ROWS, dim=(0, -2))),
    (TYPE, "gradient: spacing must be a number or a sequence, got a Tensor",
     lambda: tl.gradient(VECTOR, spacing=VECTOR)),
    (RUN, "gradient: expected 3 positions along dim 0, got 2",
     lambda: tl.gradient(VECTOR, spacing=(VECTOR[:2],))),
    # ints, which no bool is
    (TYPE, "diag: diagonal must be an int, got True", lambda: VECTOR.diag(True)),
    (TYPE, "chunk: chunks must be an int, got True", lambda: VECTOR.chunk(True)),
    (TYPE, "polygamma: n must be an int, got True", lambda: tl.polygamma(True, VECTOR)),
    (TYPE, "mvlgamma: p must be an int, got True", lambda: VECTOR.mvlgamma(True)),
    (TYPE, "multinomial: num_samples must be an int, got True", lambda: VECTOR.multinomial(True)),
    (TYPE, "hann_window: window_length must be an int, got True", lambda: tl.hann_window(True)),
    (TYPE, "fft.fft: n must be an int, got True", lambda: tl.fft.fft(VECTOR, True)),
    (TYPE, "linalg.matrix_power: n must be an int, got True",
     lambda: tl.linalg.matrix_power(tl.eye(2), True)),
    # draws
    (RUN, "binomial: count is tensorlib.float32 and prob tensorlib.float64",
     lambda: tl.binomial(VECTOR, VECTOR.double() / 3)),
    # matrices
    (RUN, "matrix_norm: expected a floating point tensor as input, got tensorlib.int64",
     lambda: tl.linalg.matrix_norm(tl.eye(2).long())),
    (RUN, "matrix_norm: dim must be two dims, got (0, 1, 2)",
     lambda: tl.linalg.matrix_norm(tl.ones(2, 2, 2), dim=(0, 1, 2))),
    (RUN, "cross: no dimension of size 3 in input, got (2, 2)",
     lambda: tl.cross(tl.ones(2, 2), tl.ones(2, 2))),
    (TYPE, "chain_matmul: expected a Tensor as argument 1, got float",
     lambda: tl.chain_matmul(ROWS, 2.0)),
    (RUN, "linalg.solve_triangular: incompatible shapes of A and B for the equation AX = B: (2, 2) "
     "and (3, 2)", lambda: tl.linalg.solve_triangular(tl.eye(2), tl.ones(3, 2), upper=True)),
    (RUN, "for the equation XA = B: (2, 2) and (2, 3)",
     lambda: tl.linalg.solve_triangular(tl.eye(2), ROWS, upper=True, left=False)),
    (TYPE, "linalg.ldl_solve: pivots must be a Tensor, got list",
     lambda: tl.linalg.ldl_solve(tl.eye(2), [1, 2], ROWS)),
    (RUN, "linalg.ldl_solve: LD, pivots and B have shapes that do not fit: (2, 2), (3,) and (2, 3)",
     lambda: tl.linalg.ldl_solve(tl.eye(2), INTS, ROWS)),
    (RUN, "linalg.ldl_solve: LD, pivots and B have shapes that do not fit: (2, 2), (2,) and (3, 2)",
     lambda: tl.linalg.ldl_solve(tl.eye(2), INTS[1:], tl.ones(3, 2))),
    (RUN, "lu_unpack: expected at most 2 pivots, got 3",
     lambda: tl.lu_unpack(tl.ones(2, 3), tl.tensor([1, 2, 2], dtype=tl.int32))),
    (RUN, "logit_: result type tensorlib.float32 can't be cast to the desired output type "
     "tensorlib.int64", lambda: INTS.clone().logit_(0.2)),
    (RUN, "with mode='complete' the decomposition is differentiable only where there are not more "
     "rows than columns, got 3 and 2",
     lambda: tl.linalg.qr(tl.ones(3, 2, requires_grad=True), "complete").R.sum().backward()),
]


@each("error, words, call", CALLS, ids=lambda x: x if type(x) is str else "")
def test_it_is_refused(error, words, call):
    with pytest.raises(error, match=re.escape(words)):
        call()
