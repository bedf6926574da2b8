"""Arguments of distributions: broadcasting, probabilities and logits."""

from functools import cached_property, wraps
from numbers import Number

import tensorlib as tl

from tensorlib._core.base.error_names import type_name


def require(name, kind, **values):
    """Raises TypeError for an argument of another type."""
    for what, value in values.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name}: {what} must be a {kind.__name__}, not "
                            f"{type(value).__name__}")


def broadcast_all(*values):
    """Tensors of one shape; numbers take the dtype of the first tensor, or the default one.

    Raises: ValueError for what is neither a tensor nor a number.
    """
    if not all(isinstance(x, (tl.Tensor, Number)) for x in values):
        raise ValueError("Input arguments must all be instances of Number or Tensor, got "
                         f"{', '.join(type_name(x) for x in values)}")
    dtype = next((x.dtype for x in values if isinstance(x, tl.Tensor)), tl.get_default_dtype())
    return tl.broadcast_tensors(
        *(x if isinstance(x, tl.Tensor) else tl.tensor(x, dtype=dtype) for x in values))


class derived(cached_property):
    """A property that is computed once, in the graph; `utils.lazy_property` to others."""

    def __init__(self, function):
        @wraps(function)
        def compute(self):
            with tl.enable_grad():
                return function(self)

        super().__init__(compute)


def one_of(name, probs, logits):
    """Which of both was given, as its name and its value. Raises: ValueError unless one was."""
    if (probs is None) == (logits is None):
        raise ValueError(f"{name}: either probs or logits must be given, but not both")
    return ("logits", logits) if probs is None else ("probs", probs)


def clamp_probs(probs):
    """Probabilities brought away from 0 and 1 by the resolution of their dtype."""
    eps = tl.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """The logarithms of probabilities, or of odds."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def logits_to_probs(logits, is_binary=False):
    """The probabilities of what `probs_to_logits` gives."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def softplus(x):
    """log(1 + exp(x))"""
    return tl.logaddexp(x, tl.zeros_like(x))


def sum_rightmost(value, ndim):
    """The sum over the last `ndim` dims."""
    return value.sum(tuple(range(-ndim, 0))) if ndim else value
