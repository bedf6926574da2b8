"""Losses of classes: cross entropy, fused, and negative log-likelihood."""

from operator import index as as_int

import numpy as np

from tensorlib import arange, ones_like, where, zeros_like
from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.interpreters.foreign import needs_formula
from tensorlib._core.layers import nll
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import stands_for
from tensorlib.nn.functional.elementwise_losses import check_reduction, loss, older_reduction
from tensorlib.nn.functional.checks import check_optional
from tensorlib.ops.declare import op
from tensorlib.ops.references import adjoint, gradients
from tensorlib.ops.reduce.softmax import log_softmax, softmax, softmax_backward
from tensorlib.ops.samples import calls, real, with_gradients
from tensorlib.ops.value_checks import value_check

IGNORED = -100
INT64 = BY_NAME["int64"]

# ---- one row of logits after the other -----------------------------------------------------------

def classes_of(x):
    """For references: 0, 1, ... along dim 1 of an array."""
    return np.arange(x.shape[1]).reshape(-1, *(1,) * (x.ndim - 2))


def nll_reference(x, target, ignored):
    """The reference of `nll_of_logits`."""
    top = x.max(1, keepdims=True, initial=0)
    logs = x - top - np.log(np.exp(x - top).sum(1, keepdims=True))
    return np.where(target == ignored, 0, -(logs * (classes_of(x) == target[:, None])).sum(1))


def rows_and_targets(rng):
    """Samples: rows of logits and a class for each, some of them ignored."""
    for shape, target in (((3, 4), (1, 3, 0)), ((2, 3), (-100, 2)), ((0, 3), ()),
                          ((2, 3, 2), ((2, 0), (-100, 1))),
                          ((1, 34, 17), np.arange(17).reshape(1, 17) * 2)):
        yield (rng.uniform(-2, 2, shape), np.array(target, np.int64), IGNORED), {}


def picked(x, target, ignored):
    """x[target] of each row x along dim 1, 0 where it is ignored."""
    kept = target != ignored
    return where(kept, x.gather(1, where(kept, target, 0).unsqueeze(1)).squeeze(1), 0)


def nll_formula(input, target, ignored):
    """`nll_of_logits` by operations of their own."""
    return -picked(log_softmax(input, 1), target, ignored)


@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=nll_reference, samples=rows_and_targets, kernel=nll.nll_of_logits,
    checks_values=True)
def nll_of_logits(input: Tensor, target, ignored):
    """log(sum(exp(x))) - x[target] of each row x along dim 1, 0 where the target is `ignored`.

    Raises: IndexError for a target that is not a class.
    """


@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=gradients(nll_reference), samples=with_gradients(rows_and_targets, nll_reference),
    kernel=nll.nll_of_logits_backward, checks_values=True)
def nll_of_logits_backward(grad: Tensor, input: Tensor, target, ignored):
    """grad * (softmax(x) - 1 at the target) of each row x: the gradient of `nll_of_logits`."""


@nll_of_logits.vjp("input")
def nll_vjp(g, input, target, ignored):
    """g * (softmax(x) - 1 at the target)"""
    return nll_of_logits_backward(g, input, target, ignored)


@nll_of_logits.jvp
def nll_jvp(d_input, input, target, ignored):
    """The sum of dx * (softmax(x) - 1 at the target) of each row."""
    return along_rows(d_input, input, target, ignored)


def along_rows(k, input, target, ignored):
    """The sum of k * (softmax(x) - 1 at the target) of each row, 0 where it is ignored."""
    kept = target != ignored
    return where(kept, (k * softmax(input, 1)).sum(1), 0) - picked(k, target, ignored)


@nll_of_logits_backward.vjp("grad")
def nll_backward_vjp_grad(g, input, target, ignored):
    """The sum of g * (softmax(x) - 1 at the target) of each row."""
    return along_rows(g, input, target, ignored)


@nll_of_logits_backward.vjp("input")
def nll_backward_vjp_input(g, grad, input, target, ignored):
    """By softmax(x) alone, as the 1 at the target is constant; its derivative is symmetric."""
    scale = where(target != ignored, grad, 0).unsqueeze(1)
    return softmax_backward(g * scale, softmax(input, 1), 1)


@nll_of_logits_backward.jvp
def nll_backward_jvp(d_grad, d_input, grad, input, target, ignored):
    """By grad, which it is linear in, and by softmax(x), as the 1 at the target is constant."""
    scale = where(target != ignored, grad, 0).unsqueeze(1)
    return (nll_of_logits_backward(d_grad, input, target, ignored)
            + softmax_backward(d_input * scale, softmax(input, 1), 1))


def is_target(classes, target):
    """Whether each class, along dim 1, is that of the row."""
    return arange(classes).reshape((-1, *(1,) * (target.ndim - 1))) == target.unsqueeze(1)


stands_for(nll_formula)(nll_of_logits)
stands_for(lambda grad, input, target, ignored: where(target != ignored, grad, 0).unsqueeze(1) * (
    softmax(input, 1) - is_target(input.shape[1], target).to(input.dtype)))(nll_of_logits_backward)


# ---- all rows of logarithms at once --------------------------------------------------------------

def logs_of_rows(x, weight, target, ignored, reduction):
    """The reference of `nll_of_logs`."""
    own = classes_of(weight[None]).reshape(-1, *(1,) * (target.ndim - 1)) == target[:, None]
    counts = (own * weight.reshape(-1, *(1,) * (target.ndim - 1))).sum(1) * (target != ignored)
    losses = counts * (x if x.ndim == target.ndim else -(x * own).sum(1))
    if reduction == "none":
        return losses
    return losses.sum() / (counts.sum() if reduction == "mean" else 1)


def sums_and_means(rng):
    """Samples of `nll_of_logs`."""
    for (x, target, ignored), _ in rows_and_targets(rng):
        weight = rng.uniform(0.5, 2, x.shape[1])
        for reduction in ("sum", "mean", "none")[:3 if len(x) else 1]:
            yield (x, weight, target, ignored, reduction), {}
            yield (x.sum(1), weight, target, ignored, reduction), {}


def logs_back(g, weight, target, ignored, reduction, by_class):
    """The reference of `nll_of_logs_backward`."""
    shape = (len(target), len(weight), *target.shape[1:]) if by_class else target.shape
    return adjoint(lambda x: logs_of_rows(x, weight, target, ignored, reduction), shape, g)


def sums_and_means_back(rng):
    """Samples of `nll_of_logs_backward`."""
    for (x, weight, target, *options), _ in sums_and_means(rng):
        g = np.asarray(logs_of_rows(x, weight, target, *options))
        yield (rng.uniform(-1, 1, g.shape), weight, target, *options, x.ndim > target.ndim), {}


def formula_of_logs(input, weight, target, ignored, reduction):
    """`nll_of_logs` by operations of their own."""
    counts = weights_of_rows(target, weight, ignored)
    losses = (input if input.ndim == target.ndim else -picked(input, target, ignored)) * counts
    if reduction == "none":
        return losses
    return losses.sum() / counts.sum() if reduction == "mean" else losses.sum()


@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=logs_of_rows, samples=sums_and_means, kernel=nll.nll_of_logs, checks_values=True)
def nll_of_logs(input: Tensor, weight: Tensor, target, ignored, reduction):
    """-weight[c] * x[c] of each row x along dim 1, of class c: each, or their sum or weighted mean.

    An input of the target's shape has a loss for each row, and gives that times weight[c]. Rows
    that are `ignored` count 0; the mean of none is NaN.
    Raises: IndexError for a target that is not a class.
    """


@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=logs_back, samples=sums_and_means_back, kernel=nll.nll_of_logs_backward,
    checks_values=True)
def nll_of_logs_backward(grad: Tensor, weight: Tensor, target, ignored, reduction, by_class):
    """The gradient of `nll_of_logs` for an input with a dim of classes or without: its adjoint."""


@nll_of_logs.vjp("input")
def nll_of_logs_vjp_input(g, input_shape, weight, target, ignored, reduction):
    """The adjoint: -weight[c] g at class c of each row."""
    return nll_of_logs_backward(g, weight, target, ignored, reduction,
                                len(input_shape) > target.ndim)


@nll_of_logs.vjp("weight")
def nll_of_logs_vjp_weight(g, input, weight, target, ignored, reduction):
    """The loss of each row, which the weight of its class multiplies; of means, less the mean."""
    losses = nll_of_logs(input, ones_like(weight), target, ignored, "none")
    if reduction == "mean":
        losses = losses - nll_of_logs(input, weight, target, ignored, "mean")
        g = g / weights_of_rows(target, weight, ignored).sum()
    kept = target != ignored
    return zeros_like(weight).index_add(0, where(kept, target, 0).reshape(-1),
                                        where(kept, g * losses, 0).reshape(-1))


@nll_of_logs.jvp
def nll_of_logs_jvp(d_input, d_weight, input, weight, target, ignored, reduction):
    """Of a mean, sum(w l) / sum(w), by the weights: (sum(dw l) - mean sum(dw)) / sum(w)."""
    by_input = nll_of_logs(d_input, weight, target, ignored, reduction)
    if reduction != "mean":
        return by_input + nll_of_logs(input, d_weight, target, ignored, reduction)
    mean = nll_of_logs(input, weight, target, ignored, "mean")
    change = (nll_of_logs(input, d_weight, target, ignored, "sum")
              - mean * weights_of_rows(target, d_weight, ignored).sum())
    return by_input + change / weights_of_rows(target, weight, ignored).sum()


@nll_of_logs_backward.vjp("grad")
def nll_of_logs_backward_vjp_grad(g, weight, target, ignored, reduction):
    """The loss of g, as the map is the adjoint of `nll_of_logs`."""
    return nll_of_logs(g, weight, target, ignored, reduction)


@nll_of_logs_backward.vjp("weight")
def nll_of_logs_backward_vjp_weight(g, grad, weight, target, ignored, reduction):
    """That of `nll_of_logs` with g as its input."""
    return nll_of_logs_vjp_weight(grad, g, weight, target, ignored, reduction)


@nll_of_logs_backward.jvp
def nll_of_logs_backward_jvp(d_grad, d_weight, grad, weight, target, ignored, reduction, by_class):
    """By the weights as in `nll_of_logs_jvp`."""
    options = target, ignored
    by_grad = nll_of_logs_backward(d_grad, weight, *options, reduction, by_class)
    if reduction != "mean":
        return by_grad + nll_of_logs_backward(grad, d_weight, *options, reduction, by_class)
    change = (nll_of_logs_backward(grad, d_weight, *options, "sum", by_class)
              - nll_of_logs_backward(grad, weight, *options, "mean", by_class)
              * weights_of_rows(target, d_weight, ignored).sum())
    return by_grad + change / weights_of_rows(target, weight, ignored).sum()


def formula_of_logs_back(grad, weight, target, ignored, reduction, by_class):
    """`nll_of_logs_backward` by operations of their own."""
    counts = weights_of_rows(target, weight, ignored)
    each = grad * (counts / counts.sum() if reduction == "mean" else counts)
    if not by_class:
        return each
    return where(is_target(weight.shape[0], target), -each.unsqueeze(1), 0)


stands_for(formula_of_logs)(nll_of_logs)
stands_for(formula_of_logs_back)(nll_of_logs_backward)


# ---- losses of classes ---------------------------------------------------------------------------

def misfit(input, target):
    """The kind of error that PyTorch raises for a target of another shape."""
    same_batch = input.ndim > 1 and target.ndim and target.shape[0] == input.shape[0]
    return RuntimeError if same_batch else ValueError


def with_batch(name, input, target):
    """The logits as (B, C, *), and their targets as (B, *).

    Raises: ValueError for another number of examples, RuntimeError for other shapes and dtypes.
    """
    if nll.fits(input, target):
        return input, target
    if input.ndim == 0:
        raise ValueError(f"{name}: expects an input with at least 1 dim")
    shape = (*input.shape[:1], *input.shape[2:]) if input.ndim > 1 else ()
    if target.shape == shape and shape and target.dtype is INT64:
        return input, target
    if input.ndim == 1 and target.shape == (1,):
        target = target.reshape(())
    if tuple(target.shape) != tuple(shape):
        one_hot = ("; an integer target is the number of a class: target.argmax(1) of what is 1 "
                   "at its class and 0 elsewhere" if target.shape == input.shape else "")
        first = [x.shape[0] if x.ndim else 1 for x in (input, target)]
        words = "" if first[0] == first[1] else (
            f"Expected input batch_size ({first[0]}) to match target batch_size ({first[1]}): ")
        raise misfit(input, target)(
            f"{name}: {words}expected a target of shape {tuple(shape)} for an input of shape "
            f"{tuple(input.shape)}, got {tuple(target.shape)}{one_hot}")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"{name}: expects a target of int64, the number of a class "
                           f"each, got {target.dtype}; target.long() may be what is meant")
    if input.ndim == 1:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    return input, target.long()


def class_weights(name, weight, input):
    """The weight, which has one element for each class. Raises: RuntimeError, TypeError."""
    check_optional(name, weight=weight)
    classes = input.shape[1 if input.ndim > 1 else 0]
    if tuple(weight.shape) != (classes,):
        raise RuntimeError(f"{name}: weight should be defined for all {classes} classes or none, "
                           f"got shape {tuple(weight.shape)}")
    return weight


def weigh(input, classes, weight, target, ignored, reduction):
    """`nll_of_logs` with weights that may be None."""
    weight = input.new_ones(classes) if weight is None else weight
    rule = formula_of_logs if needs_formula((input, weight, target)) else nll_of_logs
    return rule(input, weight, target, ignored, reduction)


def weights_of_rows(target, weight, ignored):
    """The weight of the class of each row, 0 where that is ignored."""
    kept = target != ignored
    return where(kept, weight[where(kept, target, 0)], 0)


def logs_reference(x, target, weight=None, size_average=None, ignore_index=IGNORED, reduce=None,
                   reduction="mean", label_smoothing=0.0, logits=True):
    """The reference of `cross_entropy` and `nll_loss`, for classes and for probabilities."""
    x, target = (x[None], target[None]) if x.ndim == 1 else (x, target)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True)) if logits else x
    count = x.shape[1]
    weight = np.ones(count) if weight is None else weight
    wide = weight.reshape(-1, *(1,) * (x.ndim - 2))
    if target.dtype.kind == "f":
        wanted, kept = target, np.ones((len(x), *x.shape[2:]))
    else:
        kept = (target != ignore_index).astype(float)
        wanted = np.moveaxis(np.eye(count)[np.where(kept, target, 0).astype(int)], -1, 1)
    each = (wanted * wide).sum(1) * kept
    wanted = wanted * (1 - label_smoothing) + label_smoothing / count
    losses = -(wanted * wide * logs).sum(1) * kept
    if reduction == "mean":
        return losses.sum() / (each.sum() if target.dtype.kind != "f" else kept.size)
    return losses.sum() if reduction == "sum" else losses


CLASSES = (
    (real(3, 4, low=-2, high=-1), np.array([1, 3, 0])),
    (real(2, 3, 2, low=-2, high=-1), np.array([[1, 2], [-100, 0]]), {"reduction": "none"}),
    (real(2, 3, low=-2, high=-1), np.array([1, 1]), {"reduction": "sum", "ignore_index": 1}))
SMOOTHED = ((real(2, 3), np.array([1, 2]), {"label_smoothing": 0.2}),
            (real(2, 3), real(2, 3, low=0, high=1), {"label_smoothing": 0.2}))


def bad_targets():
    """Error samples of `cross_entropy` and `nll_loss`."""
    x = np.ones((2, 3))
    yield (x, np.array([0, 3])), {}, IndexError
    yield (x, np.array([0, -1])), {}, IndexError
    yield (x, np.array([0])), {}, ValueError
    yield (x, np.array([0, 1], np.int32)), {}, RuntimeError
    yield (x, np.array([0, 1]), np.ones(2)), {}, RuntimeError
    yield (x, np.array([0, 1])), {"reduction": "most"}, ValueError


@loss(tensors=("input", "target"), samples=calls(*CLASSES, *SMOOTHED), errors=bad_targets,
      reference=logs_reference, checks_values=True, rounds_once=False)
def cross_entropy(input: Tensor, target: Tensor, weight=None, size_average=None,
                  ignore_index=IGNORED, reduce=None, reduction="mean", label_smoothing=0.0):
    """The cross entropy of the softmax of logits with classes or probabilities: mean, sum or each.

    weight: a factor for each class; the mean is that with these. ignore_index: a class that does
    not count. label_smoothing: the part of each target that is spread over all classes.
    Shapes: (B, C, *), (B, *) or (B, C, *) -> (), or (B, *) with "none"; without B, too.
    Raises: ValueError for another number of examples or another `reduction`, IndexError for a
    target that is not a class, RuntimeError for other shapes.
    Source: Szegedy et al., "Rethinking the Inception Architecture", arXiv:1512.00567 (2015), for
    the smoothing.

    >>> logits = tensorlib.tensor([[2., 0., 0.], [0., 0., 0.]])
    >>> tensorlib.nn.functional.cross_entropy(logits, tensorlib.tensor([0, 2]))
    tensor(0.6692)
    """
    if size_average is not None or reduce is not None:
        reduction = older_reduction(size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError("cross_entropy: label_smoothing must be between 0 and 1, got "
                           f"{label_smoothing}")
    if weight is not None:
        weight = class_weights("cross_entropy", weight, input)
    if target.is_floating_point():
        if as_int(ignore_index) >= 0:
            raise RuntimeError("cross_entropy: ignore_index is for targets that are classes, and "
                               "not for probabilities")
        return of_probabilities(input, target, weight, reduction, label_smoothing)
    check_reduction("cross_entropy", reduction)
    rows, places = with_batch("cross_entropy", input, target)
    shape = target.shape if input.ndim > 1 else ()
    classes, ignored = rows.shape[1], as_int(ignore_index)
    if label_smoothing:
        return smoothed(rows, places, weight, ignored, reduction, label_smoothing).reshape(
            shape if reduction == "none" else ())
    rule = nll_formula if needs_formula((rows, places)) else nll_of_logits
    losses = rule(rows, places, ignored)
    if weight is not None or reduction == "mean":
        losses = weigh(losses, classes, weight, places, ignored, reduction)
    return losses.sum() if reduction == "sum" else losses.reshape(
        shape if reduction == "none" else ())


def smoothed(rows, places, weight, ignored, reduction, smoothing):
    """`cross_entropy` with a part of each target spread over all classes."""
    classes, logs = rows.shape[1], log_softmax(rows, 1)
    own = weigh(logs, classes, weight, places, ignored, "none")
    if weight is not None:
        logs = logs * weight.reshape((-1, *(1,) * (rows.ndim - 2)))
    spread = where(places != ignored, logs.sum(1), 0)
    losses = own * (1 - smoothing) - spread * (smoothing / max(1, classes))
    if reduction == "none":
        return losses
    counts = rows.new_ones(places.shape)
    return losses.sum() if reduction == "sum" else losses.sum() / weigh(
        counts, classes, weight, places, ignored, "sum")


def of_probabilities(input, target, weight, reduction, label_smoothing):
    """`cross_entropy` with a probability for each class."""
    if input.shape != target.shape:
        raise misfit(input, target)(
            f"cross_entropy: probabilities of shape {tuple(target.shape)} for an input of shape "
            f"{tuple(input.shape)}; a floating target is the probability of each class, numbers of "
            "classes are integers: target.long()")
    dim = 1 if input.ndim > 1 else 0
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(1, input.shape[dim])
    products = log_softmax(input, dim) * target
    if weight is not None:
        products = products * weight.reshape((-1, *(1,) * (input.ndim - 1 - dim)))
    losses = -products.sum(dim)
    check_reduction("cross_entropy", reduction)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


@loss(tensors=("input", "target"), samples=calls(*CLASSES), errors=bad_targets,
      reference=lambda *args, **options: logs_reference(*args, **options, logits=False),
      checks_values=True, rounds_once=False)
def nll_loss(input: Tensor, target: Tensor, weight=None, size_average=None, ignore_index=IGNORED,
             reduce=None, reduction="mean"):
    """The negative log-probability of the classes that are wanted: mean, sum or each.

    The input holds logarithms of probabilities. weight: a factor for each class; the mean is that
    with these. ignore_index: a class that does not count.
    Shapes: (B, C, *), (B, *) -> (), or (B, *) with "none"; without B, too.
    Raises: ValueError for another number of examples or another `reduction`, IndexError for a
    target that is not a class, RuntimeError for other shapes.
    """
    if size_average is not None or reduce is not None:
        reduction = older_reduction(size_average, reduce)
    if weight is not None:
        weight = class_weights("nll_loss", weight, input)
    if not input.is_floating_point():
        raise UnsupportedDtype(f"nll_loss: takes floating-point dtypes, got {input.dtype}")
    check_reduction("nll_loss", reduction)
    rows, places = with_batch("nll_loss", input, target)
    ignored = as_int(ignore_index)
    if needs_formula((rows, places)):
        are_classes(places, "nll_loss", rows.shape[1], ignored)
    losses = weigh(rows, rows.shape[1], weight, places, ignored, reduction)
    return losses.squeeze(0) if input.ndim == 1 and reduction == "none" else losses


@value_check
def are_classes(places, name, classes, ignored):
    """Raises IndexError for a target that is not a class: indexing itself takes negative ones."""
    if ((places != ignored) & ((places < 0) | (places >= classes))).any():
        raise IndexError(f"{name}: a target is out of bounds for {classes} classes")
