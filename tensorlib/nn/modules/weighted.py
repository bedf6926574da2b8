"""The base of layers with a weight and an optional bias, and of their lazy forms."""

import math
from typing import Any

from tensorlib import Tensor, empty
from tensorlib.nn import init
from tensorlib.nn.modules.lazy import LazyModuleMixin
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter, UninitializedParameter


class Weighted(Module):
    """A layer whose weight and bias have the shapes that it says, and are drawn in the usual way.

    That is evenly from -1/sqrt(n) to 1/sqrt(n), where n numbers make one of the output.
    """

    weight: Tensor
    bias: Tensor | None

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the weight and the bias: each layer has its own."""
        raise NotImplementedError

    def make_parameters(self, bias: bool, device: Any, dtype: Any) -> None:
        """Makes the weight, and the bias or None in its place."""
        weight, biases = (Parameter(empty(shape, device=device, dtype=dtype))
                          for shape in self.shapes())
        self.weight = weight
        self.register_parameter("bias", biases if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_within_(self.bias, init.fans(self.weight)[0])


class LazyWeighted(LazyModuleMixin, Weighted):
    """A layer whose weight and bias get their shapes from the first input that it sees."""

    def make_parameters(self, bias: bool, device: Any, dtype: Any) -> None:
        """Makes a weight, and a bias or None in its place, without shapes."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.register_parameter("bias", UninitializedParameter(
            device=device, dtype=dtype) if bias else None)

    def reset_parameters(self) -> None:
        """Draws the parameters anew, where there are any yet."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def take_channels(self, input: Tensor) -> None:
        """Notes how many channels an input has: each layer has its own way."""
        raise NotImplementedError

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters fit an input; the other arguments of the call are not needed."""
        self.take_channels(input)
        if self.has_uninitialized_params():      # no state was loaded before
            weight, bias = self.shapes()
            self.materialize(weight=weight, bias=bias)
            self.reset_parameters()
