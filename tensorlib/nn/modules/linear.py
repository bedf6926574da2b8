"""Linear layers."""

from typing import Any

from tensorlib import Tensor, empty
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.modules.module import Module
from tensorlib.nn.modules.weighted import LazyWeighted, Weighted
from tensorlib.nn.parameter import Parameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """What it is given, unchanged, whatever arguments it is made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Weighted):
    """input @ weight.mT + bias: see `nn.functional.linear`.

    Shapes: (*, in_features) -> (*, out_features); weight (out_features, in_features).

    >>> layer = Linear(3, 2)
    >>> layer(tensorlib.ones(5, 3)).shape
    tensorlib.Size([5, 2])
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.make_parameters(bias, device, dtype)

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the weight and the bias."""
        return (self.out_features, self.in_features), (self.out_features,)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class NonDynamicallyQuantizableLinear(Linear):
    """The last `Linear` of attention, which has a name of its own where modules are printed."""


class LazyLinear(LazyWeighted, Linear, becomes=Linear):
    """A `Linear` that takes `in_features` from the first input that it sees.

    >>> layer = LazyLinear(2)
    >>> layer(tensorlib.ones(5, 3)).shape
    tensorlib.Size([5, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(self, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, out_features, bias, device, dtype)

    def take_channels(self, input: Tensor) -> None:
        """Records the features of an input."""
        self.in_features = input.shape[-1]


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
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")
