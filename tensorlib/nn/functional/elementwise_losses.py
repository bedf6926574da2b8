"""Element-wise losses between predictions and targets."""

import math

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.warned import warn_of
from tensorlib import full_like, get_default_dtype
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.create.creation import plain_number
from tensorlib._core.tensor.tensor import Tensor
from tensorlib._core.tiles.loops import add_loops
from tensorlib.nn._reduction import legacy_get_string
from tensorlib.nn.functional.checks import check_optional
from tensorlib.ops.arguments import refuse_complex
from tensorlib.ops.declare import composite, elementwise
from tensorlib.ops.samples import PAIRS, pairs, refusals
from tensorlib.ops.value_checks import value_check

add_loops("losses")

nan = float("nan")
ALL = "bool integer floating"
EDGES = (0.0, 1.0, -1.0, 30.0, nan)


# ---- what all losses share -----------------------------------------------------------------------

def reduced(name, losses, reduction, size_average=None, reduce=None):
    """The mean of the losses, their sum or these themselves. Raises: ValueError."""
    if size_average is not None or reduce is not None:
        reduction = older_reduction(size_average, reduce)
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    check_reduction(name, reduction)
    return losses


def check_reduction(name, reduction):
    """Raises: ValueError."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: {reduction!r} is not a valid value for reduction; it takes "
                         "'mean', 'sum' or 'none'")


def older_reduction(size_average, reduce):
    """The reduction in the words of old programs."""
    return legacy_get_string(size_average, reduce, level=4)


def warn_of_broadcast(input, target):
    """Warns of an input and a target of different shapes, which is most often a fault."""
    if input.shape != target.shape:
        warn_of(f"Using a target size ({target.shape}) that is different to the input "
                f"size ({input.shape}). This will likely lead to incorrect results "
                "due to broadcasting. Please ensure they have the same size.", level=3)


def check_same(name, input, target):
    """Raises ValueError for an input and a target of different shapes."""
    if input.shape != target.shape:
        raise ValueError(f"{name}: Target size ({target.shape}) must be the same as input size "
                         f"({input.shape})")


def require_floating(name, input):
    """Raises RuntimeError for an input that is not of a floating dtype."""
    if not input.is_floating_point():
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {input.dtype}")


def in_floats(*tensors):
    """The tensors, of which those of integers have the default floating dtype."""
    return [x if has_gradients(x.dtype) else x.to(get_default_dtype()) for x in tensors]


def in_numpy(losses):
    """The reference of a loss: a function of arrays, reduced."""
    def reference(*args, reduction="mean", **options):
        found = losses(*args, **options)
        if reduction == "none":
            return found
        return np.mean(found) if reduction == "mean" else np.sum(found)
    return reference


def targets(low=-2.0, high=2.0, target_low=-2.0, target_high=2.0, more=()):
    """An input and a target of one shape, with each reduction, and further keywords."""
    def generate(rng):
        for shape, reduction in (((3,), "mean"), ((2, 3), "none")):
            yield (rng.uniform(low, high, shape), rng.uniform(target_low, target_high, shape)), {
                "reduction": reduction}
        for keywords in more:
            yield (rng.uniform(low, high, (3,)), rng.uniform(target_low, target_high, (3,))), {
                "reduction": "sum", **keywords}
    return generate


def loss(public=False, takes="floating", **declared):
    """Declares a loss."""
    return composite(public=public, method=False, takes=takes, tolerance="reduction", **declared)


def part(**declared):
    """Declares a loss of one element, a loop."""
    return elementwise(public=False, method=False, inplace=False, takes="floating",
                       signed_zeros=False, factors=("beta", "delta"), **declared)


BAD_REDUCTION = refusals((ValueError, (2,), np.ones(2), None, None, "most"))


# ---- of differences ------------------------------------------------------------------------------

@part(reference=lambda x, t: (x - t) ** 2, samples=pairs(), edges=EDGES)
def squared_error(input, target):
    """(input - target)**2 for each element of both."""


@squared_error.deriv("input")
def squared_error_deriv_input(input, target):
    """d/dx (x - t)**2 = 2 (x - t)"""
    return (input - target) * 2


@squared_error.deriv("target")
def squared_error_deriv_target(input, target):
    """d/dt (x - t)**2 = 2 (t - x)"""
    return (target - input) * 2


@loss(tensors=("input", "target"), reference=in_numpy(lambda x, t: (x - t) ** 2),
      samples=targets(), errors=BAD_REDUCTION)
def mse_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction="mean",
             weight=None):
    """The squared differences (input - target)**2: their mean, sum or, with "none", each.

    weight: a factor for each. Shapes: (*), (*) -> (), or (*) with "none".
    Raises: ValueError for another `reduction`, RuntimeError.
    """
    warn_of_broadcast(input, target)
    return weighted_mean("mse_loss", squared_error(input, target), weight, reduction, size_average,
                         reduce)


def weighted_mean(name, losses, weight, reduction, size_average, reduce):
    """The losses times their weights, reduced; the mean is that with these weights."""
    if weight is None:
        return reduced(name, losses, reduction, size_average, reduce)
    check_optional(name, weight=weight)
    if weight.shape != losses.shape:
        raise ValueError(f"{name}: inputs and weight must have the same size, got "
                         f"{tuple(losses.shape)} and {tuple(weight.shape)}")
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(name, losses, reduction)


@loss(tensors=("input", "target"), reference=in_numpy(lambda x, t: np.abs(x - t)),
      samples=targets(target_low=3, target_high=4), errors=BAD_REDUCTION)
def l1_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction="mean",
            weight=None):
    """The absolute differences |input - target|: their mean, sum or, with "none", each.

    weight: a factor for each. Shapes: (*), (*) -> (), or (*) with "none". Gradient: 0 where equal.
    Raises: ValueError for another `reduction`, RuntimeError.
    """
    warn_of_broadcast(input, target)
    return weighted_mean("l1_loss", (input - target).abs(), weight, reduction, size_average, reduce)


def triples_of(number):
    """Two real tensors, whose differences are away from 0 and from a number, and it."""
    def generate(rng):
        for shape, other in PAIRS:
            x = rng.uniform(-1, 1, shape)
            far = rng.choice((0.3, 2.5), other) + rng.uniform(0, 0.1, other)
            full = np.broadcast_shapes(shape, other)
            if shape == other:
                yield (x, x - far * rng.choice((-1, 1), shape), np.full((), number)), {}
            else:
                yield (x, np.full(other, 9.0), np.full(full, number)), {}
    return generate


def smooth(x, t, beta):
    """The reference of `smooth_l1`."""
    d = np.abs(x - t)
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)


@part(reference=smooth, samples=triples_of(1.0), edges=(1.0, 2.5, -3.0))
def smooth_l1(input, target, beta):
    """d**2 / (2 beta) for d = |input - target| below beta, else d - beta / 2."""


@smooth_l1.deriv("input")
def smooth_l1_deriv_input(input, target, beta):
    """The loss is d^2 / (2 beta) within beta, and |d| - beta / 2 beyond; its slopes meet."""
    d = input - target
    return d.sign().where(d.abs() >= beta, d / beta)


@smooth_l1.deriv("target")
def smooth_l1_deriv_target(input, target, beta):
    """(target - input) / beta, cut off at -1 and 1."""
    d = target - input
    return d.sign().where(d.abs() >= beta, d / beta)


@smooth_l1.deriv("beta")
def smooth_l1_deriv_beta(input, target, beta):
    """Of d^2 / (2 beta) within beta, and |d| - beta / 2 beyond."""
    ratio = (input - target) / beta
    return (ratio * ratio * -0.5).where((input - target).abs() < beta, -0.5)


@loss(tensors=("input", "target"),
      reference=in_numpy(lambda x, t, beta=1.0: smooth(x, t, beta)),
      samples=targets(more=({"beta": 0.5},)),
      errors=refusals((RuntimeError, (2,), np.ones(2), None, None, "mean", -1.0)))
def smooth_l1_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction="mean",
                   beta=1.0):
    """d**2 / (2 beta) for d = |input - target| below beta, else d - beta / 2: mean, sum or each.

    Shapes: (*), (*) -> (), or (*) with "none".
    Raises: ValueError for another `reduction`, RuntimeError for a negative beta.
    Source: Girshick, "Fast R-CNN", ICCV 2015.
    """
    warn_of_broadcast(input, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    losses = (input - target).abs() if beta == 0 else smooth_l1(input, target, beta)
    return reduced("smooth_l1_loss", losses, reduction, size_average, reduce)


def bounded(x, t, delta):
    """The reference of `huber`."""
    d = np.abs(x - t)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


@part(reference=bounded, samples=triples_of(1.2), edges=(1.0, 2.5, -3.0))
def huber(input, target, delta):
    """d**2 / 2 for d = |input - target| up to delta, else delta * (d - delta / 2)."""


@huber.deriv("input")
def huber_deriv_input(input, target, delta):
    """The loss is d^2 / 2 within delta, and delta (|d| - delta / 2) beyond; its slopes meet."""
    d = input - target
    return (d.sign() * delta).where(d.abs() >= delta, d)


@huber.deriv("target")
def huber_deriv_target(input, target, delta):
    """target - input, cut off at -delta and delta."""
    d = target - input
    return (d.sign() * delta).where(d.abs() >= delta, d)


@huber.deriv("delta")
def huber_deriv_delta(input, target, delta):
    """Of d^2 / 2 within delta, and delta (|d| - delta / 2) beyond."""
    d = (input - target).abs()
    return (d - delta).where(d > delta, 0)


@loss(tensors=("input", "target"), reference=in_numpy(lambda x, t, delta=1.0: bounded(x, t, delta)),
      samples=targets(more=({"delta": 0.5},)),
      errors=refusals((RuntimeError, (2,), np.ones(2), "mean", 0.0)))
def huber_loss(input: Tensor, target: Tensor, reduction="mean", delta=1.0, weight=None):
    """d**2 / 2 for d = |input - target| up to delta, else delta * (d - delta / 2): mean, sum, each.

    weight: a factor for each. Shapes: (*), (*) -> (), or (*) with "none".
    Raises: ValueError for another `reduction`, RuntimeError for a delta that is not positive.
    Source: Huber, "Robust Estimation of a Location Parameter", Annals of Statistics 53, 1964.
    """
    warn_of_broadcast(input, target)
    if not delta > 0:
        raise RuntimeError(f"huber_loss: delta must be positive, got {delta}")
    return weighted_mean("huber_loss", huber(input, target, delta), weight, reduction, None, None)


# ---- of probabilities ----------------------------------------------------------------------------

def cross_reference(x, t):
    """The reference of `binary_cross`."""
    return (t - 1) * np.maximum(np.log1p(-x), -100) - t * np.maximum(np.log(x), -100)


@part(reference=cross_reference, samples=pairs(0.2, 0.8), edges=(0.0, 0.25, 1.0))
def binary_cross(input, target):
    """-(target * log(input) + (1 - target) * log(1 - input)), the logarithms at least -100."""


@binary_cross.deriv("input")
def binary_cross_deriv_input(input, target):
    """(x - t) / (x (1 - x)), the divisor held above 0 as in PyTorch."""
    return (input - target) / ((1 - input) * input).maximum(1e-12)


@binary_cross.deriv("target")
def binary_cross_deriv_target(input):
    """log(1 - x) - log(x), each held at -100 as in the loss."""
    return (-input).log1p().maximum(-100) - input.log().maximum(-100)


def weight_of(name, weight, input):
    """A weight that broadcasts to the input. Raises: RuntimeError, TypeError."""
    check_optional(name, weight=weight)
    broadcast_shapes(name, weight.shape, input.shape)
    return weight


@loss(tensors=("input", "target"), reference=in_numpy(cross_reference),
      samples=targets(0.2, 0.8, 0.1, 0.9),
      errors=refusals((ValueError, (2,), np.ones(3)), (RuntimeError, (2,), np.ones(2),
                                                       np.ones(3))), checks_values=True)
def binary_cross_entropy(input: Tensor, target: Tensor, weight=None, size_average=None, reduce=None,
                         reduction="mean"):
    """The cross entropy of probabilities: -(t log(p) + (1 - t) log(1 - p)), mean, sum or each.

    The logarithms are at least -100. weight: a factor for each.
    Shapes: (*), (*) -> (), or (*) with "none".
    Raises: ValueError for other shapes or another `reduction`, RuntimeError for a probability or a
    target that is not between 0 and 1.
    """
    check_same("binary_cross_entropy", input, target)
    are_probabilities(input, "binary_cross_entropy", "input")
    are_probabilities(target, "binary_cross_entropy", "target")
    losses = binary_cross(input, target)
    if weight is not None:
        losses = losses * weight_of("binary_cross_entropy", weight, input)
    return reduced("binary_cross_entropy", losses, reduction, size_average, reduce)


@value_check
def are_probabilities(tensor, name, argument):
    """Raises RuntimeError for an element that is not between 0 and 1."""
    if tensor.numel() and not (tensor.amin() >= 0 and tensor.amax() <= 1):
        raise RuntimeError(f"{name}: all elements of {argument} should be between 0 and 1")


def cross_of_logits_reference(x, t):
    """The reference of `cross_of_logits`."""
    return np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))


@part(reference=cross_of_logits_reference, samples=pairs(), edges=EDGES)
def cross_of_logits(input, target):
    """max(x, 0) - x * target + log(1 + exp(-|x|)): `binary_cross` of the sigmoid of x."""


@cross_of_logits.deriv("input")
def cross_of_logits_deriv_input(input, target):
    """sigmoid(x) - t, as the loss is softplus(x) - t x."""
    return input.sigmoid() - target


@cross_of_logits.deriv("target")
def cross_of_logits_deriv_target(input):
    """-x"""
    return -input


@loss(tensors=("input", "target"), reference=in_numpy(cross_of_logits_reference),
      samples=targets(), errors=refusals((ValueError, (2,), np.ones(3))))
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight=None, size_average=None,
                                     reduce=None, reduction="mean", pos_weight=None):
    """`binary_cross_entropy` of the sigmoid of the input, without overflow: mean, sum or each.

    weight: a factor for each. pos_weight: one for the term of the targets that are 1.
    Shapes: (*), (*) -> (), or (*) with "none"; the weights broadcast.
    Raises: ValueError for other shapes or another `reduction`.
    """
    name = "binary_cross_entropy_with_logits"
    check_same(name, input, target)
    if pos_weight is None:
        losses = cross_of_logits(input, target)
    else:
        factor = (weight_of(name, pos_weight, input) - 1) * target + 1
        losses = (1 - target) * input + factor * cross_of_logits(input, target * 0 + 1)
    if weight is not None:
        losses = losses * weight_of(name, weight, input)
    return reduced(name, losses, reduction, size_average, reduce)


def divergence(x, t, log_target=False):
    """The reference of `kl_div`."""
    return np.exp(t) * (t - x) if log_target else np.where(t > 0, t * np.log(t), 0) - t * x


@loss(tensors=("input", "target"), reference=in_numpy(divergence),
      samples=targets(-3, -1, 0.1, 0.9, more=({"log_target": True},)), errors=BAD_REDUCTION)
def kl_div(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction="mean",
           log_target=False):
    """The divergence target * (log(target) - input) of log-probabilities: mean, sum or each.

    reduction: "batchmean" for the sum over the size of dim 0. log_target: the target is given as
    its logarithm. Shapes: (*), (*) -> (), or (*) with "none".
    Raises: ValueError for another `reduction`.
    Source: Kullback and Leibler, "On Information and Sufficiency", Annals of Statistics 22, 1951.
    """
    require_floating("kl_div", input)
    if log_target:
        losses = target.exp() * (target - input)
    else:
        known = target * target.where(target != 0, 1).log()      # NaN where it is negative
        losses = known - target * input
    if reduction == "batchmean":
        return losses.sum() / (input.shape[0] if input.ndim else 1)
    return reduced("kl_div", losses, reduction, size_average, reduce)


def poisson(x, t, log_input=True, full=False, eps=1e-8):
    """The reference of `poisson_nll_loss`."""
    losses = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    return losses + np.where(t > 1, t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t), 0) * full


@loss(takes=ALL, tensors=("input", "target"), reference=in_numpy(poisson),
      samples=targets(0.2, 2, 1.5, 3, more=({"log_input": False}, {"full": True})))
def poisson_nll_loss(input: Tensor, target: Tensor, log_input=True, full=False, size_average=None,
                     eps=1e-8, reduce=None, reduction="mean"):
    """The negative log-likelihood of counts of a Poisson distribution: mean, sum or each.

    log_input: the input is the logarithm of the rate. full: with Stirling's approximation of
    log(target!), for targets above 1. Shapes: (*), (*) -> (), or (*) with "none".
    Raises: ValueError for another `reduction`.
    """
    refuse_complex("poisson_nll_loss", input, target)
    input, target = in_floats(input, target)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        safe = target.where(target > 1, 2.0)
        more = safe * safe.log() - safe + 0.5 * (2 * math.pi * safe).log()
        losses = losses + more.where(target > 1, 0.0)
    return reduced("poisson_nll_loss", losses, reduction, size_average, reduce)


def gaussian(x, t, var, full=False, eps=1e-6):
    """The reference of `gaussian_nll_loss`."""
    var = np.maximum(var, eps)
    return 0.5 * (np.log(var) + (x - t) ** 2 / var) + 0.5 * np.log(2 * np.pi) * full


@value_check
def variances_are_not_negative(var):
    """Raises ValueError for a negative variance."""
    if (var < 0).any():
        raise ValueError("gaussian_nll_loss: var has negative entry/entries")


@loss(tensors=("input", "target", "var"), reference=in_numpy(gaussian),
      samples=lambda rng: (((*rng.uniform(-2, 2, (2, 2, 3)), rng.uniform(0.5, 2, shape)),
                            {"full": shape == (2, 1)}) for shape in ((2, 3), (2, 1))),
      errors=refusals((ValueError, (2,), np.ones(2), -np.ones(2)),
                      (ValueError, (2,), np.ones(2), np.ones(3))), checks_values=True)
def gaussian_nll_loss(input: Tensor, target: Tensor, var, full=False, eps=1e-6,
                      reduction="mean"):
    """The negative log-likelihood of normal distributions: mean, sum or each.

    var: the variance of each, or one number. full: with the constant term. eps: the least variance.
    Gradient: as if no variance were below.
    Shapes: (*, N), (*, N), (*, N) or one with a dim of size 1 or (*) -> (), or the input's with
    "none". Raises: ValueError for another shape or `reduction`, or a negative variance.
    """
    if not isinstance(var, Tensor):
        var = full_like(input.detach(), plain_number("gaussian_nll_loss", "var", var))
    variances_are_not_negative(var)
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim or [
                own for own, size in zip(var.shape, input.shape) if own != size] != [1]:
            raise ValueError(f"gaussian_nll_loss: var is of incorrect size {tuple(var.shape)} for "
                             f"an input of {tuple(input.shape)}")
    raised = var.detach().clamp(min=eps) - var.detach()
    var = var + raised.nan_to_num(0.0)              # NaN where a variance is infinite
    losses = 0.5 * (var.log() + squared_error(input, target) / var)
    return reduced("gaussian_nll_loss", losses + 0.5 * math.log(2 * math.pi) if full else losses,
                   reduction)
