"""Normalisation over a batch, or over each example of one, with running statistics."""

from typing import Any

from tensorlib import (
    Tensor,
    cat,
    distributed,
    empty,
    full,
    int64,
    no_grad,
    ones,
    tensor,
    zeros,
)
from tensorlib.autograd.modes import apart_from_transforms
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.modules.lazy import LazyModuleMixin
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
           "LazyBatchNorm3d", "SyncBatchNorm"]


class Normalizing(Module):
    """What these layers have in common: options, parameters and running statistics.

    The statistics are updated by `momentum * new + (1 - momentum) * old`; where `momentum` is None
    they are the mean over all batches. The class of each number of dims says what inputs it takes:
    `class BatchNorm2d(BatchNorm, takes=(4,))`.
    """

    _version = 2
    _takes: tuple[int, ...] = ()
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init_subclass__(cls, takes: tuple[int, ...] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if takes is not None:
            cls._takes = takes

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, device: Any = None,
                 dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.make_parameters(affine, affine and bias, device, dtype)
        self.reset_parameters()

    def make_parameters(self, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        """Makes what there is of parameters and statistics; what there is not is None."""
        shape, options = (self.num_features,), {"device": device, "dtype": dtype}
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(empty(shape, **options)) if wanted else None)
        self.register_statistics(ones(shape, **options), zeros(shape, **options))

    def register_statistics(self, var: Tensor, mean: Tensor) -> None:
        """Keeps running statistics, or None in their places."""
        tracked = self.track_running_stats
        self.register_buffer("running_mean", mean if tracked else None)
        self.register_buffer("running_var", var if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64) if tracked else None)

    def reset_running_stats(self) -> None:
        """Forgets the statistics."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weights to one, biases to zero, and forgets the statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raises ValueError for an input of the wrong number of dims."""
        if not self._takes:
            raise NotImplementedError
        if input.ndim not in self._takes:
            takes = " or ".join(f"{ndim}D" for ndim in self._takes)
            raise ValueError(f"{type(self).__name__}: expected {takes} input (got {input.ndim}D "
                             "input)")

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
                f"affine={self.affine}, bias={self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any,
                              *args: Any) -> None:
        """A state of before there were counts of batches goes on with the count that is here."""
        key = f"{prefix}num_batches_tracked"
        if ((local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None
                and key not in state_dict):
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class BatchNorm(Normalizing):
    """Each channel less its mean over a batch, by its deviation; then times weight, plus bias.

    In training these are the batch's, else the running ones. Source: Ioffe and Szegedy, "Batch
    Normalization", ICML 2015.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input. Raises: ValueError for a wrong number of dims."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        tracking = self.training and self.track_running_stats
        if tracking and self.num_batches_tracked is not None:
            with apart_from_transforms():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        used = tracking or not self.training
        return F.batch_norm(
            input, self.running_mean if used else None, self.running_var if used else None,
            self.weight, self.bias, self.training or self.running_mean is None, momentum, self.eps)


_NormBase, _BatchNorm = Normalizing, BatchNorm       # what scripts for PyTorch call them


class SyncBatchNorm(BatchNorm):
    """A batch normalisation of what has 2 or more dims, over the batches of all ranks of a group.

    In training the ranks share sums of the elements and of their squares, forward and in the sweep,
    so that all of them have to make both. Without a process group it is that of this process alone.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError("SyncBatchNorm: expected an input of 2 or more dims, got "
                             f"{input.ndim}D input")

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input, with the statistics of all ranks in training."""
        batch_statistics = self.training or self.running_mean is None
        if not batch_statistics or not distributed.is_initialized() or (
                distributed.get_world_size(self.process_group) == 1):
            return super().forward(input)
        self._check_input_dim(input)
        dims = [0, *range(2, input.ndim)]
        shape = [1, -1, *[1] * (input.ndim - 2)]
        own = full((1,), input.numel() / max(input.shape[1], 1), dtype=input.dtype)
        reduce = distributed.nn.functional.all_reduce
        sums = reduce(cat([input.sum(dims), own]), group=self.process_group)
        count = sums[-1]
        mean = sums[:-1] / count
        centered = input - mean.reshape(shape)
        # the squares are taken around the mean of all: one more message, and no cancellation
        var = reduce((centered * centered).sum(dims), group=self.process_group) / count
        if self.running_mean is not None and self.running_var is not None:
            self.track(mean.detach(), var.detach(), count.detach())
        out = centered * (var + self.eps).rsqrt().reshape(shape)
        if self.weight is not None:
            out = out * self.weight.reshape(shape)
        return out if self.bias is None else out + self.bias.reshape(shape)

    def track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Moves the running statistics, with the unbiased variance."""
        assert self.running_mean is not None and self.running_var is not None
        with no_grad():
            momentum = self.momentum
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                if momentum is None:
                    momentum = 1.0 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean, momentum or 0.0)
            self.running_var.lerp_(var * (count / (count - 1)), momentum or 0.0)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """A module whose batch normalisations are of this class, with their own tensors."""
        made = module
        if isinstance(module, BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine,
                       module.track_running_stats, process_group, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class BatchNorm1d(BatchNorm, takes=(2, 3)):
    """Batch normalisation of vectors or sequences: see `nn.functional.batch_norm`.

    Shapes: (B, C) or (B, C, L).

    >>> layer = BatchNorm1d(2)
    >>> layer(tensorlib.tensor([[1., 2.], [3., 6.]])).detach()
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    >>> layer.running_mean
    tensor([0.2000, 0.4000])
    """


class BatchNorm2d(BatchNorm, takes=(4,)):
    """Batch normalisation of images: see `nn.functional.batch_norm`. Shapes: (B, C, H, W)."""


class BatchNorm3d(BatchNorm, takes=(5,)):
    """Batch normalisation of volumes: see `nn.functional.batch_norm`. Shapes: (B, C, D, H, W)."""


# ---- lazy ----------------------------------------------------------------------------------------

class LazyNormalizing(LazyModuleMixin, Normalizing, becomes=BatchNorm1d):
    """A normalisation that takes `num_features` from the first input that it sees."""

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def make_parameters(self, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        """Makes parameters and statistics without shapes."""
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(
                name, UninitializedParameter(device=device, dtype=dtype) if wanted else None)
        self.register_statistics(UninitializedBuffer(device=device, dtype=dtype),
                                 UninitializedBuffer(device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Sets weights to one, biases to zero, and forgets the statistics, where there are any."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Makes parameters and statistics fit an input."""
        self._check_input_dim(input)
        self.num_features = self.features_of(input)
        if self.has_uninitialized_params():      # no state was loaded before
            shape = (self.num_features,)
            self.materialize(weight=shape, bias=shape, running_mean=shape, running_var=shape)
            self.reset_parameters()

    def features_of(self, input: Tensor) -> int:
        """How many features an input has."""
        return input.shape[1]


class LazyBatchNorm1d(LazyNormalizing, BatchNorm1d):
    """A `BatchNorm1d` that takes `num_features` from the first input that it sees."""


class LazyBatchNorm2d(LazyNormalizing, BatchNorm2d, becomes=BatchNorm2d):
    """A `BatchNorm2d` that takes `num_features` from the first input that it sees."""


class LazyBatchNorm3d(LazyNormalizing, BatchNorm3d, becomes=BatchNorm3d):
    """A `BatchNorm3d` that takes `num_features` from the first input that it sees."""
