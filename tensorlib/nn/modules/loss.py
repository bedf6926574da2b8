"""Losses as modules."""

import math
from collections.abc import Callable
from typing import Any

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.functional.elementwise_losses import older_reduction
from tensorlib.nn.modules.distance import PairwiseDistance
from tensorlib.nn.modules.linear import Linear
from tensorlib.nn.modules.module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss",
    "LinearCrossEntropyLoss", "MSELoss",
    "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


class Loss(Module):
    """A loss for each element or example; `reduction` says whether as "mean", "sum" or "none".

    `size_average` and `reduce` say the same in the words of older programs.
    """

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__()
        if isinstance(size_average, Tensor) or isinstance(reduce, Tensor):
            name = type(self).__name__
            raise RuntimeError(f"{name}: got a Tensor for an option; the module is made first and "
                               f"then called: {name}()(input, target)")
        if size_average is not None or reduce is not None:
            reduction = older_reduction(size_average, reduce)
        self.reduction = reduction


class WeightedLoss(Loss):
    """A loss with a weight for each class or element, which is a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


_Loss, _WeightedLoss = Loss, WeightedLoss       # what scripts for PyTorch call them


# ---- of numbers --------------------------------------------------------------------------------

class L1Loss(Loss):
    """|input - target|: see `nn.functional.l1_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Loss):
    """(input - target)**2: see `nn.functional.mse_loss`.

    >>> MSELoss()(tensorlib.tensor([1., 2.]), tensorlib.tensor([1., 4.]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """Quadratic up to a difference of `beta`, then linear: see `nn.functional.smooth_l1_loss`."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Quadratic up to a difference of `delta`, then linear: see `nn.functional.huber_loss`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class PoissonNLLLoss(Loss):
    """-log p(target) of a Poisson rate: see `nn.functional.poisson_nll_loss`."""

    def __init__(self, log_input: bool = True, full: bool = False,
                 size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full,
                                  eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(Loss):
    """-log p(target) of a normal number: see `nn.functional.gaussian_nll_loss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps,
                                   reduction=self.reduction)


# ---- of probabilities --------------------------------------------------------------------------

class BCELoss(WeightedLoss):
    """-log p(target) of 0 and 1, of probabilities: see `nn.functional.binary_cross_entropy`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """-log p(target) of 0 and 1, of logits.

    See `nn.functional.binary_cross_entropy_with_logits`.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean",
                 pos_weight: Tensor | None = None) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction,
            pos_weight=self.pos_weight)


class KLDivLoss(Loss):
    """target * (log target - input): see `nn.functional.kl_div`."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(WeightedLoss):
    """-input[target] of logarithms of probabilities: see `nn.functional.nll_loss`."""

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)


NLLLoss2d = NLLLoss


class CrossEntropyLoss(WeightedLoss):
    """-log softmax(input)[target], of logits: see `nn.functional.cross_entropy`.

    >>> logits = tensorlib.tensor([[2., 0., 0.]])
    >>> CrossEntropyLoss()(logits, tensorlib.tensor([0]))
    tensor(0.2395)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)


class LinearCrossEntropyLoss(WeightedLoss):
    """`CrossEntropyLoss` of the logits that a linear layer gives, which is a part of the loss.

    With `out_features`, there are logits for each of so many places. `options` say in PyTorch how
    the work is cut; here they change nothing. Shapes: (B, in_features) and (B, *out_features).

    >>> LinearCrossEntropyLoss(4, 10)(tensorlib.ones(3, 4), tensorlib.tensor([1, 2, 3])).shape
    tensorlib.Size([])
    """

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
                 bias: bool = False, device: Any = None, dtype: Any = None,
                 reduction: str = "mean", weight: Tensor | None = None,
                 ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: Any = None) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"LinearCrossEntropyLoss: weight must have shape {(num_classes,)}, "
                               f"got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError("LinearCrossEntropyLoss: label_smoothing must be in the range "
                               f"[0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias,
                             device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        logits = self.linear(input).unflatten(-1, (self.num_classes, *self.out_features))
        return F.cross_entropy(
            logits, target, weight=self.weight, reduction=self.reduction,
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
            label_smoothing=self.label_smoothing)

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
                f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")


class CTCLoss(Loss):
    """-log p of a sequence of labels whose places are not known: see `nn.functional.ctc_loss`."""

    def __init__(self, blank: int = 0, reduction: str = "mean",
                 zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any,
                target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank,
                          self.reduction, self.zero_infinity)


# ---- of margins --------------------------------------------------------------------------------

class WithMargin(Loss):
    """A loss that is 0 from some margin on."""

    def __init__(self, margin: float = 0.0, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(WithMargin):
    """input where target is 1, max(0, margin - input) where it is -1.

    See `nn.functional.hinge_embedding_loss`.
    """

    def __init__(self, margin: float = 1.0, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(WithMargin):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    See `nn.functional.cosine_embedding_loss`.
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin,
                                       reduction=self.reduction)


class MarginRankingLoss(WithMargin):
    """max(0, margin - target * (input1 - input2)): see `nn.functional.margin_ranking_loss`."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin,
                                     reduction=self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target * input)): see `nn.functional.soft_margin_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """Of several right classes against all others: see `nn.functional.multilabel_margin_loss`.

    >>> wanted = tensorlib.tensor([[2, 0, -1]])          # these classes; -1 ends the list
    >>> MultiLabelMarginLoss()(tensorlib.tensor([[0.5, 1., 0.]]), wanted)
    tensor(1.1667)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean of `BCEWithLogitsLoss` over classes.

    See `nn.functional.multilabel_soft_margin_loss`.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight,
                                             reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """Of the right class against all others: see `nn.functional.multi_margin_loss`.

    Raises: ValueError for p other than 1 and 2, or weights that are not vectors.
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                 size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: only p == 1 and p == 2 are supported, got {p}")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: weight must be None or have 1 dim, got "
                             f"{weight.ndim}")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class TripletMarginLoss(WithMargin):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with distances of power p.

    See `nn.functional.triplet_margin_loss`. Raises: ValueError for a margin of 0 or less.
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(above_zero("TripletMarginLoss", margin), size_average, reduce, reduction)
        self.p, self.eps, self.swap = p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p,
                                     eps=self.eps, swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(WithMargin):
    """`TripletMarginLoss` with a distance of your own.

    See `nn.functional.triplet_margin_with_distance_loss`.
    """

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                 margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(above_zero("TripletMarginWithDistanceLoss", margin), reduction=reduction)
        self.distance_function = distance_function or PairwiseDistance()
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction)


def above_zero(name: str, margin: float) -> float:
    """A margin. Raises: ValueError for 0 or less."""
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, found {margin} instead")
    return margin
