"""The multilayer perceptron."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from tensorlib import Tensor, nn


class MLP(nn.Sequential):
    """A multilayer perceptron: linear layers, with a non-linear function between them.

    Args:
        in_channels: the numbers of an example.
        hidden_channels: those of each layer; the last one's are the output.
        activation_layer: what makes the module between layers.
        bias: whether layers add a vector.
        dropout: how likely each hidden number is left out in training.

    Shapes: (*, in_channels) -> (*, hidden_channels[-1])
    Raises: ValueError for no layers.

    >>> MLP(2, [8, 8, 1])(tensorlib.ones(5, 2)).shape
    tensorlib.Size([5, 1])
    """

    def __init__(self, in_channels: int, hidden_channels: Sequence[int],
                 activation_layer: Callable[[], nn.Module] = nn.ReLU, bias: bool = True,
                 dropout: float = 0.0) -> None:
        if not hidden_channels:
            raise ValueError("MLP: hidden_channels has one number or more, the last for the output")
        layers: list[nn.Module] = []
        for before, after in pairwise([in_channels, *hidden_channels]):
            if layers:
                layers.append(activation_layer())
                if dropout:
                    layers.append(nn.Dropout(dropout))
            layers.append(nn.Linear(before, after, bias=bias))
        super().__init__(*layers)

    def forward(self, input: Any) -> Tensor:
        output: Tensor = super().forward(input)
        return output
