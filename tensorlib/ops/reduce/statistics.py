"""Counts of integers, histograms, covariance and correlation."""

import builtins
from math import isfinite, prod

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import BY_NAME, has_gradients, promote_types
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.results import result_type
from tensorlib._core.create.creation import plain_number
from tensorlib._core.reduce import counts
from tensorlib._core.reduce.search import parts_of
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.products.matmul import gram_matrix, matmul
from tensorlib.ops.publish import FUNCTIONS, publish
from tensorlib.ops.samples import calls, given, refusals, refused_calls
from tensorlib.ops.value_checks import value_check

Histogram = result_type("histogram", "hist bin_edges")
HistogramDD = result_type("histogramdd", "hist bin_edges")

FEW = np.array([1, 5, 1, 2])


@composite(tensors=("input",), differentiable=False,
           reference=lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength),
           samples=calls((FEW,), (FEW, None, 9), (FEW[:0], None, 2)),
           errors=refused_calls((RuntimeError, -FEW), (RuntimeError, FEW.reshape(2, 2)),
                                (RuntimeError, FEW, np.ones(3)), (RuntimeError, FEW, None, -1),
                                (NotImplementedError, np.ones(2)), (TypeError, FEW, None, 1.5)),
           sized_by_values=True, checks_values=True)
def bincount(input: Tensor, weights=None, minlength=0):
    """How often each integer from 0 on occurs in a vector, or the sums of its weights.

    minlength: the least length of the result.
    Shapes: (N,), (N,) -> (max(largest + 1, minlength),).
    Raises: RuntimeError for negative integers, other shapes and examples of a batch, whose results
    would differ in shape; UnsupportedDtype for other dtypes, TypeError.

    >>> tensorlib.tensor([1, 3, 1]).bincount()
    tensor([0, 2, 0, 1])
    """
    if input.is_floating_point() or input.dtype.name == "bool":
        raise UnsupportedDtype(f"bincount: not implemented for {input.dtype}")
    least = integer("bincount", "minlength", minlength)
    if input.ndim != 1 or least < 0:
        raise RuntimeError("bincount: expects a vector and a minlength that is not negative, got "
                           f"shape {list(input.shape)} and {least}")
    if weights is None:
        return counts.bincount(input, least)
    if not isinstance(weights, Tensor):
        raise TypeError(f"bincount: weights must be a Tensor, got {type_name(weights)}")
    if weights.shape != input.shape:
        raise RuntimeError("bincount: weights should be 1-d and have the same length as input, got "
                           f"{list(weights.shape)} and {list(input.shape)}")
    return counts.bincount(input, least, weights.detach())


# ---- histograms ----------------------------------------------------------------------------------

def counted(x, bins=100, min=0, max=0):
    """The reference of `histc`."""
    if min == max:
        min, max = (x.min(), x.max()) if x.size else (0, 1)
    return np.histogram(x, bins, (min, max) if min < max else (min - 1, max + 1))[0].astype(x.dtype)


def range_of(name, x, low, high, margin):
    """The ends of the bins: those that are given, or of the elements; `margin` apart if equal.

    The margin is more where it would be lost beside a large number.

    Raises: RuntimeError.
    """
    if low == high and x.numel():
        low, high = (float(y) for y in (x.min(), x.max()))
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min, got [{low}, {high}]")
    margin = max(margin, abs(low) * 2**-20)
    return (low, high) if low < high else (low - margin, high + margin)


def checked_reals(name, input, halves=True):
    """A tensor outside the graph. Raises: UnsupportedDtype for integers, and for half types where
    these are not taken."""
    if not input.is_floating_point() or input.itemsize == 2 and not halves:
        raise UnsupportedDtype(f"{name}: not implemented for {input.dtype}")
    return input.detach()


@composite(tensors=("input",), differentiable=False, out=True, takes="floating",
           reference=counted,
           samples=given(((9,), 4), ((2, 5), 3, -1, 1), ((0,), 2), ((4,), 3, 5, 6)),
           errors=refusals((RuntimeError, (3,), 0), (RuntimeError, (3,), 3, 2, 1),
                           (RuntimeError, (3,), 3, 0, float("inf")), (TypeError, (3,), 1.5)),
           reads_values=True, checks_values=True)
def histc(input: Tensor, bins=100, min=0, max=0):
    """The numbers of elements in `bins` equal parts of [min, max], in the dtype of `input`.

    The range is that of the elements where both ends are equal. What lies outside, and NaN, is not
    counted; the last part has both of its ends.
    Shapes: (*) -> (bins,).
    Raises: RuntimeError for no bins or a range that is not finite or the wrong way round,
    UnsupportedDtype for integers, TypeError.

    >>> tensorlib.tensor([1., 2., 1.]).histc(4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x, bins = checked_reals("histc", input), integer("histc", "bins", bins)
    if bins < 1:
        raise RuntimeError(f"histc: bins must be > 0, but got {bins}")
    low, high = range_of("histc", x, plain_number("histc", "min", min),
                         plain_number("histc", "max", max), 1)
    return counts.histogram_counts(x, low, high, bins).to(input.dtype)


def histogram_of(x, bins, weight=None, density=False):
    """The reference of `histogram`."""
    found, edges = np.histogram(x, bins, weights=weight, density=density)
    return found.astype(x.dtype), edges.astype(x.dtype)


@composite(tensors=("input",), outputs=("hist", "bin_edges"), differentiable=False, out=True,
           dtypes=("float32", "float64"), reference=histogram_of,
           samples=given(((9,), 4), ((2, 5), np.array([-1.0, 0, 0.5, 2])), ((6,), 2)),
           errors=refusals((RuntimeError, (3,), 0), (RuntimeError, (3,), np.ones(1)),
                           (RuntimeError, (3,), np.ones((2, 2)))),
           reads_values=True, checks_values=True)
def histogram(input: Tensor, bins=100, *, range=None, weight=None, density=False):
    """The numbers of elements between edges: a named tuple (hist, bin_edges).

    bins: how many parts of one width there are, or a vector of ascending edges. range: the ends of
    the first and the last part, by default the least and the largest element. weight: what each
    element counts. density: the numbers are divided by their sum and by the widths.

    Shapes: (*) -> (bins,), (bins + 1,). Raises: RuntimeError for no bins, edges that are not
    vectors, a range that is not finite or the wrong way round, and weights of another shape;
    UnsupportedDtype for integers and half types, TypeError.

    >>> tensorlib.tensor([1., 2., 1.]).histogram(2)
    tensorlib.return_types.histogram(
    hist=tensor([2., 1.]),
    bin_edges=tensor([1.0000, 1.5000, 2.0000]))
    """
    x = checked_reals("histogram", input, halves=False)
    edges = edges_of("histogram", x, bins, range)
    weights = weights_of("histogram", weight, input.shape)
    places = parts_of("histogram", edges, x.reshape(-1))
    found = counts.bincount(places, edges.numel(), weights)[1:].double()
    if density:
        found = found / (found.sum() * edges.double().diff())
    return Histogram(found.to(input.dtype), edges)


def weights_of(name, weight, shape, owner="the input"):
    """What each element counts, as a float64 vector, or None. Raises: RuntimeError, TypeError."""
    if weight is None:
        return None
    if not isinstance(weight, Tensor):
        raise TypeError(f"{name}: weight must be a Tensor, got {type_name(weight)}")
    if weight.shape != shape:
        raise RuntimeError(f"{name}: weight should have the shape of {owner}, got "
                           f"{list(weight.shape)} and {list(shape)}")
    return weight.detach().reshape(-1).double()


def histogramdd(input: Tensor, bins, range=None, weight=None,
                density=False) -> HistogramDD:
    """How many points lie in each cell of a grid: a named tuple (hist, bin_edges).

    bins: how many parts of one width there are, one number or one for each dim of the points; or
    vectors of ascending edges. range: the ends of the first and last part for each dim, one after
    the other, by default the least and the largest coordinate. weight: what each point counts.
    density: the numbers are divided by their sum and by the volumes of cells. Points outside of
    the grid are not counted.

    Shapes: (*, D) -> D sizes, and a tuple of D vectors of edges. Raises: RuntimeError for other
    numbers of bins and ends than D, no bins, a range that is not finite or the wrong way round,
    and weights of another shape; UnsupportedDtype for integers and half types, TypeError.

    >>> points = tensorlib.tensor([[0., 1.], [1., 0.], [2., 0.], [2., 2.]])
    >>> tensorlib.histogramdd(points, bins=[3, 2]).hist
    tensor([[0., 1.],
            [1., 0.],
            [1., 1.]])
    """
    x = checked_reals("histogramdd", input, halves=False)
    if x.ndim < 2:
        raise RuntimeError("histogramdd: input should have at least 2 dims, got shape "
                           f"{list(x.shape)}")
    dims = x.shape[-1]
    bins = list(bins) if isinstance(bins, (tuple, list)) else [bins] * dims
    ends = [None] * (2 * dims) if range is None else list(range)
    if len(bins) != dims or len(ends) != 2 * dims:
        raise RuntimeError(f"histogramdd: points of {dims} dims take as many bins and twice as "
                           f"many ends of ranges, got {len(bins)} and {len(ends)}")
    weights = weights_of("histogramdd", weight, x.shape[:-1], "the points")
    columns = x.reshape(-1, dims).unbind(1)
    edges = [edges_of("histogramdd", column, count,
                      None if range is None else ends[2 * d:2 * d + 2])
             for d, (column, count) in enumerate(zip(columns, bins))]
    sizes, cell = [edge.numel() for edge in edges], 0
    for column, edge, size in zip(columns, edges, sizes):
        cell = cell * size + parts_of("histogramdd", edge, column)
    found = counts.bincount(cell, prod(sizes), weights).double().reshape(sizes)
    for d in builtins.range(dims):                  # part 0 has what is outside
        found = found.narrow(d, 1, sizes[d] - 1)
    if density:
        found = found / found.sum()
        for d, edge in enumerate(edges):
            found = found / edge.double().diff().reshape([-1] + [1] * (dims - 1 - d))
    return HistogramDD(found.to(input.dtype).contiguous(), tuple(edges))


publish("histogramdd", histogramdd, histogramdd.__doc__, method=False)


def edges_of(name, x, bins, ends):
    """The edges of a histogram. Raises: RuntimeError, TypeError."""
    if isinstance(bins, Tensor):
        return bins.detach().to(x.dtype, copy=True)
    bins = integer(name, "bins", bins)
    if bins < 1:
        raise RuntimeError(f"{name}: bins must be > 0, but got {bins}")
    low, high = (0, 0) if ends is None else (float(end) for end in ends)
    if ends is None and not x.numel():
        low, high = 0.0, 1.0
    low, high = range_of(name, x if ends is None else x.reshape(-1)[:0], low, high, 0.5)
    steps = FUNCTIONS["linspace"](low, high, bins + 1, dtype=BY_NAME["float64"])
    return steps.to(x.dtype)


# ---- covariance ----------------------------------------------------------------------------------

HALVED = 64                  # rows above which half of a symmetric product is multiplied


@composite(tensors=("input",), takes="integer floating", tolerance="reduction",
           reference=lambda x, correction=1: np.cov(x, ddof=correction),
           samples=lambda rng: (((rng.uniform(-2, 2, shape),), keywords) for shape, keywords in (
               ((2, 4), {}), ((3,), {}), ((2, 3), {"correction": 0}))),
           errors=refusals((RuntimeError, (2, 2, 2))), complex=True)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance of the rows, each a variable with an observation in each column.

    correction: what is taken from the number of observations in the divisor. fweights: how often
    each observation counts, integers; aweights: its weight.

    Shapes: (M, N) -> (M, M); (1, N), (N,) or () -> ().
    Raises: RuntimeError for more than two dims, bools, and weights that are not vectors of N
    numbers, of which one is negative or that sum to 0; TypeError.

    >>> tensorlib.cov(tensorlib.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(f"cov: expected at most 2 dims, got {input.ndim}")
    if input.dtype.name == "bool":
        raise RuntimeError("cov: not implemented for bools")
    x = input if has_gradients(input.dtype) else input * 1.0
    x = x.reshape(1, x.numel()) if x.ndim < 2 else x
    n = x.shape[1]
    weights = None
    for name, factors in (("fweights", fweights), ("aweights", aweights)):
        if factors is not None:
            check_weights(name, factors, n)
            real = x.dtype.to_real()
            factors = factors.to(real if name == "fweights" else promote_types(real, factors.dtype))
            weights = factors if weights is None else weights * factors
    if weights is None:
        away = x - x.mean(1, True)
        result = with_itself(away) / x.new_tensor(max(n - correction, 0))
    else:
        total = weights.sum()
        weights_are_some(total)
        mean = (x * weights).sum(1, True) / total
        shared = 1 if aweights is None else (weights * aweights.to(weights.dtype)).sum() / total
        freedom = total - correction * shared
        away = x - mean
        result = matmul(away * weights, away.mH) / freedom.clamp(min=0)
    return result.squeeze()


def with_itself(x):
    """x @ x.mH"""
    return gram_matrix(x) if x.shape[0] > HALVED and not x.is_complex() else matmul(x, x.mH)


def check_weights(name, factors, n):
    """Raises RuntimeError for weights that `cov` can't take, TypeError for what is not a Tensor."""
    if not isinstance(factors, Tensor):
        raise TypeError(f"cov: {name} must be a Tensor, got {type_name(factors)}")
    if factors.ndim > 1 or factors.numel() != n:
        raise RuntimeError(f"cov: {name} must be a vector of {n} numbers, got shape "
                           f"{tuple(factors.shape)}")
    if factors.is_floating_point() == (name == "fweights"):
        what = "integers" if name == "fweights" else "floating-point numbers"
        raise RuntimeError(f"cov: {name} must be {what}, got {factors.dtype}")
    weights_are_not_negative(factors, name)


@value_check
def weights_are_some(total):
    """Raises RuntimeError for weights that sum to 0, by which nothing can be divided."""
    if (total == 0).any():
        raise RuntimeError("cov: the weights sum to 0")


@value_check
def weights_are_not_negative(factors, name):
    """Raises RuntimeError for a negative weight."""
    if (factors < 0).any():
        raise RuntimeError(f"cov: {name} cannot be negative")


@composite(takes="integer floating", tolerance="reduction", reference=np.corrcoef,
           samples=given(((2, 4),), ((3, 3),), ((4,),)),
           errors=refusals((RuntimeError, (2, 2, 2))), complex=True)
def corrcoef(input):
    """The correlation of the rows: their covariances divided by the deviations of both.

    Rounding takes no real nor imaginary part out of [-1, 1].

    Shapes: (M, N) -> (M, M); (1, N) or (N,) -> ().
    Raises: RuntimeError for more than two dims.
    """
    if input.ndim > 2:
        raise RuntimeError(f"corrcoef: expected at most 2 dims, got {input.ndim}")
    together = cov(input)
    if together.ndim == 0:
        return together / together
    scale = together.real.diagonal().sqrt()
    found = together / scale.unsqueeze(-1) / scale
    if found.is_complex():
        return FUNCTIONS["complex"](found.real.clamp(-1, 1), found.imag.clamp(-1, 1))
    return found.clamp(-1, 1)


declared(__name__)
