"""Pooling and unpooling layers."""

from typing import Any

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.dims import PerDim, Sizes
from tensorlib.nn.modules.repr import Shown

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


# ---- maxima --------------------------------------------------------------------------------------

class MaxPool(PerDim, Shown):
    """The largest number of each window; with `return_indices`, and where it was."""

    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    _function = "max_pool{}d"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 dilation: Sizes = 1, return_indices: bool = False,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices)


_MaxPoolNd = MaxPool                 # what scripts for PyTorch call it


class MaxPool1d(MaxPool, ndim=1):
    """The largest numbers of windows of (B, C, L): see `nn.functional.max_pool1d`."""


class MaxPool2d(MaxPool, ndim=2):
    """The largest numbers of windows of (B, C, H, W): see `nn.functional.max_pool2d`.

    >>> MaxPool2d(2)(tensorlib.ones(1, 3, 8, 8)).shape
    tensorlib.Size([1, 3, 4, 4])
    """


class MaxPool3d(MaxPool, ndim=3):
    """The largest numbers of windows of (B, C, D, H, W): see `nn.functional.max_pool3d`."""


class FractionalMaxPool(PerDim):
    """The largest number of each of a number of windows, whose places are drawn.

    The number is `output_size`, or a part of the input's size, `output_ratio`.
    """

    _function = "fractional_max_pool{}d"

    def __init__(self, kernel_size: Sizes, output_size: Sizes | None = None,
                 output_ratio: float | tuple[float, ...] | None = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: takes either output_size or output_ratio")
        self.kernel_size = self.each("kernel_size", kernel_size)
        self.output_size = self.output_ratio = None
        if output_size is not None:
            self.output_size = self.each("output_size", output_size)
        else:
            self.output_ratio = self.each("output_ratio", output_ratio)
        if self.output_ratio is not None and not all(0 < part < 1 for part in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return getattr(F, self._function)(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples)


class FractionalMaxPool2d(FractionalMaxPool, ndim=2):
    """The largest numbers of drawn windows of images: `nn.functional.fractional_max_pool2d`.

    Source: Graham, "Fractional Max-Pooling", 2014.
    """


class FractionalMaxPool3d(FractionalMaxPool, ndim=3):
    """The largest numbers of drawn windows of volumes: `nn.functional.fractional_max_pool3d`."""


class MaxUnpool(PerDim, Shown):
    """Numbers put back to where `MaxPool` found them, among zeros."""

    shown = ("kernel_size", "stride", "padding")
    _function = "max_unpool{}d"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0) -> None:
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size = self.each("kernel_size", kernel_size)
        self.stride = self.each("stride", stride)
        self.padding = self.each("padding", padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """A tensor of `output_size`, or of the size that is usual."""
        return getattr(F, self._function)(
            input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool, ndim=1):
    """What `MaxPool1d` took away, as zeros: see `nn.functional.max_unpool1d`."""


class MaxUnpool2d(MaxUnpool, ndim=2):
    """What `MaxPool2d` took away, as zeros: see `nn.functional.max_unpool2d`."""


class MaxUnpool3d(MaxUnpool, ndim=3):
    """What `MaxPool3d` took away, as zeros: see `nn.functional.max_unpool3d`."""


# ---- means ---------------------------------------------------------------------------------------

class AvgPool1d(PerDim, Shown, ndim=1):
    """The means of windows of (B, C, L): see `nn.functional.avg_pool1d`."""

    shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size = self.each("kernel_size", kernel_size)
        self.stride = self.each("stride", stride)
        self.padding = self.each("padding", padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


class AvgPool(PerDim, Shown):
    """The mean of each window, or its sum by `divisor_override`."""

    shown = ("kernel_size", "stride", "padding")
    _function = "avg_pool{}d"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override)


class AvgPool2d(AvgPool, ndim=2):
    """The means of windows of (B, C, H, W): see `nn.functional.avg_pool2d`."""


class AvgPool3d(AvgPool, ndim=3):
    """The means of windows of (B, C, D, H, W): see `nn.functional.avg_pool3d`."""


# ---- norms ---------------------------------------------------------------------------------------

class LPPool(PerDim, Shown):
    """The norm of each window, of power `norm_type`."""

    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _function = "lp_pool{}d"

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPool, ndim=1):
    """The norms of windows of (B, C, L): see `nn.functional.lp_pool1d`."""


class LPPool2d(LPPool, ndim=2):
    """The norms of windows of (B, C, H, W): see `nn.functional.lp_pool2d`."""


class LPPool3d(LPPool, ndim=3):
    """The norms of windows of (B, C, D, H, W): see `nn.functional.lp_pool3d`."""


# ---- to a given size -----------------------------------------------------------------------------

class AdaptiveAvgPool(PerDim, Shown):
    """Means of as many windows as the output has elements."""

    shown = ("output_size",)
    _function = "adaptive_avg_pool{}d"

    def __init__(self, output_size: int | None | tuple[int | None, ...]) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPool, ndim=1):
    """(B, C, L) in a given size, by means: see `nn.functional.adaptive_avg_pool1d`."""


class AdaptiveAvgPool2d(AdaptiveAvgPool, ndim=2):
    """(B, C, H, W) in a given size, by means: see `nn.functional.adaptive_avg_pool2d`.

    >>> AdaptiveAvgPool2d((1, None))(tensorlib.ones(2, 3, 5, 7)).shape
    tensorlib.Size([2, 3, 1, 7])
    """


class AdaptiveAvgPool3d(AdaptiveAvgPool, ndim=3):
    """(B, C, D, H, W) in a given size, by means: see `nn.functional.adaptive_avg_pool3d`."""


class AdaptiveMaxPool(PerDim, Shown):
    """The largest numbers of as many windows as the output has elements."""

    shown = ("output_size",)
    _function = "adaptive_max_pool{}d"

    def __init__(self, output_size: int | None | tuple[int | None, ...],
                 return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        """The largest numbers; with `return_indices` a tuple with their positions."""
        return getattr(F, self._function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool, ndim=1):
    """(B, C, L) in a given size, by maxima: see `nn.functional.adaptive_max_pool1d`."""


class AdaptiveMaxPool2d(AdaptiveMaxPool, ndim=2):
    """(B, C, H, W) in a given size, by maxima: see `nn.functional.adaptive_max_pool2d`."""


class AdaptiveMaxPool3d(AdaptiveMaxPool, ndim=3):
    """(B, C, D, H, W) in a given size, by maxima: see `nn.functional.adaptive_max_pool3d`."""
