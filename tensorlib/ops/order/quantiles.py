"""Medians, modes and quantiles."""

import math
from numbers import Real

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.arrays.convert import asarray
from tensorlib._core.base.results import result_type
from tensorlib._core.base.shape import wrap
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.index.gather import take_along
from tensorlib._core.interpreters.capture import capture
from tensorlib._core.interpreters.foreign import elements_known, is_tensor
from tensorlib._core.layout import views
from tensorlib._core.reduce.radix_sort import keys_in_order
from tensorlib._core.reduce.sort_keys import median_places, order_keys
from tensorlib._core.reduce.runs import last_of_longest, most_frequent_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import refuse_bools
from tensorlib.ops.declare import composite, op
from tensorlib.ops.foreign import by_numpy
from tensorlib.ops.index.indexing import gather
from tensorlib.ops.lazy import declared
from tensorlib.ops.order.ordering import LONG_ROW, along_last, order_of_rows, refuse_no_place
from tensorlib.ops.order.sorting import at_places, in_order, sort
from tensorlib.ops.reduce.extremes import along_jvp, along_vjp
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.value_checks import value_check

Median = result_type("median", "values indices")
NanMedian = result_type("nanmedian", "values indices")
Mode = result_type("mode", "values indices")


# ---- medians -------------------------------------------------------------------------------------

def lower_middle(x, dim=None, keepdim=False):
    """The reference of `median` and `nanmedian`, for numbers alone."""
    if dim is None:
        return np.sort(x, None)[(x.size - 1) // 2]
    if not x.ndim:
        return x, np.int64(0)
    middle = [(x.shape[dim] - 1) // 2]
    picked = [np.take(y, middle, dim) for y in in_order(x, dim)]
    return picked if keepdim else [y.squeeze(dim) for y in picked]


MEDIANS = (((3, 4), 0), ((2, 3, 4), 1, True), ((), 0), ((0, 3), 1))
NO_MEDIAN = refusals((IndexError, (2, 3), 2), (IndexError, (0, 3), 0))


@op(public=False, method=False, takes="integer floating",
    reference=lambda x, skip: lower_middle(x), samples=given(((5,), False), ((3, 4), True)))
def middle(input: Tensor, skip_nan):
    """The median of all elements: see `median` and, with `skip_nan`, `nanmedian`."""
    name = "nanmedian" if skip_nan else "median"
    refuse_bools(name, input)
    if input.numel() == 0:
        if input.is_floating_point():
            return input.new_full((), math.nan)
        raise RuntimeError(f"{name}: no elements")
    row = views.reshape(input, (-1,))
    place = along_last(name, row, 0, lambda x: median_places(x, skip_nan), 1)
    return views.reshape(take_along(row, 0, place), ())


def ties_with(input, out):
    """1 over the number of elements that are `out` where an element is, else 0."""
    out = out.detach()
    ties = (input == out).logical_or(input.isnan().logical_and(out.isnan())).to(input.dtype)
    return ties / ties.sum()


@middle.vjp("input")
def middle_vjp(g, input, out):
    """The gradient is shared by all elements that are the median."""
    return g * ties_with(input, out)


@middle.jvp
def middle_jvp(d_input, input, out):
    """The mean of the tangents of all elements that are the median."""
    return (d_input * ties_with(input, out)).sum()


def two_forms(name, skip_nan):
    """The `convert` of `median` or `nanmedian`: of all elements, or along a dim."""
    def convert(input: Tensor, dim=None, keepdim=False):
        if dim is not None:
            return input, dim, keepdim
        if keepdim:
            raise TypeError(f"{name}: keepdim needs a dim")
        return [middle, input, skip_nan]
    return convert


def median_along(name, input, dim, keepdim, skip_nan):
    """The medians along a dim and their positions."""
    refuse_bools(name, input)
    refuse_no_place(name, input, dim)
    dim = wrap(name, dim, input.ndim)
    indices = along_last(name, input, dim, lambda x: median_places(x, skip_nan), 1)
    values = take_along(input, dim, indices)
    if keepdim or input.ndim == 0:
        return values, indices
    return views.squeeze(values, dim), views.squeeze(indices, dim)


@op(outputs=("values", "indices"), convert=two_forms("median", False), out=True,
    takes="integer floating", reference=lower_middle, samples=given(*MEDIANS), errors=NO_MEDIAN)
def median(input: Tensor, dim, keepdim=False):
    """The median of all elements; along `dim` a named tuple (values, indices).

    Of an even number of elements it is the lower one of the two in the middle. NaN if one is.

    Shapes: () of all; along a dim (*, N, *) -> (*, *), with `keepdim` (*, 1, *).
    Gradient: of all elements, evenly among equal ones; along a dim, to the place that was found.
    Raises: UnsupportedDtype for bools, IndexError for a dim out of range or empty, TypeError
    for `keepdim` without one.

    >>> tensorlib.tensor([3., 1., 2., 4.]).median()
    tensor(2.)
    """
    return Median(*median_along("median", input, dim, keepdim, False))


@op(outputs=("values", "indices"), convert=two_forms("nanmedian", True), out=True,
    takes="integer floating", reference=lower_middle, samples=given(*MEDIANS), errors=NO_MEDIAN)
def nanmedian(input: Tensor, dim, keepdim=False):
    """`median` of what is not NaN.

    Shapes, gradient and errors are those of `median`.

    >>> tensorlib.tensor([3., float("nan"), 2., 4.]).nanmedian()
    tensor(3.)
    """
    return NanMedian(*median_along("nanmedian", input, dim, keepdim, True))


for _function in (median, nanmedian):
    _function.vjp("input")(along_vjp)
    _function.jvp(along_jvp)


# ---- modes ---------------------------------------------------------------------------------------

def most_frequent(x, dim=-1, keepdim=False):
    """The reference of `mode`."""
    if not x.ndim:
        return x, np.int64(0)
    rows = np.moveaxis(x, dim, -1)
    places = np.zeros(rows.shape[:-1] + (1,), np.int64)
    for at in np.ndindex(places.shape[:-1]):
        values, counts = np.unique(rows[at], return_counts=True)
        places[at] = np.flatnonzero(rows[at] == values[counts.argmax()])[-1]
    picked = [np.moveaxis(y, -1, dim) for y in (np.take_along_axis(rows, places, -1), places)]
    return picked if keepdim else [y.squeeze(dim) for y in picked]


BRIEF_ROW = 8                # elements of a row that are counted in less time than they are sorted
MODES = (((5,),), ((3, 4), 0), ((2, 3, 4), 1, True), ((), 0), ((0, 3), 1))


def mode_places(x):
    """The last positions of the most frequent elements of each row, in one column."""
    keys, bits = order_keys(x, False)
    if 0 < x.shape[-1] <= BRIEF_ROW:
        return most_frequent_places(keys, bits, x.is_floating_point())
    order = None
    if not bits:
        order = order_of_rows(x)
        order = order if isinstance(order, Tensor) else from_numpy(order)
    elif keys.shape[-1] >= LONG_ROW:
        keys_in_order(keys, bits)
    else:
        keys.numpy().sort()
    return last_of_longest(keys, bits, order, x.is_floating_point())


@op(differentiable=False, public=False, method=False,
    reference=lambda x, dim: most_frequent(x, dim, True)[1],
    samples=given(((3, 4), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 1)),
    errors=refusals((IndexError, (0, 3), 0)))
def mode_order(input: Tensor, dim):
    """The positions along `dim`, which stays, of the modes. Raises: IndexError."""
    refuse_no_place("mode", input, dim)
    return along_last("mode", input, dim, mode_places, 1)


@composite(tensors=("input",), outputs=("values", "indices"), out=True,
           reference=most_frequent, samples=given(*MODES),
           errors=refusals((IndexError, (2, 3), 2), (IndexError, (0, 3), 0)))
def mode(input: Tensor, dim=-1, keepdim=False):
    """The most frequent element along `dim`: a named tuple (values, indices).

    Of several the least, and of its positions the last. NaN is not equal to itself.

    Shapes: (*, N, *) -> (*, *), with `keepdim` (*, 1, *). Gradient: to the place that was found.
    Raises: IndexError for a dim out of range or empty.

    >>> tensorlib.tensor([3, 1, 2, 1]).mode()
    tensorlib.return_types.mode(
    values=tensor(1),
    indices=tensor(3))
    """
    wrap("mode", dim, input.ndim)
    return Mode(*at_places(input, dim, mode_order(input, dim), keepdim))


# ---- quantiles -----------------------------------------------------------------------------------

WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantiles_of(function):
    """The reference of `quantile` and `nanquantile`."""
    return lambda x, q, dim=None, keepdim=False, interpolation="linear": function(
        x, np.asarray(q), dim, keepdims=keepdim, method=interpolation)


def quantile_samples(rng):
    """Samples of `quantile` and `nanquantile`."""
    for shape, q, dim, keepdim in (
            ((5,), 0.3, None, False), ((3, 4), 1.0, 0, False), ((), 0, None, True),
            ((2, 3, 2), 0.7, 1, True), ((3, 3), 0.25, None, True)):
        yield (rng.uniform(-2, 2, shape), q, dim, keepdim), {}
    for way in WAYS:
        yield (rng.uniform(-2, 2, 6), 0.45, 0), {"interpolation": way}


def bad_quantiles():
    """Error samples of `quantile` and `nanquantile`."""
    for error, size, q, dim, way in (
            (RuntimeError, 3, 1.5, 0, "linear"), (RuntimeError, 3, float("nan"), 0, "linear"),
            (RuntimeError, 0, 0.5, 0, "linear"), (RuntimeError, 3, 0.5, 0, "cubic"),
            (RuntimeError, 3, np.ones((1, 1)), 0, "linear"),
            (RuntimeError, 3, np.ones(1, np.float32), 0, "linear"),
            (IndexError, 3, 0.5, 1, "linear"), (TypeError, 3, "1", 0, "linear")):
        yield (np.ones(size), q, dim), {"interpolation": way}, error


def quantile_of(name, input, q, dim, keepdim, interpolation, skip_nan):
    """What `quantile` and `nanquantile` give."""
    x, q = check_quantiles(name, input, q, interpolation)
    if dim is None:
        rows = x.reshape(-1)
        kept = (1,) * x.ndim
    else:
        dim = wrap(name, dim, x.ndim)
        rows = x.movedim(dim, -1) if x.ndim else x.reshape(1)
        kept = (*x.shape[:dim], 1, *x.shape[dim + 1:]) if x.ndim else ()
    if rows.numel() == 0:
        raise RuntimeError(f"{name}: input tensor must be non-empty")
    values = interpolated(rows, q.reshape(-1), interpolation, skip_nan)
    values = values.movedim(-1, 0)
    shape = kept if keepdim else rows.shape[:-1]
    return values.reshape((*q.shape, *shape))


def check_quantiles(name, input, q, interpolation):
    """The tensors of a call. Raises: RuntimeError, TypeError."""
    if interpolation not in WAYS:
        raise RuntimeError(f"{name}: interpolation must be one of {', '.join(WAYS)}, but got "
                           f"{interpolation!r}")
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}: input tensor must be float32 or float64, got {input.dtype}")
    if isinstance(q, Real) and not isinstance(q, bool):
        q = asarray(q, dtype=input.dtype)
    elif not is_tensor(q):
        raise TypeError(f"{name}: q must be a number or a tensor, got {q!r}")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}: q tensor must be same dtype as the input tensor, got "
                           f"{q.dtype} and {input.dtype}")
    if q.ndim > 1:
        raise RuntimeError(f"{name}: q must be a scalar or 1D tensor, got {q.ndim} dims")
    are_fractions(q, name)
    return input, q


@value_check
def are_fractions(q, name):
    """Raises RuntimeError for what is not between 0 and 1."""
    if not (q >= 0).logical_and(q <= 1).all():
        raise RuntimeError(f"{name}: q values must be in the range [0, 1]")


def interpolated(rows, q, interpolation, skip_nan):
    """The quantiles of each row."""
    unknown = rows.isnan()
    last = rows.shape[-1] - 1
    if skip_nan:
        known = unknown.logical_not().sum(-1, True).to(rows.dtype)
        ranks = (q * (known - 1)).clamp(min=0)
    else:
        ranks = (q * last).where(unknown.any(-1, True).logical_not(), last)
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    values = ascending(rows)
    below = ranks.detach().floor()
    lower = gather(values, -1, below.long())
    if interpolation not in ("linear", "midpoint"):
        return lower
    upper = gather(values, -1, ranks.detach().ceil().long())
    return lower.lerp(upper, ranks - below if interpolation == "linear" else 0.5)


def ascending(rows):
    """Each row sorted; where no gradient is wanted the values alone, which takes a half to a fifth
    of the time in rows that are neither very short nor long."""
    if capture() is not None or not BRIEF_ROW < rows.shape[-1] < LONG_ROW or (
            rows.requires_grad and is_grad_enabled()) or not elements_known(rows):
        return sort(rows)[0]
    return by_numpy("quantile", lambda: np.sort(rows.detach().numpy()), rows.shape, rows.dtype,
                    rows)


@composite(tensors=("input",), out=True, dtypes=("float32", "float64"), tolerance="reduction",
           reference=quantiles_of(np.quantile), samples=quantile_samples, errors=bad_quantiles)
def quantile(input: Tensor, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-th quantiles, 0 <= q <= 1, of all elements or along `dim`. NaN if an element is.

    q: a number, or a vector of the dtype of `input`, whose dim comes first in the result.
    interpolation: what is taken between two elements, "linear", "lower", "higher", "nearest" or
    "midpoint".

    Shapes: (*, N, *), (K,) -> (K, *, *), with `keepdim` (K, *, 1, *).
    Gradient: to the elements at both sides, and to a tensor `q`.
    Raises: RuntimeError for no elements, other dtypes than float32 and float64, q out of its range
    or of another dtype, and another interpolation; IndexError, TypeError.

    >>> tensorlib.tensor([1., 2., 3., 4.]).quantile(0.5)
    tensor(2.5000)
    """
    return quantile_of("quantile", input, q, dim, keepdim, interpolation, False)


@composite(tensors=("input",), out=True, dtypes=("float32", "float64"), tolerance="reduction",
           reference=quantiles_of(np.nanquantile), samples=quantile_samples, errors=bad_quantiles)
def nanquantile(input: Tensor, q, dim=None, keepdim=False, *, interpolation="linear"):
    """`quantile` of what is not NaN; NaN where nothing is.

    Shapes, gradient and errors are those of `quantile`.

    >>> tensorlib.tensor([1., float("nan"), 3.]).nanquantile(0.5)
    tensor(2.)
    """
    return quantile_of("nanquantile", input, q, dim, keepdim, interpolation, True)


declared(__name__)
