"""Margin losses, `cosine_similarity`, `pairwise_distance` and `normalize`."""

import numpy as np

from tensorlib import arange, div, empty_like, float32, result_type, where
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.interpreters.foreign import is_looked_at_alone
from tensorlib._core.layers import margins, nll
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.activations import logsigmoid
from tensorlib.nn.functional.fused import differentiated_by, gradients_of, stands_for
from tensorlib.nn.functional.elementwise_losses import (
    ALL, in_floats, in_numpy, loss, older_reduction, reduced, require_floating,
)
from tensorlib.nn.functional.checks import check_optional
from tensorlib.nn.functional.likelihoods import are_classes, check_reduction
from tensorlib.ops.arguments import refuse_bools, refuse_complex
from tensorlib.ops.declare import composite, op
from tensorlib.ops.pointwise.combined import no_integers
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import given, given_pairs, refusals, with_gradients
from tensorlib.ops.value_checks import value_check

def numbers_in_floats(name, *tensors):
    """The tensors in floating dtypes, in which no difference wraps; complex ones as they are.
    Raises: RuntimeError for bools, which have none."""
    for x in tensors:
        refuse_bools(name, x, RuntimeError)
    return in_floats(*tensors)


# ---- distances -----------------------------------------------------------------------------------

def cosine(a, b, dim=1, eps=1e-8):
    """The reference of `cosine_similarity`."""
    a, b = np.broadcast_arrays(a, b)
    lengths = [np.maximum(np.sqrt((x * x).sum(dim)), eps) for x in (a, b)]
    return (a * b).sum(dim) / (lengths[0] * lengths[1])


def distance_function(public=False, takes="floating", **declared):
    """Declares a distance."""
    return composite(public=public, method=False, takes=takes, tolerance="reduction", **declared)


@distance_function(public=True, reference=cosine,
                   samples=given_pairs(((2, 3), (2, 3)), ((3,), (2, 3), -1), ((2, 3), (1, 3), 0)),
                   errors=refusals((RuntimeError, (2, 3), np.ones((2, 4))),
                                   (IndexError, (3,), np.ones(3))))
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8):
    """The cosines of the angles between vectors along a dim: x1 . x2 / (|x1| |x2|).

    eps: the least length. Shapes: (*, N, *), (*, N, *) -> (*, *), with broadcasting.
    Raises: RuntimeError for shapes that do not broadcast and for integers alone, IndexError.
    """
    if x1.dtype is not x2.dtype:
        kind = result_type(x1, x2)
        x1, x2 = x1.to(kind), x2.to(kind)
    require_floating("cosine_similarity", x1)
    shape = broadcast_shapes("cosine_similarity", x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    x1, x2 = (x / clipped(x.norm(2, dim, True), eps) for x in (x1, x2))
    return (x1 * x2).sum(dim)


def clipped(x, least):
    """The larger of each element and a number; where that is the number, with no gradient."""
    return where(x <= least, least, x)


def between_pairs(a, b, p=2.0, eps=1e-6, keepdim=False):
    """The reference of `pairwise_distance`."""
    d = np.abs(a - b + eps)
    found = d.max(-1) if p == float("inf") else (d ** p).sum(-1) ** (1 / p)
    return found[..., None] if keepdim else found


@distance_function(public=True, takes="integer floating", reference=between_pairs,
                   samples=given_pairs(((2, 3), (2, 3)), ((3,), (2, 3), 1.0),
                                       ((2, 3), (2, 3), 3.0, 1e-3, True)),
                   errors=refusals((RuntimeError, (2, 3), np.ones((2, 4)))), complex=True)
def pairwise_distance(x1: Tensor, x2: Tensor, p=2.0, eps=1e-6, keepdim=False):
    """The norms |x1 - x2 + eps| of type `p` along the last dim.

    Shapes: (*, N), (*, N) -> (*), or (*, 1) with `keepdim`, with broadcasting.
    Raises: RuntimeError for shapes that do not broadcast.
    """
    x1, x2 = numbers_in_floats("pairwise_distance", x1, x2)
    return (x1 - x2 + eps).norm(p, -1, keepdim)


@distance_function(reference=lambda x, p=2.0, dim=1, eps=1e-12: x / np.maximum(
                       (np.abs(x) ** p).sum(dim, keepdims=True) ** (1 / p), eps),
                   samples=given(((2, 3),), ((3,), 1.0, 0), ((2, 3), 3.0, 0)),
                   errors=refusals((IndexError, (3,))), complex=True, rounds_once=False)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out=None):
    """The vectors along a dim over their norms of type `p`, which are at least `eps`.

    Shapes: the input's. Raises: IndexError, RuntimeError for integers.
    """
    no_integers("normalize", input)
    check_optional("normalize", out=out)
    if input.is_floating_point() and input.itemsize == 2:         # computed in float32
        out = empty_like(input) if out is None and is_looked_at_alone(input) else out
        if out is None:
            return normalize(input.float(), p, dim, eps).to(input.dtype)
        norms = input.norm(p, dim, keepdim=True, dtype=float32).clamp(min=eps)
    else:
        norms = input.norm(p, dim, keepdim=True).clamp(min=eps)
    return div(input, norms.expand(input.shape), out=out)


# ---- losses --------------------------------------------------------------------------------------

def named(name, losses, options):
    """A loss reduced as the older and newer words say."""
    return reduced(name, losses, options["reduction"], options["size_average"], options["reduce"])


def signs(*shapes, classes=(-1.0, 1.0), **keywords):
    """Real tensors of shapes, the last of which holds signs."""
    def generate(rng):
        for reduction in ("mean", "none"):
            yield (*(rng.uniform(-2, 2, shape) for shape in shapes[:-1]),
                   rng.choice(classes, shapes[-1]).astype(int)), {
                       "reduction": reduction, **keywords}
    return generate


def up_from_0(terms):
    """max(0, term) for each, with the gradient of the term where it is 0, as in PyTorch."""
    return terms.clamp(min=0)


@loss(tensors=("input", "target"), samples=signs((2, 3), (2, 3), margin=0.3),
      reference=in_numpy(lambda x, t, margin=1.0: np.where(t == 1, x, np.maximum(margin - x, 0))))
def hinge_embedding_loss(input: Tensor, target: Tensor, margin=1.0, size_average=None, reduce=None,
                         reduction="mean"):
    """x where the target is 1, max(0, margin - x) where it is -1: mean, sum or each.

    Another target, which PyTorch does not refuse either, gives the sum of both.
    Shapes: (*), (*) -> (), or (*) with "none". Raises: ValueError for another `reduction`.
    """
    require_floating("hinge_embedding_loss", input)
    apart = where(target != 1, up_from_0(margin - input), 0)
    return named("hinge_embedding_loss", apart + where(target != -1, input, 0), locals())


@loss(takes="integer floating", tensors=("input1", "input2", "target"),
      samples=signs((2, 3), (2, 3), (2, 3), margin=0.3),
      reference=in_numpy(lambda a, b, t, margin=0.0: np.maximum(-t * (a - b) + margin, 0)),
      errors=refusals((RuntimeError, (2, 3), np.ones(3), np.ones(3))))
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin=0, size_average=None,
                        reduce=None, reduction="mean"):
    """max(0, -target * (input1 - input2) + margin): mean, sum or each.

    Shapes: (*), (*), (*) -> (), or (*) with "none".
    Raises: RuntimeError for different numbers of dims, ValueError for another `reduction`.
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss: all input tensors should have the same number of "
                           f"dims, got shapes {tuple(input1.shape)}, {tuple(input2.shape)} and "
                           f"{tuple(target.shape)}")
    refuse_complex("margin_ranking_loss", input1, input2)
    input1, input2 = numbers_in_floats("margin_ranking_loss", input1, input2)
    losses = up_from_0(-target * (input1 - input2) + margin)
    return named("margin_ranking_loss", losses, locals())


@loss(takes=ALL, tensors=("input1", "input2", "target"),
      samples=signs((2, 3), (2, 3), (2,)),
      reference=in_numpy(lambda a, b, t, margin=0.0: np.where(
          t == 1, 1 - cosine(a, b, -1), np.maximum(cosine(a, b, -1) - margin, 0))),
      errors=refusals((RuntimeError, (2, 3), np.ones((2, 3)), np.ones(()))))
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin=0,
                          size_average=None, reduce=None, reduction="mean"):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1: mean, sum or each.

    Shapes: (B, N), (B, N), (B,) -> (), or (B,) with "none"; without B, too.
    Raises: RuntimeError for other shapes, ValueError for another `reduction`.
    """
    refuse_complex("cosine_embedding_loss", input1, input2)
    input1, input2 = in_floats(input1, input2)
    if target.ndim not in (0, 1) or input1.ndim != target.ndim + 1 or input2.ndim != input1.ndim:
        raise RuntimeError("cosine_embedding_loss: expects (B, N), (B, N) and (B,), or (N,), (N,) "
                           f"and (), got shapes {tuple(input1.shape)}, {tuple(input2.shape)} and "
                           f"{tuple(target.shape)}")
    squares = [(x * x).sum(-1) + 1e-12 for x in (input1, input2)]
    cosines = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    apart = where(target == -1, up_from_0(cosines - margin), 0)
    losses = where(target == 1, 1 - cosines, 0) + apart
    return named("cosine_embedding_loss", losses, locals())


def three_points(rng):
    """Samples of an anchor, what is near and what is far."""
    for keywords in ({}, {"reduction": "none", "margin": 2.0, "swap": True}):
        yield tuple(rng.uniform(-2, 2, (3, 2, 4))), keywords


def triplet(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False):
    """The reference of `triplet_margin_loss`."""
    far = between_pairs(anchor, negative, p, eps)
    if swap:
        far = np.minimum(far, between_pairs(positive, negative, p, eps))
    return np.maximum(between_pairs(anchor, positive, p, eps) - far + margin, 0)


@loss(takes="integer floating", complex=True, samples=three_points,
      reference=in_numpy(triplet),
      errors=refusals((RuntimeError, (2, 3), np.ones(3), np.ones((2, 3)))))
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin=1.0, p=2,
                        eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin): mean, sum or each.

    swap: with the nearer of anchor and positive to the negative.
    Shapes: (B, N) each -> (), or (B,) with "none"; without B, too.
    Raises: RuntimeError for different numbers of dims, ValueError for another `reduction` or a
    margin that is not positive.
    Source: Balntas et al., "Learning local feature descriptors with triplets", BMVC 2016.
    """
    check_margin("triplet_margin_loss", margin)
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("triplet_margin_loss: anchor, positive and negative should have the "
                           "same number of dims, got shapes " + ", ".join(
                               str(tuple(x.shape)) for x in (anchor, positive, negative)))
    anchor, positive, negative = numbers_in_floats("triplet_margin_loss", anchor, positive,
                                                   negative)
    losses = of_triplets(anchor, positive, negative, margin, swap,
                         lambda a, b: pairwise_distance(a, b, p, eps))
    return named("triplet_margin_loss", losses, locals())


def check_margin(name, margin):
    """Raises ValueError for a margin that is not positive."""
    if not margin > 0:
        raise ValueError(f"{name}: margin must be greater than 0, got {margin}")


def of_triplets(anchor, positive, negative, margin, swap, distance):
    """The losses of triplets."""
    far = distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return up_from_0(distance(anchor, positive) - far + margin)


@loss(samples=three_points, reference=in_numpy(triplet), complex=True)
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """`triplet_margin_loss` with any distance, by default `pairwise_distance`.

    Raises: ValueError for another `reduction` or a margin that is not positive.
    """
    check_margin("triplet_margin_with_distance_loss", margin)
    losses = of_triplets(anchor, positive, negative, margin, swap,
                         distance_function or pairwise_distance)
    return reduced("triplet_margin_with_distance_loss", losses, reduction)


@loss(tensors=("input", "target"), samples=signs((2, 3), (2, 3)),
      reference=in_numpy(lambda x, t: np.log1p(np.exp(-t * x))),
      errors=refusals((RuntimeError, (2, 3), np.ones((2, 4)))))
def soft_margin_loss(input: Tensor, target: Tensor, size_average=None, reduce=None,
                     reduction="mean"):
    """log(1 + exp(-target * input)) for targets of 1 or -1: mean, sum or each.

    Shapes: (*), (*) -> (), or (*) with "none". Raises: ValueError for another `reduction`.
    """
    require_floating("soft_margin_loss", input)
    return named("soft_margin_loss", -logsigmoid(target * input), locals())


def multilabel_soft(x, t):
    """The reference of `multilabel_soft_margin_loss`."""
    return (np.log1p(np.exp(-x)) + (1 - t) * x).mean(-1)


@loss(tensors=("input", "target"), reference=in_numpy(multilabel_soft),
      samples=signs((2, 3), (2, 3), classes=(0.0, 1.0)))
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight=None, size_average=None,
                                reduce=None, reduction="mean"):
    """The mean over classes of the cross entropy of sigmoids: mean of these, sum or each.

    Shapes: (B, C), (B, C) -> (), or (B,) with "none". Raises: ValueError for another `reduction`.
    """
    require_floating("multilabel_soft_margin_loss", input)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return named("multilabel_soft_margin_loss", losses.mean(-1), locals())


def with_batch(name, input, target, target_ndim):
    """The input as (B, C) and the target with a batch. Raises: RuntimeError."""
    if target.is_floating_point() or target.is_complex():
        raise RuntimeError(f"{name}: the target must have numbers of classes, got {target.dtype}")
    if target_ndim == 0 and input.ndim == 2 and nll.fits(input, target):
        return input, target
    require_floating(name, input)
    if input.ndim == 0 and target.ndim == 0:
        input, target = input.reshape(1), target.reshape((1,) * target_ndim)
    elif input.ndim == 1 and target_ndim == 0 and target.numel() == 1:
        target = target.reshape(())
    if input.ndim not in (1, 2) or target.ndim != input.ndim - 1 + target_ndim or (
            input.ndim == 2 and target.shape[0] != input.shape[0]):
        raise RuntimeError(f"{name}: inconsistent target size {tuple(target.shape)} for an input "
                           f"of shape {tuple(input.shape)}")
    if input.ndim == 1:
        return input.unsqueeze(0), target.unsqueeze(0).long()
    return input, target.long()


# ---- margins between classes, by a kernel and by the formula that it replaces --------------------

@value_check
def are_classes_or_ends(classes, count):
    """Raises RuntimeError for a target that is not a class, nor -1."""
    if ((classes < -1) | (classes >= count)).any():
        raise RuntimeError(f"multilabel_margin_loss: a target is out of range for {count} classes")


def listed_classes(classes, count, ends):
    """Which places list classes, and the classes there. Raises: RuntimeError, IndexError."""
    if not ends:
        are_classes(classes, "multi_margin_loss", count, None)
        return classes >= 0, classes
    are_classes_or_ends(classes, count)
    listed = (classes < 0).long().cumsum(1) == 0
    return listed, where(listed, classes, 0)


def margins_formula(input, target, p, margin, ends, reduction):
    """`class_margins` composed of operations."""
    count, target = input.shape[1], target.reshape(input.shape[0], -1)
    listed, here = listed_classes(target, count, ends)
    wanted = (listed.unsqueeze(2) & (here.unsqueeze(2) == arange(count))).any(1)
    terms = (margin - input.gather(1, here).unsqueeze(2) + input.unsqueeze(1)).relu()
    counted = listed.unsqueeze(2) & wanted.logical_not().unsqueeze(1)
    terms = where(counted, terms if p == 1 else terms * terms, 0)
    return reduced("class_margins", terms.sum((1, 2)) / max(1, count), reduction)


def margins_reference(x, t, p, margin, ends, reduction):
    """The reference of `class_margins`."""
    found = []
    for row, classes in zip(x, t.reshape(len(x), -1)):
        wanted = list(classes[:np.argmax(np.append(classes, -1) < 0)])
        found.append(sum(max(0, margin - row[c] + row[j]) ** p for c in wanted
                         for j in range(len(row)) if j not in wanted) / len(row))
    return in_numpy(lambda: np.array(found))(reduction=reduction)


LISTED = given(
    ((3, 4), np.array([[1], [0], [3]]), 2, 0.7, False, "none"),
    ((3, 4), np.array([1, 0, 3]), 1, 1.0, False, "mean"),
    ((3, 4), np.array([[1, 3, -1, 0], [2, -1, 1, 1], [-1, 0, 0, 0]]), 1, 1.0, True, "sum"))


@stands_for(gradients_of(margins_formula))
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    reference=gradients(margins_reference),
    samples=with_gradients(LISTED, margins_reference),
    kernel=margins.class_margins_backward, checks_values=True)
def class_margins_backward(grad: Tensor, input: Tensor, target: Tensor, p, margin, ends, reduction):
    """The gradient of `class_margins`."""


@differentiated_by(margins_formula, class_margins_backward, constants=1)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=margins_reference, samples=LISTED, kernel=margins.class_margins,
    checks_values=True)
def class_margins(input: Tensor, target: Tensor, p, margin, ends, reduction):
    """max(0, margin - x[t] + x[j])**p over the classes t that are listed and the others j.

    Of each row x, over the number of classes; their mean, sum or each. ends: whether a -1 ends a
    list. Raises: IndexError for a target that is not a class, RuntimeError where these end.
    """


def multi(x, t, p=1, margin=1.0):
    """The reference of `multi_margin_loss`."""
    x, t = np.atleast_2d(x), np.atleast_1d(t)
    own = x[np.arange(len(x)), t][:, None]
    terms = np.maximum(margin - own + x, 0) ** p
    terms[np.arange(len(x)), t] = 0
    return terms.sum(1) / x.shape[1]


@loss(tensors=("input", "target"), reference=in_numpy(multi),
      samples=lambda rng: (((rng.uniform(-2, 2, (3, 4)), np.array([1, 0, 3])), keywords)
                           for keywords in ({}, {"p": 2, "margin": 0.7, "reduction": "none"})),
      errors=lambda: (((np.ones((2, 3)), np.array(t)), {}, error)
                      for t, error in (([0, 3], IndexError), ([0], RuntimeError))),
      checks_values=True)
def multi_margin_loss(input: Tensor, target: Tensor, p=1, margin=1.0, weight=None,
                      size_average=None, reduce=None, reduction="mean"):
    """The mean over the other classes j of max(0, margin - x[target] + x[j])**p: mean, sum or each.

    weight: a factor for each class that is the target. Shapes: (B, C), (B,) -> (), or (B,) with
    "none"; without B, as the target has it. Raises: ValueError for a `p` that is not 1 or 2,
    another `reduction` or a weight that is not a vector, RuntimeError for another number of weights
    and a target of another dtype or shape, IndexError for a target that is not a class.
    """
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: only p == 1 and p == 2 supported, got {p}")
    check_optional("multi_margin_loss", weight=weight)
    if size_average is not None or reduce is not None:
        reduction = older_reduction(size_average, reduce)
    check_reduction("multi_margin_loss", reduction)
    rows, places = with_batch("multi_margin_loss", input, target, 0)
    classes = rows.shape[1]
    if weight is not None and weight.ndim != 1:
        raise ValueError("multi_margin_loss: weight must be a vector, got shape "
                         f"{tuple(weight.shape)}")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"multi_margin_loss: weight must have {classes} elements, one for each "
                           f"class, got {weight.numel()}")
    losses = class_margins(rows, places, p, float(margin), False,
                           "none" if weight is not None else reduction)
    if weight is not None:
        losses = losses * weight.index_select(0, places)
        losses = reduced("multi_margin_loss", losses, reduction)
    return losses.squeeze(0) if reduction == "none" and target.ndim == 0 else losses


def multilabel(x, t):
    """The reference of `multilabel_margin_loss`."""
    found = []
    for row, classes in zip(np.atleast_2d(x), np.atleast_2d(t)):
        wanted = [c for c in classes[:np.argmax(np.append(classes, -1) < 0)]]
        others = [j for j in range(len(row)) if j not in wanted]
        found.append(sum(max(0, 1 - row[c] + row[j]) for c in wanted for j in others) / len(row))
    return np.array(found)


@loss(tensors=("input", "target"), reference=in_numpy(multilabel),
      samples=lambda rng: (((rng.uniform(-2, 2, (2, 4)), np.array([[1, 3, -1, 0], [2, -1, 1, 1]])),
                            {"reduction": reduction}) for reduction in ("mean", "none")),
      errors=lambda: (((np.ones((1, 2)), np.array(t)), {}, error)
                      for t, error in (([[0, 2]], RuntimeError), ([0], RuntimeError))),
      checks_values=True)
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average=None, reduce=None,
                           reduction="mean"):
    """The mean of max(0, 1 - x[i] + x[j]) over classes i that are wanted and j that are not.

    The classes that are wanted stand before the first -1 in each row of the target. The mean of the
    losses of rows, their sum or each. Shapes: (B, C), (B, C) -> (), or (B,) with "none".
    Raises: RuntimeError for other shapes or a target that is not a class, ValueError.
    """
    rows, classes = with_batch("multilabel_margin_loss", input, target, 1)
    if classes.shape != rows.shape:
        raise RuntimeError(f"multilabel_margin_loss: inconsistent target size "
                           f"{tuple(target.shape)} for an input of shape {tuple(input.shape)}")
    if size_average is not None or reduce is not None:
        reduction = older_reduction(size_average, reduce)
    check_reduction("multilabel_margin_loss", reduction)
    losses = class_margins(rows, classes, 1, 1.0, True, reduction)
    return losses if input.ndim > 1 or reduction != "none" else losses.squeeze(0)
