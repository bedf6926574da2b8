"""`Unfold` and `Fold`: sliding windows as columns (im2col), and their sums as images (col2im)."""

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.dims import Sizes
from tensorlib.nn.modules.repr import Shown

__all__ = ["Fold", "Unfold"]


class Fold(Shown):
    """Columns added up as windows of images: see `nn.functional.fold`."""

    shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1,
                 padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding,
                      self.stride)


class Unfold(Shown):
    """Windows of images as columns: see `nn.functional.unfold`."""

    shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
                 stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
