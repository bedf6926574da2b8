"""Layers that sum windows up: by their maximum, their mean or a norm."""

from typing import Any

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.module import Module
from tensorlib.nn.modules.repr import Shown
from tensorlib.nn.modules.sizes import Sizes, for_each_dim

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


# ---- maxima --------------------------------------------------------------------------------------

class MaxPool(Shown):
    """The largest number of each window; with `return_indices`, and where it was."""

    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 dilation: Sizes = 1, return_indices: bool = False,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode


class MaxPool1d(MaxPool):
    """The largest numbers of windows of (B, C, L): see `nn.functional.max_pool1d`."""

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)


class MaxPool2d(MaxPool):
    """The largest numbers of windows of (B, C, H, W): see `nn.functional.max_pool2d`.

    >>> MaxPool2d(2)(tensorlib.ones(1, 3, 8, 8)).shape
    tensorlib.Size([1, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)


class MaxPool3d(MaxPool):
    """The largest numbers of windows of (B, C, D, H, W): see `nn.functional.max_pool3d`."""

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, self.return_indices)


class FractionalMaxPool(Module):
    """The largest number of each of a number of windows, whose places are drawn.

    The number is `output_size`, or a part of the input's size, `output_ratio`.
    """

    ndim: int

    def __init__(self, kernel_size: Sizes, output_size: Sizes | None = None,
                 output_ratio: float | tuple[float, ...] | None = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: takes either output_size or output_ratio")
        self.kernel_size = for_each_dim(f"{name}: kernel_size", kernel_size, self.ndim)
        self.output_size = None if output_size is None else for_each_dim(
            f"{name}: output_size", output_size, self.ndim)
        self.output_ratio = None if output_ratio is None else for_each_dim(
            f"{name}: output_ratio", output_ratio, self.ndim)
        if self.output_ratio is not None and not all(0 < part < 1 for part in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)


class FractionalMaxPool2d(FractionalMaxPool):
    """The largest numbers of drawn windows of images: `nn.functional.fractional_max_pool2d`.

    Source: Graham, "Fractional Max-Pooling", 2014.
    """

    ndim = 2

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.fractional_max_pool2d(input, self.kernel_size, self.output_size,
                                       self.output_ratio, self.return_indices,
                                       self._random_samples)


class FractionalMaxPool3d(FractionalMaxPool):
    """The largest numbers of drawn windows of volumes: `nn.functional.fractional_max_pool3d`."""

    ndim = 3

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.fractional_max_pool3d(input, self.kernel_size, self.output_size,
                                       self.output_ratio, self.return_indices,
                                       self._random_samples)


class MaxUnpool(Shown):
    """Numbers put back to where `MaxPool` found them, among zeros."""

    shown = ("kernel_size", "stride", "padding")
    ndim: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0) -> None:
        super().__init__()
        name, stride = type(self).__name__, kernel_size if stride is None else stride
        self.kernel_size = for_each_dim(f"{name}: kernel_size", kernel_size, self.ndim)
        self.stride = for_each_dim(f"{name}: stride", stride, self.ndim)
        self.padding = for_each_dim(f"{name}: padding", padding, self.ndim)


class MaxUnpool1d(MaxUnpool):
    """What `MaxPool1d` took away, as zeros: see `nn.functional.max_unpool1d`."""

    ndim = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """A tensor of `output_size`, or of the size that is usual."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)


class MaxUnpool2d(MaxUnpool):
    """What `MaxPool2d` took away, as zeros: see `nn.functional.max_unpool2d`."""

    ndim = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """A tensor of `output_size`, or of the size that is usual."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)


class MaxUnpool3d(MaxUnpool):
    """What `MaxPool3d` took away, as zeros: see `nn.functional.max_unpool3d`."""

    ndim = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """A tensor of `output_size`, or of the size that is usual."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding,
                              output_size)


# ---- means ---------------------------------------------------------------------------------------

class AvgPool1d(Shown):
    """The means of windows of (B, C, L): see `nn.functional.avg_pool1d`."""

    shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size = for_each_dim("AvgPool1d: kernel_size", kernel_size, 1)
        self.stride = for_each_dim("AvgPool1d: stride", stride, 1)
        self.padding = for_each_dim("AvgPool1d: padding", padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


class AvgPool(Shown):
    """The mean of each window, or its sum by `divisor_override`."""

    shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class AvgPool2d(AvgPool):
    """The means of windows of (B, C, H, W): see `nn.functional.avg_pool2d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)


class AvgPool3d(AvgPool):
    """The means of windows of (B, C, D, H, W): see `nn.functional.avg_pool3d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)


# ---- norms ---------------------------------------------------------------------------------------

class LPPool(Shown):
    """The norm of each window, of power `norm_type`."""

    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode


class LPPool1d(LPPool):
    """The norms of windows of (B, C, L): see `nn.functional.lp_pool1d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)


class LPPool2d(LPPool):
    """The norms of windows of (B, C, H, W): see `nn.functional.lp_pool2d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)


class LPPool3d(LPPool):
    """The norms of windows of (B, C, D, H, W): see `nn.functional.lp_pool3d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride,
                           self.ceil_mode)


# ---- to a given size -----------------------------------------------------------------------------

class AdaptiveAvgPool(Shown):
    """Means of as many windows as the output has elements."""

    shown = ("output_size",)

    def __init__(self, output_size: int | None | tuple[int | None, ...]) -> None:
        super().__init__()
        self.output_size = output_size


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """(B, C, L) in a given size, by means: see `nn.functional.adaptive_avg_pool1d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """(B, C, H, W) in a given size, by means: see `nn.functional.adaptive_avg_pool2d`.

    >>> AdaptiveAvgPool2d((1, None))(tensorlib.ones(2, 3, 5, 7)).shape
    tensorlib.Size([2, 3, 1, 7])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """(B, C, D, H, W) in a given size, by means: see `nn.functional.adaptive_avg_pool3d`."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool(Shown):
    """The largest numbers of as many windows as the output has elements."""

    shown = ("output_size",)

    def __init__(self, output_size: int | None | tuple[int | None, ...],
                 return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """(B, C, L) in a given size, by maxima: see `nn.functional.adaptive_max_pool1d`."""

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """(B, C, H, W) in a given size, by maxima: see `nn.functional.adaptive_max_pool2d`."""

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """(B, C, D, H, W) in a given size, by maxima: see `nn.functional.adaptive_max_pool3d`."""

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
