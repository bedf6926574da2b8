"""Normalisation of each channel of each example."""

from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.batchnorm import LazyNormalizing, Normalizing

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
           "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class InstanceNorm(Normalizing):
    """Each channel of each example less its mean, by its deviation.

    Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", 2016.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = False, track_running_stats: bool = False, device: Any = None,
                 dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input. Raises: ValueError for wrong dims or channels."""
        self._check_input_dim(input)
        dims = self._takes[0]             # of one example, the channels among them
        channels = input.shape[-dims]
        if channels != self.num_features:
            text = (f"{type(self).__name__}: expected {self.num_features} channels, got "
                    f"{channels}")
            if self.affine:
                raise ValueError(text)
            warn_of(text + ", which is not used because affine=False", level=3)
        single = input.ndim == dims
        output = F.instance_norm(
            input.unsqueeze(0) if single else input, self.running_mean, self.running_var,
            self.weight, self.bias, self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps)
        return output.squeeze(0) if single else output


_InstanceNorm = InstanceNorm         # what scripts for PyTorch call it


class InstanceNorm1d(InstanceNorm, takes=(2, 3)):
    """Normalisation of each channel of (B, C, L) or (C, L): `nn.functional.instance_norm`."""


class InstanceNorm2d(InstanceNorm, takes=(3, 4)):
    """Normalisation of each channel of (B, C, H, W) or (C, H, W): `nn.functional.instance_norm`."""


class InstanceNorm3d(InstanceNorm, takes=(4, 5)):
    """Normalisation of each channel of (B, C, D, H, W) or (C, D, H, W).

    See `nn.functional.instance_norm`.
    """


class LazyInstanceNorm(LazyNormalizing, InstanceNorm, becomes=InstanceNorm1d):
    """An `InstanceNorm` that takes `num_features` from the first input that it sees."""

    def features_of(self, input: Tensor) -> int:
        """How many channels an input has."""
        return input.shape[-self._takes[0]]


class LazyInstanceNorm1d(LazyInstanceNorm, InstanceNorm1d):
    """An `InstanceNorm1d` that takes `num_features` from the first input that it sees."""


class LazyInstanceNorm2d(LazyInstanceNorm, InstanceNorm2d, becomes=InstanceNorm2d):
    """An `InstanceNorm2d` that takes `num_features` from the first input that it sees."""


class LazyInstanceNorm3d(LazyInstanceNorm, InstanceNorm3d, becomes=InstanceNorm3d):
    """An `InstanceNorm3d` that takes `num_features` from the first input that it sees."""
