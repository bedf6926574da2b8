"""Functions of PyTorch's beside those of `nn.functional` that take other arguments.

The reduction of a loss is a number there, by default 0: each.
"""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional import ctc, elementwise_losses, margins
from tensorlib.nn.functional.group_norms import instance_norm as norm_of_instances
from tensorlib.nn.functional.linear import embedding as rows_of
from tensorlib.nn.functional.norms import batch_norm as norm_of_batches
from tensorlib.ops.declare import publish

REDUCTIONS = ("none", "mean", "sum")


def batch_norm(input: Tensor, weight, bias, running_mean, running_var, training, momentum, eps,
               cudnn_enabled):
    """`nn.functional.batch_norm`; `cudnn_enabled` changes nothing."""
    return norm_of_batches(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input: Tensor, weight, bias, running_mean, running_var, use_input_stats, momentum,
                  eps, cudnn_enabled):
    """`nn.functional.instance_norm`; with `use_input_stats` false by the running statistics.

    `cudnn_enabled` changes nothing.
    """
    return norm_of_instances(input, running_mean, running_var, weight, bias, use_input_stats,
                             momentum, eps)


def embedding(weight: Tensor, indices: Tensor, padding_idx=-1, scale_grad_by_freq=False,
              sparse=False):
    """`nn.functional.embedding`, with the table first; a `padding_idx` below 0 is none."""
    return rows_of(indices, weight, padding_idx if padding_idx >= 0 else None,
                   scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


# ---- losses --------------------------------------------------------------------------------------

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight=None, pos_weight=None,
                                     reduction=0):
    """`nn.functional.binary_cross_entropy_with_logits`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return elementwise_losses.binary_cross_entropy_with_logits(
        input, target, weight, reduction=named(reduction), pos_weight=pos_weight)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin=0.0, reduction=0):
    """`nn.functional.cosine_embedding_loss`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return margins.cosine_embedding_loss(input1, input2, target, margin,
                                         reduction=named(reduction))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank=0,
             reduction=0, zero_infinity=False):
    """`nn.functional.ctc_loss`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                        named(reduction), zero_infinity)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin=1.0, reduction=0):
    """`nn.functional.hinge_embedding_loss`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return margins.hinge_embedding_loss(input, target, margin, reduction=named(reduction))


def kl_div(input: Tensor, target: Tensor, reduction=0, *, log_target=False):
    """`nn.functional.kl_div`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return elementwise_losses.kl_div(input, target, reduction=named(reduction),
                                     log_target=log_target)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin=0.0, reduction=0):
    """`nn.functional.margin_ranking_loss`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return margins.margin_ranking_loss(input1, input2, target, margin,
                                       reduction=named(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input, full, eps, reduction):
    """`nn.functional.poisson_nll_loss`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return elementwise_losses.poisson_nll_loss(input, target, log_input, full, eps=eps,
                                               reduction=named(reduction))


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin=1.0, p=2.0,
                        eps=1e-6, swap=False, reduction=0):
    """`nn.functional.triplet_margin_loss`, each, or with 1 the mean, with 2 the sum.

    Raises: as that, and ValueError for another `reduction`.
    """
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                       reduction=named(reduction))


def named(reduction):
    """The word for a reduction that is given as a number."""
    if isinstance(reduction, int) and 0 <= reduction < len(REDUCTIONS):
        return REDUCTIONS[reduction]
    return reduction                             # a word already, or an error that names the loss


TWICE = (batch_norm, binary_cross_entropy_with_logits, cosine_embedding_loss, ctc_loss, embedding,
         hinge_embedding_loss, instance_norm, kl_div, margin_ranking_loss, poisson_nll_loss,
         triplet_margin_loss)
for _function in TWICE:
    publish(_function.__name__, _function, _function.__doc__, method=False)
