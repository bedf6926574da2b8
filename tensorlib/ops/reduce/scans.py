"""Cumulative products, extremes and logsumexp along a dim; and `nanmean`."""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.results import result_type
from tensorlib._core.base.shape import wrap
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.reduce import scans
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, op
from tensorlib.ops.index.indexing import spread_along
from tensorlib.ops.lazy import declared
from tensorlib.ops.reduce.reductions import DIMS, backwards, over, whole
from tensorlib.ops.samples import given, given_pairs, refusals
from tensorlib.ops.shape.joining import cat

CumulativeMax = result_type("cummax", "values indices")
CumulativeMin = result_type("cummin", "values indices")

ALONG = (((5,), 0), ((3, 4), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 1), ((2, 3), 1))
NO_SUCH_DIM = refusals((IndexError, (2, 3), 2))


def at_least_a_dim(function):
    """The reference of a function along a dim, for which a number is a vector of one."""
    return lambda x, dim, *args: function(np.atleast_1d(x), dim, *args).reshape(x.shape)


# ---- products ------------------------------------------------------------------------------------

def preceding(x, dim, first):
    """`x` moved on by one along a dim, with a number at its begin."""
    if x.ndim == 0:
        return x.new_full((), first)
    size = x.shape[dim]
    begin = x.narrow(dim, 0, min(size, 1))
    return cat((begin.new_full(begin.shape, first), x.narrow(dim, 0, max(size - 1, 0))), dim)


def recurred(x, factors, dim, reverse):
    """The reference of `recurrence`."""
    x, a = (np.moveaxis(np.atleast_1d(y), dim, 0).astype(
        np.result_type(y, float)) for y in (x, factors))
    out = x.copy()
    for i in range(1, len(x)):
        at = len(x) - 1 - i if reverse else i
        out[at] += out[at + 1] * a[at + 1] if reverse else out[at - 1] * a[at]
    return np.moveaxis(out, 0, dim).reshape(np.shape(factors))


@op(public=False, method=False, takes="floating", reference=recurred,
    samples=given_pairs(((3, 4), (3, 4), 0, False), ((2, 3), (2, 3), 1, True), ((), (), 0, True)),
    complex=True)
def recurrence(input: Tensor, factors: Tensor, dim, reverse):
    """out[i] = input[i] + factors[i] * out[i - 1] along `dim`.

    With `reverse`, its transpose: out[i] = input[i] + factors[i + 1] * out[i + 1].

    Shapes: (*, N, *), (*, N, *) -> (*, N, *). Raises: RuntimeError, IndexError.
    """
    return scans.recurrence(input, factors, dim, reverse)


@recurrence.vjp("input")
def recurrence_vjp_input(g, factors, dim, reverse):
    """The transpose: the same recurrence from the other end."""
    return recurrence(g, factors, dim, not reverse)


@recurrence.vjp("factors")
def recurrence_vjp_factors(g, factors, out, dim, reverse):
    """factors[i] multiplies out[i - 1] in step i, or with `reverse` out[i] in step i - 1."""
    back = recurrence(g, factors, dim, not reverse)
    return preceding(back, dim, 0) * out if reverse else back * preceding(out, dim, 0)


@recurrence.jvp
def recurrence_jvp(d_input, d_factors, factors, out, dim, reverse):
    """The same recurrence of d_input[i] + d_factors[i] * out[i - 1]."""
    if reverse:                              # what factors[i + 1] multiplies stands at i + 1
        moved = backwards(preceding(backwards(d_factors * out, dim), dim, 0), dim)
    else:
        moved = d_factors * preceding(out, dim, 0)
    return recurrence(d_input + moved, factors, dim, reverse)


@op(public=False, method=False, reference=at_least_a_dim(lambda x, dim: whole(np.cumprod)(
    x, axis=dim)), samples=given(*ALONG), tolerance="reduction", errors=NO_SUCH_DIM, complex=True)
def running_product(input: Tensor, dim):
    """The products of each element and those before it along `dim`: see `cumprod`."""
    return scans.cumprod(input, dim)


@running_product.vjp("input")
def running_product_vjp(g, input, out, dim):
    """The product before each element, times what it is multiplied with later: no division."""
    return recurrence(g, input, dim, True) * preceding(out, dim, 1)


@running_product.jvp
def running_product_jvp(d_input, input, out, dim):
    """d_out[i] = d_input[i] * out[i - 1] + input[i] * d_out[i - 1], which is a recurrence."""
    return recurrence(d_input * preceding(out, dim, 1), input, dim, False)


@composite(tensors=("input",), out=True, inplace="of a copy", tolerance="reduction",
           reference=at_least_a_dim(lambda x, dim: whole(np.cumprod)(x, axis=dim)),
           samples=given(*ALONG), errors=NO_SUCH_DIM, complex=True)
def cumprod(input: Tensor, dim, *, dtype=None):
    """The products of each element and those before it along `dim`. Integers give int64.

    float32 and half types are multiplied in float64.

    Shapes: the input's. Gradient: exact where elements are zero.
    Raises: IndexError for a dim out of range.

    >>> tensorlib.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    out = running_product(input if dtype is None else input.to(dtype), dim)
    return out if dtype is None else out.to(dtype)


# ---- extremes ------------------------------------------------------------------------------------

def extremes_so_far(x, dim, largest=True):
    """The reference of `cummax` and `cummin`."""
    rows = np.moveaxis(np.atleast_1d(x), dim, 0)
    values = (np.maximum if largest else np.minimum).accumulate(rows, 0)
    places = np.zeros(rows.shape, np.int64)
    for i in range(1, len(rows)):
        places[i] = np.where(rows[i] == values[i], i, places[i - 1])
    return [np.moveaxis(y, 0, dim).reshape(x.shape) for y in (values, places)]


@op(outputs=("values", "indices"), public=False, method=False, reference=extremes_so_far,
    samples=given(*[(*case, i % 2 == 0) for i, case in enumerate(ALONG)]))
def running_extremes(input: Tensor, dim, largest):
    """The extremes so far along `dim`, and their last places: see `cummax`."""
    return scans.extremes_so_far(input, dim, largest)


@running_extremes.vjp("input")
def running_extremes_vjp(g, indices, input_shape, dim):
    """The gradients of all places of an extreme meet where it was found; places have none."""
    return spread_along(g[0], input_shape, wrap("cummax", dim, len(input_shape)), indices)


@running_extremes.jvp
def running_extremes_jvp(d_input, indices, dim):
    """The tangents of the elements that were found."""
    return d_input.gather(dim, indices), None


def extremes_along(input, dim, largest):
    """The extremes so far and their places; of what is recorded a copy of these, as the gradient
    must not read what others may write to."""
    values, indices = running_extremes(input, dim, largest)
    return values, indices.clone() if input.requires_grad and is_grad_enabled() else indices


@composite(outputs=("values", "indices"), tensors=("input",), out=True, errors=NO_SUCH_DIM,
           reference=extremes_so_far, samples=given(*ALONG))
def cummax(input: Tensor, dim):
    """The largest of each element and those before it along `dim`: a named tuple (values, indices).

    NaN from the first NaN on. Of equal elements the last one's place is given.

    Shapes: the input's. Gradient: to the places that are given.
    Raises: IndexError for a dim out of range.

    >>> tensorlib.tensor([1, 3, 2]).cummax(0)
    tensorlib.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """
    return CumulativeMax(*extremes_along(input, dim, True))


@composite(outputs=("values", "indices"), tensors=("input",), out=True, errors=NO_SUCH_DIM,
           reference=lambda x, dim: extremes_so_far(x, dim, False), samples=given(*ALONG))
def cummin(input: Tensor, dim):
    """The smallest of each element and those before it along `dim`, as `cummax` the largest.

    >>> tensorlib.tensor([2, 3, 1]).cummin(0)
    tensorlib.return_types.cummin(
    values=tensor([2, 2, 1]),
    indices=tensor([0, 0, 2]))
    """
    return CumulativeMin(*extremes_along(input, dim, False))


# ---- sums of exponentials ------------------------------------------------------------------------

@op(out=True, takes="floating", tolerance="reduction", samples=given(*ALONG),
    reference=at_least_a_dim(lambda x, dim: np.log(np.cumsum(np.exp(x), axis=dim))),
    errors=NO_SUCH_DIM, complex=True)
def logcumsumexp(input: Tensor, dim):
    """The logarithm of the sum of the exponentials of each element and those before it.

    Of complex numbers it is made step by step, as by `logaddexp`.
    Shapes: the input's. Raises: UnsupportedDtype for integers, IndexError for a dim that is not
    there.

    >>> tensorlib.tensor([0., 0., 0.]).logcumsumexp(0).exp()
    tensor([1., 2., 3.])
    """
    if not has_gradients(input.dtype):
        raise UnsupportedDtype(f"logcumsumexp: not implemented for {input.dtype}")
    return scans.logcumsumexp(input, dim)


def weighted(x, weights, out, dim, reverse):
    """Sums of the weights by exp(x - out), of those before or, with `reverse`, after an element.

    Computed from logarithms, with those of positive and of negative real weights apart, as neither
    exp(x) nor exp(-out) need have a place among floating-point numbers.
    """
    inf = float("inf")
    parts = []
    for sign in (1,) if weights.is_complex() else (1, -1):
        taken = weights != 0 if weights.is_complex() else weights * sign > 0
        there = taken.logical_and(out != -inf)
        logs = (weights * sign).where(there, 1).log()
        if reverse:
            sums = (logs - out.where(there, 0)).where(there, -inf)
            parts.append((backwards(backwards(sums, dim).logcumsumexp(dim), dim) + x).exp())
        else:
            sums = (logs + x).where(there, -inf).logcumsumexp(dim)
            parts.append((sums - out).where(out != -inf, -inf).exp())
    return parts[0] - parts[1] if len(parts) > 1 else parts[0]


@logcumsumexp.vjp("input")
def logcumsumexp_vjp(g, input, out, dim):
    """The sum of g[i] * exp(input[j] - out[i]) over i >= j."""
    return weighted(input, g, out, dim, True) if input.ndim else g


@logcumsumexp.jvp
def logcumsumexp_jvp(d_input, input, out, dim):
    """The sum of d_input[j] * exp(input[j] - out[i]) over j <= i."""
    return weighted(input, d_input, out, dim, False) if input.ndim else d_input


# ---- means ---------------------------------------------------------------------------------------

@composite(tensors=("input",), takes="floating", tolerance="reduction",
           reference=over(np.nanmean), samples=given(*DIMS),
           errors=refusals((IndexError, (2,), 1)))
def nanmean(input: Tensor, dim=None, keepdim=False, *, dtype=None, out=None):
    """`mean` of what is not NaN.

    Shapes: as `sum`. Raises: RuntimeError for integers, IndexError for a dim out of range.

    >>> tensorlib.nanmean(tensorlib.tensor([1., float("nan"), 2.]))
    tensor(1.5000)
    """
    if not input.is_floating_point():
        raise UnsupportedDtype(f"nanmean: takes floating-point dtypes, got {input.dtype}")
    known = (input == input).sum(dim, keepdim)
    total = input.nansum(dim, keepdim, dtype=dtype)
    return total.div(known.to(total.dtype), out=out)


declared(__name__)
