"""Normalisation of each channel of each example."""

import warnings
from typing import Any

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.batchnorm import LazyNormalizing, Normalizing, check_dims

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
           "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class InstanceNorm(Normalizing):
    """Each channel of each example less its mean, by its deviation.

    Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", 2016.
    """

    dims: int                # of an example, the channels among them

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = False, track_running_stats: bool = False, device: Any = None,
                 dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        check_dims(self, input, self.dims, self.dims + 1)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input. Raises: ValueError for wrong dims or channels."""
        self._check_input_dim(input)
        channels = input.shape[-self.dims]
        if channels != self.num_features:
            text = (f"{type(self).__name__}: expected {self.num_features} channels, got "
                    f"{channels}")
            if self.affine:
                raise ValueError(text)
            warnings.warn(text + ", which is not used because affine=False", stacklevel=3)
        single = input.ndim == self.dims
        output = F.instance_norm(
            input.unsqueeze(0) if single else input, self.running_mean, self.running_var,
            self.weight, self.bias, self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps)
        return output.squeeze(0) if single else output


_InstanceNorm = InstanceNorm         # what scripts for PyTorch call it


class InstanceNorm1d(InstanceNorm):
    """Normalisation of each channel of (B, C, L) or (C, L): `nn.functional.instance_norm`."""

    dims = 2


class InstanceNorm2d(InstanceNorm):
    """Normalisation of each channel of (B, C, H, W) or (C, H, W): `nn.functional.instance_norm`."""

    dims = 3


class InstanceNorm3d(InstanceNorm):
    """Normalisation of each channel of (B, C, D, H, W) or (C, D, H, W).

    See `nn.functional.instance_norm`.
    """

    dims = 4


class LazyInstanceNorm(LazyNormalizing, InstanceNorm):
    """An `InstanceNorm` that takes `num_features` from the first input that it sees."""

    def features_of(self, input: Tensor) -> int:
        """How many channels an input has."""
        return input.shape[-self.dims]


class LazyInstanceNorm1d(LazyInstanceNorm, InstanceNorm1d):
    """An `InstanceNorm1d` that takes `num_features` from the first input that it sees."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(LazyInstanceNorm, InstanceNorm2d):
    """An `InstanceNorm2d` that takes `num_features` from the first input that it sees."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(LazyInstanceNorm, InstanceNorm3d):
    """An `InstanceNorm3d` that takes `num_features` from the first input that it sees."""

    cls_to_become = InstanceNorm3d
