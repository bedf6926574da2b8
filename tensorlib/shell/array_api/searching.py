"""Elements found, taken and ordered, and arrays as sets."""

from typing import NamedTuple

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.array_api.operands import together


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def take(x, indices, /, *, axis=None):
    """The parts of `x` at some places along an axis, which an array of one axis need not say."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: needs an axis for an array of {x.ndim} axes")
        axis = 0
    return tl.index_select(x, axis, indices.to(tl.int64))


def take_along_axis(x, indices, /, *, axis=-1):
    """The elements of `x` at the places that `indices` has along an axis."""
    return tl.take_along_dim(x, indices.to(tl.int64), axis)


def argmax(x, /, *, axis=None, keepdims=False):
    """The place of the greatest element along an axis, or in the flat array."""
    return placed(tl.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The place of the least element along an axis, or in the flat array."""
    return placed(tl.argmin, x, axis, keepdims)


def placed(function, x, axis, keepdims):
    """The places that a function finds, with all axes kept where asked for."""
    if axis is None:
        found = function(x.reshape(-1), 0)
        return found.reshape((1,) * x.ndim) if keepdims else found
    return function(x, axis, keepdims)


def nonzero(x, /):
    """For each axis the places of the elements that are not 0. Raises: ValueError without axes."""
    if x.ndim == 0:
        raise ValueError("nonzero: takes arrays of one axis or more, got one without any")
    return tuple(tl.nonzero(x, as_tuple=True))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """The places in the sorted array `x1` at which elements of `x2` keep it sorted."""
    x1, x2 = together(x1, x2)
    if sorter is not None:
        x1 = tl.index_select(x1, 0, sorter.to(tl.int64))
    return tl.searchsorted(x1, x2, side=side)


def where(condition, x1, x2, /):
    """The elements of `x1` where the condition holds, and those of `x2` elsewhere."""
    return tl.where(condition, *together(x1, x2))


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The places of the elements along an axis in order."""
    return tl.argsort(x, axis, descending, stable=stable)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements along an axis in order."""
    return tl.sort(x, axis, descending, stable=stable)[0]


# ---- sets ----------------------------------------------------------------------------------------

def isin(x1, x2, /, *, invert=False):
    """Whether each element of `x1` is among those of `x2`, or is not."""
    return tl.isin(*together(x1, x2), invert=invert)


def groups(x):
    """The flat elements in a stable order, the places they had, and where another one begins.

    NaN is no other element's equal.
    """
    flat = x.reshape(-1)
    order = tl.argsort(key_of(flat), stable=True)
    ordered = flat[order]
    first = tl.ones(ordered.shape, dtype=tl.bool, device=x.device)
    if len(flat):
        first[1:] = ordered[1:] != ordered[:-1]
    return ordered, order, first


def key_of(x):
    """What to sort by: the elements themselves, or dense ranks of complex ones."""
    if not x.dtype.is_complex:
        return x
    real, imaginary = tl.real(x), tl.imag(x)
    order = tl.argsort(imaginary, stable=True)
    order = order[tl.argsort(real[order], stable=True)]
    ranks = tl.empty_like(order)
    ranks[order] = tl.arange(len(order))
    return ranks


def counts_of(first):
    """How many elements each group has."""
    starts = tl.nonzero(first, as_tuple=True)[0]
    ends = tl.cat([starts[1:], tl.tensor([len(first)])]) if len(first) else starts
    return ends - starts


def inverse_of(x, order, first):
    """For each element of `x` the place of its group."""
    inverse = tl.empty_like(order)
    inverse[order] = tl.cumsum(first, 0) - 1
    return inverse.reshape(x.shape)


def unique_all(x, /):
    """The values that there are, where each stands first, which value each element has, and how
    often there is each."""
    values, order, first = groups(x)
    return UniqueAll(values[first], order[first], inverse_of(x, order, first), counts_of(first))


def unique_counts(x, /):
    """The values that there are, and how often there is each."""
    values, _, first = groups(x)
    return UniqueCounts(values[first], counts_of(first))


def unique_inverse(x, /):
    """The values that there are, and which each element has."""
    values, order, first = groups(x)
    return UniqueInverse(values[first], inverse_of(x, order, first))


def unique_values(x, /):
    """The values that there are."""
    values, _, first = groups(x)
    return values[first]
