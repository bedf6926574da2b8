"""`ctc_loss`: connectionist temporal classification, over all alignments of a sequence."""

import itertools
from operator import index

import numpy as np

from tensorlib import arange, cat, full, int64, logsumexp, stack, tensor, where, zeros
from tensorlib._core.layers import ctc
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, gradients_of, stands_for
from tensorlib.nn.functional.elementwise_losses import loss, reduced, require_floating
from tensorlib.ops.declare import op
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import with_gradients
from tensorlib.ops.value_checks import value_check

NEVER = -1e30           # in place of log(0), so that sums stay finite


def collapsed(path, blank):
    """The labels of an alignment: without repeats, then without blanks."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def all_alignments(logs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
                   zero_infinity=False):
    """The reference of `ctc_loss`, which goes through all alignments."""
    found = []
    for n, (steps, size) in enumerate(zip(input_lengths, target_lengths)):
        wanted, total = list(targets[n][:size]), 0.0
        for path in itertools.product(range(logs.shape[2]), repeat=int(steps)):
            if collapsed(path, blank) == wanted:
                total = total + np.exp(sum(logs[t, n, c] for t, c in enumerate(path)))
        found.append(-np.log(total))
    found = np.array(found)
    if reduction == "mean":
        return (found / np.maximum(target_lengths, 1)).mean()
    return found.sum() if reduction == "sum" else found


def short_sequences(rng):
    """Samples of `ctc_loss`."""
    for labels, steps, sizes, options in (
            ([[1, 1]], (4,), (2,), {"reduction": "none"}),
            ([[1], [2]], (2, 1), (1, 1), {"reduction": "sum"}),
            ([[1, 2], [2, 0]], (3, 2), (2, 1), {})):
        logs = np.log(rng.dirichlet(np.ones(3), (steps[0], len(steps))))
        yield (logs, np.array(labels), steps, sizes), options


def bad_sequences():
    """Error samples of `ctc_loss`."""
    logs, labels = np.zeros((4, 2, 3)), np.array([[1, 2], [1, 1]])
    yield (logs, labels, (5, 3), (2, 2)), {}, RuntimeError
    yield (logs, labels, (4, 3), (2, 3)), {}, RuntimeError
    yield (logs, labels, (4,), (2, 2)), {}, RuntimeError
    yield (logs, labels, (4, 3), (2, 2)), {"blank": 3}, RuntimeError
    yield (logs, labels + 2, (4, 3), (2, 2)), {}, RuntimeError


def lengths_of(name, given, count, most):
    """Lengths as ints, one for each sequence. Raises: RuntimeError, TypeError."""
    if isinstance(given, Tensor):
        if given.is_floating_point() or given.is_complex():
            raise RuntimeError(f"ctc_loss: {name} must be integers, got {given.dtype}")
        given = given.reshape(-1).tolist()
    given = [index(n) for n in given]
    if len(given) != count or not all(0 <= n <= most for n in given):
        raise RuntimeError(f"ctc_loss: {name} must be {count} numbers up to {most}, got {given}")
    return given


@loss(tensors=("log_probs",), reference=all_alignments, samples=short_sequences,
      errors=bad_sequences, checks_values=True)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank=0,
             reduction="mean", zero_infinity=False):
    """-log of the probability of all alignments that give the targets: mean, sum or each.

    An alignment has one label for each step; repeats, then blanks are taken out of it. The mean is
    that of losses over lengths of targets. zero_infinity: 0 where there is no alignment.
    Shapes: (T, B, C), (B, S) or the sum of the target lengths, (B,), (B,) -> (), or (B,) with
    "none"; without B, too.
    Raises: RuntimeError for lengths or labels that do not fit, ValueError for another `reduction`,
    TypeError.
    Source: Graves et al., "Connectionist Temporal Classification", ICML 2006.
    """
    require_floating("ctc_loss", log_probs)
    if log_probs.ndim not in (2, 3):
        raise RuntimeError(f"ctc_loss: expects log_probs of 2 or 3 dims, got {log_probs.ndim}")
    logs = log_probs.float() if log_probs.dtype.name in ("float16", "bfloat16") else log_probs
    logs = logs.unsqueeze(1) if log_probs.ndim == 2 else logs
    steps, count, classes = logs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be a label, got {blank} of {classes}")
    inputs = lengths_of("input_lengths", input_lengths, count, steps)
    labels, sizes = padded(targets, target_lengths, count, log_probs.ndim == 2)
    losses = ctc_losses(logs, labels, tuple(inputs), tuple(sizes), blank)
    losses = losses * where(losses.detach() > -NEVER / 2,
                            0.0 if zero_infinity else float("inf"), 1.0)
    if reduction == "mean":
        losses = losses / tensor(sizes, dtype=losses.dtype).clamp(min=1)
    losses = losses.to(log_probs.dtype)
    return reduced("ctc_loss", losses if log_probs.ndim == 3 else losses.squeeze(0), reduction)


@value_check
def are_labels(labels, classes):
    """Raises RuntimeError for a target that is not one of the labels."""
    if ((labels < 0) | (labels >= classes)).any():
        raise RuntimeError(f"ctc_loss: a target is out of range for {classes} labels")


def padded(targets, lengths, count, single):
    """The targets as (B, S), and how many labels of each row count. Raises: RuntimeError."""
    if targets.ndim == 2 or single:
        labels = targets.reshape(count, -1)
        return labels, lengths_of("target_lengths", lengths, count, labels.shape[1])
    sizes = lengths_of("target_lengths", lengths, count, targets.numel())
    if targets.ndim != 1 or sum(sizes) != targets.numel():
        raise RuntimeError("ctc_loss: expects targets of shape (B, S), or a vector with as many as "
                           f"the lengths add up to, got {tuple(targets.shape)} and {sizes}")
    longest = max(sizes, default=0)
    room = arange(longest) < tensor(sizes, dtype=int64).unsqueeze(1)
    return zeros((count, longest), dtype=targets.dtype).masked_scatter(room, targets), sizes


def log_likelihood(logs, labels, inputs, sizes, blank):
    """The logarithm of the probability of each row of labels, by the forward recursion."""
    steps, count, classes = logs.shape
    named = arange(labels.shape[1]) < tensor(sizes, dtype=int64).unsqueeze(1)
    labels = where(named, labels.long(), blank)          # later ones may be anything
    are_labels(labels, classes)
    blanks = full((count, labels.shape[1]), blank, dtype=labels.dtype)
    # blank, first label, blank, second label, ..., blank
    ends = full((count, 1), blank, dtype=labels.dtype)
    states = cat([stack([blanks, labels], 2).reshape(count, -1), ends], 1)
    width = states.shape[1]
    places = arange(width)
    before = cat([states.new_full((count, 2), blank), states[:, :-2]], 1)[:, :width]
    skips = (states != blank) & (states != before) & (places > 1)
    never = logs.new_full((count, 2), NEVER)
    last = tensor(sizes).unsqueeze(1) * 2
    alpha = where(places == 0, 0.0, NEVER).to(logs.dtype).expand(count, width)
    for t in range(steps):
        emitted = logs[t].gather(1, states).clamp(min=NEVER)
        if t == 0:
            moved = where(places < 2, 0.0, NEVER).to(logs.dtype) + emitted
        else:
            one = cat([never[:, :1], alpha[:, :-1]], 1)
            two = where(skips, cat([never, alpha[:, :-2]], 1)[:, :width], NEVER)
            moved = logsumexp(stack([alpha, one, two]), 0) + emitted
        alpha = where(tensor([t < n for n in inputs]).unsqueeze(1), moved.clamp(min=NEVER), alpha)
    ends = alpha.gather(1, last).squeeze(1)
    previous = alpha.gather(1, (last - 1).clamp(min=0)).squeeze(1)
    return where(last.squeeze(1) > 0, logsumexp(stack([ends, previous]), 0), ends)


# ---- the same by a kernel ------------------------------------------------------------------------

def losses_formula(log_probs, labels, inputs, sizes, blank):
    """`ctc_losses` composed of operations."""
    return -log_likelihood(log_probs, labels, inputs, sizes, blank)


def losses_reference(logs, labels, inputs, sizes, blank):
    """The reference of `ctc_losses`."""
    return all_alignments(logs, labels, inputs, sizes, blank, "none")


def aligned(rng):
    """Samples of `ctc_losses`."""
    for (logs, labels, inputs, sizes), _ in short_sequences(rng):
        yield (logs, labels, inputs, sizes, 0), {}


@stands_for(gradients_of(losses_formula))
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    reference=gradients(losses_reference), samples=with_gradients(aligned, losses_reference),
    kernel=ctc.ctc_losses_backward, checks_values=True)
def ctc_losses_backward(grad: Tensor, log_probs: Tensor, labels: Tensor, inputs, sizes, blank):
    """The gradient of `ctc_losses`."""


@differentiated_by(losses_formula, ctc_losses_backward, constants=1)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=losses_reference, samples=aligned, kernel=ctc.ctc_losses, checks_values=True)
def ctc_losses(log_probs: Tensor, labels: Tensor, inputs, sizes, blank):
    """-log of the probability of all alignments of each sequence; 1e30 where there are none.

    Raises: RuntimeError for a label out of range.
    """
