"""Sums, means and the like, with the standard's dtypes: small integers add up as int64 or uint64.
"""

import tensorlib as tl
from tensorlib.array_api.operands import kind_of, together


def sum_dtype(x, dtype):
    """The dtype of a sum or product of `x`, unless one is given."""
    if dtype is not None:
        return dtype
    kind = kind_of(x.dtype)
    return {"signed integer": tl.int64, "unsigned integer": tl.uint64, "bool": tl.int64}.get(
        kind, x.dtype)


def over(reduction, x, axis, keepdims, **options):
    """A reduction over axes: over none where `axis` is (), which is all for PyTorch's functions."""
    if axis == ():
        return reduction(x.unsqueeze(-1), -1, False, **options)
    return reduction(x, axis, keepdims, **options)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over axes."""
    return over(tl.sum, x, axis, keepdims, dtype=sum_dtype(x, dtype))


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over axes."""
    dtype = sum_dtype(x, dtype)
    if isinstance(axis, tuple) and len(axis) > 1:            # PyTorch's takes one
        for place in sorted((place % x.ndim for place in axis), reverse=True):
            x = tl.prod(x, place, keepdims, dtype=dtype)
        return x
    axis = axis[0] if isinstance(axis, tuple) and axis else axis
    return over(tl.prod, x, axis, keepdims, dtype=dtype)


def max(x, /, *, axis=None, keepdims=False):
    """The greatest element over axes."""
    return over(tl.amax, x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The least element over axes."""
    return over(tl.amin, x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean over axes."""
    return over(tl.mean, x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance over axes; its divisor is the number of elements less the `correction`."""
    return moments(tl.var, x, axis, correction, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation over axes, the root of `var`."""
    return moments(tl.std, x, axis, correction, keepdims)


def moments(reduction, x, axis, correction, keepdims):
    """Variances or deviations."""
    if axis == ():
        x, axis, keepdims = x.unsqueeze(-1), -1, False
    return reduction(x, axis, correction=correction, keepdim=keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements over axes are true."""
    return over(tl.all, x.to(tl.bool), axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether one of the elements over axes is true."""
    return over(tl.any, x.to(tl.bool), axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements over axes are not 0."""
    return over(tl.sum, x != 0, axis, keepdims, dtype=tl.int64)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums up to each element along an axis, after a 0 where `include_initial`."""
    return cumulated("cumulative_sum", tl.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products up to each element along an axis, after a 1 where `include_initial`."""
    return cumulated("cumulative_prod", tl.cumprod, 1, x, axis, dtype, include_initial)


def cumulated(name, scan, first, x, axis, dtype, include_initial):
    """A scan along an axis. Raises: ValueError without one for other than one axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: needs an axis for an array of {x.ndim} axes")
        axis = 0
    dtype = sum_dtype(x, dtype)
    found = scan(x, axis, dtype=dtype)
    if not include_initial:
        return found
    shape = list(x.shape)
    shape[axis] = 1
    return tl.cat([tl.full(shape, first, dtype=dtype, device=x.device), found], axis)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbours along an axis, taken `n` times."""
    x, prepend, append = together(x, prepend, append)
    return tl.diff(x, n, axis, prepend, append)
