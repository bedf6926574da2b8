"""Normalisation layers without batch statistics: layer, RMS, group, local response."""

from collections.abc import Sequence
from typing import Any

from tensorlib import Size, Tensor, empty
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]

_shape_t = int | list[int] | Size                # the name in annotations for PyTorch


class Scaling(Module):
    """A normalisation after which each element has a weight and, it may be, a bias."""

    weight: Tensor | None
    bias: Tensor | None

    def make_parameters(self, shape: tuple[int, ...], names: Sequence[str], device: Any,
                        dtype: Any) -> None:
        """Makes the parameters of these names; None is in the places of the others."""
        for name in ("weight", "bias"):
            self.register_parameter(name, Parameter(
                empty(shape, device=device, dtype=dtype)) if name in names else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weights to one, and biases to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def shape_of(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape, which may be given as one number."""
    if isinstance(normalized_shape, int):
        return (normalized_shape,)
    return tuple(normalized_shape)


class LayerNorm(Scaling):
    """Each example less its mean over the last dims, by its deviation; times weight, plus bias.

    Shapes: (*, *normalized_shape); weight and bias have `normalized_shape`.
    See `nn.functional.layer_norm`. Source: Ba, Kiros and Hinton, "Layer Normalization", 2016.
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5,
                 elementwise_affine: bool = True, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape, self.eps = shape_of(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        names = ["weight", "bias"][:1 + bias] if elementwise_affine else []
        self.make_parameters(self.normalized_shape, names, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}")


class RMSNorm(Scaling):
    """Each example by the root of its mean square over the last dims, times weight.

    Shapes: as `LayerNorm`. See `nn.functional.rms_norm`. Source: Zhang and Sennrich, "Root Mean
    Square Layer Normalization", NeurIPS 2019.
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None,
                 elementwise_affine: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape, self.eps = shape_of(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self.make_parameters(self.normalized_shape, ["weight"] * elementwise_affine, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}")


class GroupNorm(Scaling):
    """Each group of channels of an example less its mean, by its deviation.

    Shapes: (B, C, *), where C is `num_channels`. See `nn.functional.group_norm`. Source: Wu and He,
    "Group Normalization", ECCV 2018. Raises: ValueError for groups of different sizes.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels ({num_channels}) must be divisible by "
                             f"num_groups ({num_groups})")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        names = ["weight", "bias"][:1 + bias] if affine else []
        self.make_parameters((num_channels,), names, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class LocalResponseNorm(Module):
    """Each element by a power of the mean square of its neighbours in other channels.

    See `nn.functional.local_response_norm`.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images, under its older name."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)
