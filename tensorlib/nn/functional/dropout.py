"""Dropout: elements, or whole channels, that are set to zero at random."""


import numpy as np

from tensorlib._core.base.warned import warn_of
from tensorlib import bernoulli, empty_like, ones, rand_like, where
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.parametric_activations import leaky_relu
from tensorlib.nn.functional.elementwise_losses import require_floating
from tensorlib.ops.declare import composite
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.reduce.softmax import softmax


def dropped(x, p=0.5, training=True):
    """The reference of dropout: each element is 0, or grows."""
    kept = x * (0 if p == 1 else 1 / (1 - p) if training else 1)
    other = 0 if training and p else x
    return np.minimum(kept, other), np.maximum(kept, other)


def random_function(public=False, **declared):
    """Declares a function that draws."""
    return composite(random=True, public=public, method=False, takes="floating", **declared)


BAD_CHANCES = refusals((ValueError, (2,), 1.5), (ValueError, (2,), -0.1))
CASES = given(((3, 4), 0.5), ((5,), 0.0), ((5,), 1.0), ((5,), 0.5, False), ((0, 2), 0.3))


def check(name, input, p, training):
    """Raises ValueError for what is not a probability, RuntimeError for integers, and for complex
    numbers of which some are to be dropped."""
    if training and p or not input.is_complex():
        require_floating(name, input)
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def kept(input, p, shape=None):
    """1 with probability 1 - p, else 0, in the shape of the input or another that broadcasts."""
    like = input.detach() if shape is None else ones(shape, dtype=input.dtype)
    return bernoulli(like, 1.0 - p)


def finished(input, result, inplace):
    """The result, or the input after the result was written over it."""
    return input.copy_(result) if inplace else result


def scaled(input, mask, p):
    """The elements that are kept, so large that their mean stays."""
    return input * mask if p == 1 else input * (mask * (1 / (1 - p)))


@random_function(public=True, reference=dropped, samples=CASES, errors=BAD_CHANCES, view="maybe")
def dropout(input: Tensor, p=0.5, training=True, inplace=False):
    """Each element set to 0 with probability `p`, otherwise divided by 1 - p; in training only.

    Raises: ValueError for what is not a probability.
    Source: Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting",
    JMLR 15, 2014.
    """
    check("dropout", input, p, training)
    if not training or p == 0:
        return input
    return finished(input, scaled(input, kept(input, p), p), inplace)


def of_channels(name, input, p, training, inplace, batched):
    """Dropout of whole channels: dim 1 in a batch, else dim 0."""
    check(name, input, p, training)
    if not training or p == 0:
        return input
    lead = 2 if batched else 1
    shape = (*input.shape[:lead], *(1,) * (input.ndim - lead))
    return finished(input, scaled(input, kept(input, p, shape), p), inplace)


def warn_of_dims(name, input, low, high):
    """Warns of an input with more or fewer dims than these."""
    if not low <= input.ndim <= high:
        warn_of(f"{name}: Received a {input.ndim}-D input, which is deprecated and will "
                f"result in an error in a future release.", level=3)


@random_function(reference=dropped, errors=BAD_CHANCES,
                 samples=given(((2, 3, 4), 0.5), ((2, 3), 0.5)))
def dropout1d(input: Tensor, p=0.5, training=True, inplace=False):
    """Each channel as 0 with probability `p`, else divided by 1 - p; in training only.

    Shapes: (B, C, L) or (C, L). Raises: RuntimeError for other dims, ValueError.
    """
    check("dropout1d", input, p, training)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: expected 2-D or 3-D input, got {input.ndim} dims")
    return of_channels("dropout1d", input, p, training, inplace, input.ndim == 3)


@random_function(reference=dropped, errors=BAD_CHANCES, samples=given(((2, 3, 2, 2), 0.5)))
def dropout2d(input: Tensor, p=0.5, training=True, inplace=False):
    """Each channel as 0 with probability `p`, else divided by 1 - p; in training only.

    Shapes: (B, C, H, W). Raises: ValueError.
    """
    warn_of_dims("dropout2d", input, 3, 4)
    return of_channels("dropout2d", input, p, training, inplace, input.ndim > 1)


@random_function(reference=dropped, errors=BAD_CHANCES, samples=given(((2, 3, 2, 1, 2), 0.5)))
def dropout3d(input: Tensor, p=0.5, training=True, inplace=False):
    """Each channel as 0 with probability `p`, else divided by 1 - p; in training only.

    Shapes: (B, C, D, H, W) or (C, D, H, W). Raises: ValueError.
    """
    warn_of_dims("dropout3d", input, 4, 5)
    return of_channels("dropout3d", input, p, training, inplace, input.ndim != 4)


ALPHA = 1.7580993408473766                  # scale * alpha of `selu`


def alpha_dropped(x, p=0.5, training=False):
    """The reference of `alpha_dropout`."""
    if not training or p in (0, 1):
        return (x * (p != 1 or not training),) * 2
    a = ((ALPHA ** 2 * p + 1) * (1 - p)) ** -0.5
    values = a * x + a * ALPHA * p, np.full_like(x, -a * ALPHA + a * ALPHA * p)
    return np.minimum(*values) - 0.1, np.maximum(*values) + 0.1      # up to rounding


def with_mean_and_variance(input, mask, p):
    """The elements after `alpha_dropout`, which keeps their mean and variance."""
    if p == 1:
        return input * mask
    a = ((ALPHA ** 2 * p + 1) * (1 - p)) ** -0.5
    return input * (mask * a) + (mask * (a * ALPHA) - (a * ALPHA - a * ALPHA * p))


@random_function(public=True, reference=alpha_dropped, errors=BAD_CHANCES,
                 samples=given(((3, 4), 0.5, True), ((5,), 1.0, True), ((5,), 0.5)), view="maybe")
def alpha_dropout(input: Tensor, p=0.5, training=False, inplace=False):
    """Dropout that keeps the mean and the variance of what `selu` gives; in training only.

    Raises: ValueError for what is not a probability.
    Source: Klambauer et al., "Self-Normalizing Neural Networks", NIPS 2017.
    """
    check("alpha_dropout", input, p, training)
    if not training or p == 0:
        return input
    return finished(input, with_mean_and_variance(input, kept(input, p), p), inplace)


@random_function(public=True, reference=alpha_dropped, errors=BAD_CHANCES,
                 samples=given(((2, 3, 4), 0.5, True), ((2, 3), 0.5)), view="maybe")
def feature_alpha_dropout(input: Tensor, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels; in training only.

    Shapes: (B, C, *). Raises: ValueError for what is not a probability, RuntimeError.
    """
    check("feature_alpha_dropout", input, p, training)
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise RuntimeError("feature_alpha_dropout: expects an input with at least 2 dims, got "
                           f"{input.ndim}")
    mask = kept(input, p, (*input.shape[:2], *(1,) * (input.ndim - 2)))
    return finished(input, with_mean_and_variance(input, mask, p), inplace)


def between_slopes(x, lower=0.125, upper=1 / 3, training=False):
    """The reference of `rrelu`."""
    low, high = (lower, upper) if training else ((lower + upper) / 2,) * 2
    return np.minimum(x, x * high * 1.01), np.where(x > 0, x, x * low * 0.99)


@random_function(public=True, reference=between_slopes,
                 samples=given(((3, 4), 0.2, 0.5, True), ((5,),), ((), 0.2, 0.5, True)),
                 errors=refusals((RuntimeError, (2,), 0.5, 0.2)))
def rrelu(input: Tensor, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    """Each element above 0, the others times a number drawn between two, or (not in training) their
    mean.

    Raises: RuntimeError where the first is above the second.
    Source: Xu et al., "Empirical Evaluation of Rectified Activations", arXiv:1505.00853 (2015).
    """
    if lower > upper:
        raise RuntimeError(f"rrelu: lower must not be above upper, got {lower} and {upper}")
    slope = (lower + upper) / 2
    if training:
        slope = empty_like(input.detach()).uniform_(lower, upper)
    if inplace:                      # leaky_relu would save the input, which is overwritten
        return finished(input, input * where(input.detach() > 0, 1.0, slope), True)
    return leaky_relu(input, slope)


@random_function(reference=lambda x, tau=1, hard=False, eps=1e-10, dim=-1: (x * 0, x * 0 + 1),
                 samples=given(((3, 4),), ((3, 4), 0.5, True), ((4,), 2, False, 1e-10, 0)),
                 errors=refusals((IndexError, (3,), 1, False, 1e-10, 1)))
def gumbel_softmax(logits: Tensor, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples of a distribution over classes, from logits: smooth ones, softer for a larger `tau`.

    hard: as rows of zeros with a one, with the gradient of the smooth ones.
    Shapes: the logits'. Raises: IndexError.
    Source: Jang, Gu and Poole, "Categorical Reparameterization with Gumbel-Softmax", ICLR 2017.
    """
    uniform = rand_like(logits.detach()).clamp(min=1e-20)
    noise = -(-uniform.log()).clamp(min=1e-20).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    places = soft.detach().argmax(dim, keepdim=True)
    ones_there = (soft.detach() * 0).scatter(dim, places, 1.0)
    return ones_there - soft.detach() + soft
