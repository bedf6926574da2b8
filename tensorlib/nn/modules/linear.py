"""Layers that multiply with a matrix of weights."""

import math
from typing import Any

from tensorlib import Tensor, empty
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.modules.lazy import LazyModuleMixin
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """What it is given, unchanged, whatever arguments it is made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """input @ weight.mT + bias: see `nn.functional.linear`.

    Shapes: (*, in_features) -> (*, out_features); weight (out_features, in_features).

    The parameters are drawn from -1/sqrt(in_features) to 1/sqrt(in_features).

    >>> layer = Linear(3, 2)
    >>> layer(tensorlib.ones(5, 3)).shape
    Size([5, 2])
    """

    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(
            (out_features,), device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_within_(self.bias, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        """The product."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from the first input that it sees.

    >>> layer = LazyLinear(2)
    >>> layer(tensorlib.ones(5, 3)).shape
    Size([5, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the parameters anew, where there are any yet."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Makes the parameters fit an input."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.materialize(weight=(self.out_features, self.in_features),
                             bias=(self.out_features,))
            self.reset_parameters()


class Bilinear(Module):
    """sum over i, j of x1[i] * weight[k, i, j] * x2[j] + bias[k]: see `nn.functional.bilinear`.

    Shapes: (*, in1_features), (*, in2_features) -> (*, out_features).
    """

    bias: Tensor | None

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be above 0, got {in1_features}")
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device,
                                      dtype=dtype))
        self.register_parameter("bias", Parameter(empty(
            (out_features,), device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        init.uniform_within_(self.weight, self.in1_features)
        if self.bias is not None:
            init.uniform_within_(self.bias, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The products."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")
