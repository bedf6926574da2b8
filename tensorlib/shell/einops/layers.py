"""The layers of einops as modules: `Rearrange`, `Reduce` and `EinMix`."""

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from tensorlib import Tensor, einsum, nn, zeros

__all__ = ["EinMix", "Rearrange", "Reduce"]


class Rearrange(RearrangeMixin, nn.Module):  # type: ignore[misc]
    """`einops.rearrange` as a module."""

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = self._apply_recipe(input)
        return result


class Reduce(ReduceMixin, nn.Module):  # type: ignore[misc]
    """`einops.reduce` as a module."""

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = self._apply_recipe(input)
        return result


class EinMix(_EinmixMixin, nn.Module):  # type: ignore[misc]
    """A linear layer over axes that a pattern names."""

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any,
                           bias_bound: float) -> None:
        self.weight = nn.Parameter(zeros(weight_shape).uniform_(-weight_bound, weight_bound))
        self.bias = None if bias_shape is None else nn.Parameter(
            zeros(bias_shape).uniform_(-bias_bound, bias_bound))

    def _create_rearrange_layers(self, pre_reshape_pattern: Any, pre_reshape_lengths: Any,
                                 post_reshape_pattern: Any, post_reshape_lengths: Any) -> None:
        self.pre_rearrange = None if pre_reshape_pattern is None else Rearrange(
            pre_reshape_pattern, **pre_reshape_lengths)
        self.post_rearrange = None if post_reshape_pattern is None else Rearrange(
            post_reshape_pattern, **post_reshape_lengths)

    def forward(self, input: Tensor) -> Tensor:
        """The products, summed over the axes that the output lacks."""
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result: Tensor = einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)
