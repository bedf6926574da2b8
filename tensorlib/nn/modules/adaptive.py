"""Adaptive softmax: log-probabilities of very many classes, of which few are frequent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorlib import Tensor, cat
from tensorlib.nn import functional as F
from tensorlib.nn.modules.container import ModuleList, Sequential
from tensorlib.nn.modules.linear import Linear
from tensorlib.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class ASMoutput(NamedTuple):
    """The log probability of each target, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of classes in clusters: the frequent ones, then rarer and rarer ones.

    Classes are numbered from the most frequent to the rarest; `cutoffs` says where clusters begin.
    A cluster of rare classes is computed only for the examples that fall into it, from vectors that
    are shorter by `div_value` to the power of its number.

    Source: Grave et al., "Efficient softmax approximation for GPUs", ICML 2017.

    >>> model = AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> model.log_prob(tensorlib.ones(3, 8)).shape
    tensorlib.Size([3, 20])
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int],
                 div_value: float = 4.0, head_bias: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        bounds = list(cutoffs)
        if not bounds:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length "
                             "larger than 0")
        if (bounds != sorted(set(bounds)) or bounds[0] <= 0 or bounds[-1] > n_classes - 1
                or any(int(bound) != bound for bound in bounds)):
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, "
                             "positive integers sorted in an increasing order, where each value is "
                             f"between 1 and n_classes-1, got {cutoffs}")
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = [*bounds, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = bounds[0], len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            short = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, short, bias=False, **options),
                                        Linear(short, end - start, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.head.reset_parameters()
        for to_short, to_classes in self.tail:
            to_short.reset_parameters()
            to_classes.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """The log probability of each target, and the mean of their negatives, the loss.

        Shapes: (B, in_features) and (B), or (in_features) and ().
        Raises: RuntimeError for other shapes, or classes out of range.
        """
        if input_.ndim != target_.ndim + 1 or target_.ndim > 1 or (
                input_.shape[:-1] != target_.shape):
            raise RuntimeError("AdaptiveLogSoftmaxWithLoss: input and target should have the same "
                               f"size in the batch dimension, got {tuple(input_.shape)} and "
                               f"{tuple(target_.shape)}")
        single = target_.ndim == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError("AdaptiveLogSoftmaxWithLoss: Target values should be in "
                               f"[0, {self.n_classes - 1}]")
        head = F.log_softmax(self.head(input), dim=1)
        places, parts = [], []
        for cluster, start, end in zip(range(-1, self.n_clusters), [0, *self.cutoffs],
                                       self.cutoffs):
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            relative = (target[rows] - start).unsqueeze(1)
            if cluster < 0:
                found = head[rows].gather(1, relative)
            else:
                inside = F.log_softmax(self.tail[cluster](input[rows]), dim=1)
                found = (head[rows, self.shortlist_size + cluster].unsqueeze(1)
                         + inside.gather(1, relative))
            places.append(rows)
            parts.append(found.squeeze(1))
        output = cat(parts)[cat(places).argsort()] if parts else head[:, 0]
        loss = (-output).mean()
        return ASMoutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes. Shapes: (B, in_features) -> (B, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, :self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(cluster + F.log_softmax(tail(input), dim=1))
        return cat(parts, dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each example. Shapes: (B, in_features) -> (B)."""
        return self.log_prob(input).argmax(dim=1)
