"""Convolutions and transposed convolutions."""

from typing import Any

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.dims import PerDim, Sizes
from tensorlib.nn.modules.weighted import LazyWeighted, Weighted

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(PerDim, Weighted):
    """What convolutions of all kinds have in common: their options, weights and text."""

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding",
                     "in_channels", "out_channels", "kernel_size"]

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes,
                 padding: Sizes | str, dilation: Sizes, transposed: bool, output_padding: Sizes,
                 groups: int, bias: bool, padding_mode: str, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        name = type(self).__name__
        if not hasattr(self, "ndim"):              # a class from outside, of any number of dims
            self.ndim = len(tuple(kernel_size))  # type: ignore[arg-type]
        if groups <= 0:
            raise ValueError(f"{name}: groups must be a positive integer, got {groups}")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name}: {what} ({channels}) must be divisible by groups "
                                 f"({groups})")
        if padding_mode not in MODES:
            raise ValueError(f"{name}: padding_mode must be one of {MODES}, got {padding_mode!r}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{name}: invalid padding string {padding!r}, should be 'same' or "
                             "'valid'")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = self.each("kernel_size", kernel_size)
        self.stride = self.each("stride", stride, single=True)
        self.padding = (padding if isinstance(padding, str)
                        else self.each("padding", padding, single=True))
        self.dilation = self.each("dilation", dilation, single=True)
        self.output_padding = self.each("output_padding", output_padding, single=True)
        self.transposed, self.groups, self.padding_mode = transposed, groups, padding_mode
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"{name}: padding='same' is not supported for strided convolutions, "
                             f"got stride {self.stride}")
        self.make_parameters(bias, device, dtype)

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the weight and the bias."""
        channels = self.out_channels, self.in_channels
        first, second = channels[::-1] if self.transposed else channels
        return (first, second // self.groups, *self.kernel_size), (self.out_channels,)

    def extra_repr(self) -> str:
        usual: dict[str, Any] = {
            "padding": (0,) * self.ndim, "dilation": (1,) * self.ndim,
            "output_padding": (0,) * self.ndim, "groups": 1}
        texts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                 f"stride={self.stride}"]
        texts += [f"{name}={getattr(self, name)}" for name, value in usual.items()
                  if getattr(self, name) != value]
        if self.bias is None:
            texts.append("bias=False")
        if self.padding_mode != "zeros":
            texts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(texts)


_ConvNd = Convolution                # what scripts for PyTorch call it


# ---- convolutions ------------------------------------------------------------------------------

class Conv(Convolution):
    """A convolution in any number of dims."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, False,
                         0, groups, bias, padding_mode, device, dtype)

    def margins(self) -> list[int]:
        """What to add before and after each dim, the last dim first, as `pad` takes it."""
        found: list[int] = []
        own: Any
        for size, step, own in zip(reversed(self.kernel_size), reversed(self.dilation),
                                   reversed(self.padding)):
            if isinstance(own, str):
                total = step * (size - 1) * (self.padding == "same")
                found += [total // 2, total - total // 2]
            else:
                found += [own, own]
        return found

    @property
    def _reversed_padding_repeated_twice(self) -> Any:
        """What `pad` takes for a padding mode other than zeros, which others may choose."""
        found = vars(self).get("_chosen_margins")
        return self.margins() if found is None else found

    @_reversed_padding_repeated_twice.setter
    def _reversed_padding_repeated_twice(self, margins: Any) -> None:
        self._chosen_margins = margins

    def padded(self, input: Tensor) -> Tensor:
        """An input with its margins."""
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The sums over windows with another weight and bias: each number of dims has its own."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(Conv, ndim=1):
    """A convolution over one dim: see `nn.functional.conv1d`.

    Shapes: (B, in_channels, L) or (in_channels, L); weight (out_channels, in_channels / groups, K).
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = self.padded(input), 0
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(Conv, ndim=2):
    """A convolution over images: see `nn.functional.conv2d`.

    Shapes: (B, in_channels, H, W) or (in_channels, H, W);
    weight (out_channels, in_channels / groups, KH, KW).

    >>> layer = Conv2d(3, 8, kernel_size=3, padding=1)
    >>> layer(tensorlib.ones(2, 3, 28, 28)).shape
    tensorlib.Size([2, 8, 28, 28])
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = self.padded(input), 0
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(Conv, ndim=3):
    """A convolution over volumes: see `nn.functional.conv3d`.

    Shapes: (B, in_channels, D, H, W) or (in_channels, D, H, W);
    weight (out_channels, in_channels / groups, KD, KH, KW).
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = self.padded(input), 0
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


# ---- transposed --------------------------------------------------------------------------------

class ConvTranspose(Convolution):
    """The transpose of a convolution, in any number of dims."""

    _function = "conv_transpose{}d"

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True,
                 dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: only padding_mode 'zeros' is supported, got "
                             f"{padding_mode!r}")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, True,
                         output_padding, groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input: Tensor, output_size: Any, stride: Any, padding: Any,
                        kernel_size: Any, num_spatial_dims: int,
                        dilation: Any = None) -> tuple[int, ...]:
        """What to add to the output, so that it has a certain size. Raises: ValueError."""
        if output_size is None:
            return self.output_padding
        ndim = num_spatial_dims
        sizes = tuple(output_size)[-ndim:]
        if len(output_size) not in (ndim, input.ndim):
            raise ValueError(f"{type(self).__name__}: output_size must have {ndim} or "
                             f"{input.ndim} numbers, got {len(output_size)}")
        added = []
        for wanted, size, step, pad, window, apart in zip(
                sizes, input.shape[-ndim:], stride, padding, kernel_size, dilation or (1,) * ndim):
            least = (size - 1) * step - 2 * int(pad) + apart * (window - 1) + 1
            if not least <= wanted < least + step:
                raise ValueError(f"{type(self).__name__}: output_size {sizes} can't be had from an "
                                 f"input of {tuple(input.shape[-ndim:])}: one dim can be "
                                 f"{least} to {least + step - 1}")
            added.append(wanted - least)
        return tuple(added)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The outputs, of `output_size` where several sizes are possible."""
        added = self.output_padding if output_size is None else self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.ndim,
            self.dilation)
        return getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, added, self.groups,
            self.dilation)


_ConvTransposeNd = ConvTranspose


class ConvTranspose1d(ConvTranspose, ndim=1):
    """The transpose of a convolution over one dim: see `nn.functional.conv_transpose1d`.

    Shapes: (B, in_channels, L) or (in_channels, L); weight (in_channels, out_channels / groups, K).
    """


class ConvTranspose2d(ConvTranspose, ndim=2):
    """The transpose of a convolution over images: see `nn.functional.conv_transpose2d`.

    Shapes: (B, in_channels, H, W) or (in_channels, H, W);
    weight (in_channels, out_channels / groups, KH, KW).
    """


class ConvTranspose3d(ConvTranspose, ndim=3):
    """The transpose of a convolution over volumes: see `nn.functional.conv_transpose3d`.

    Shapes: (B, in_channels, D, H, W) or (in_channels, D, H, W);
    weight (in_channels, out_channels / groups, KD, KH, KW).
    """


# ---- lazy ----------------------------------------------------------------------------------------

class LazyConvolution(LazyWeighted, Convolution, becomes=Conv1d):
    """A convolution that takes `in_channels` from the first input that it sees."""

    def take_channels(self, input: Tensor) -> None:
        """Records the channels of an input. Raises: ValueError for what has no channels."""
        if input.ndim not in (self.ndim + 1, self.ndim + 2):
            raise ValueError(f"{type(self).__name__}: expected an input of {self.ndim + 1} or "
                             f"{self.ndim + 2} dims, got {input.ndim}")
        self.in_channels = input.shape[-self.ndim - 1]
        if self.in_channels % self.groups:
            raise ValueError(f"{type(self).__name__}: in_channels ({self.in_channels}) must be "
                             f"divisible by groups ({self.groups})")


class LazyConv(LazyConvolution, Conv):
    """A lazy convolution in any number of dims."""

    def __init__(self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                         padding_mode, device, dtype)


class LazyConvTranspose(LazyConvolution, ConvTranspose):
    """A lazy transpose of a convolution in any number of dims."""

    def __init__(self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True,
                 dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, out_channels, kernel_size, stride, padding, output_padding, groups,
                         bias, dilation, padding_mode, device, dtype)


class LazyConv1d(LazyConv, Conv1d):
    """A `Conv1d` that takes `in_channels` from the first input that it sees."""


class LazyConv2d(LazyConv, Conv2d, becomes=Conv2d):
    """A `Conv2d` that takes `in_channels` from the first input that it sees.

    >>> layer = LazyConv2d(8, kernel_size=3)
    >>> layer(tensorlib.ones(2, 3, 28, 28)).shape, layer.in_channels
    (tensorlib.Size([2, 8, 26, 26]), 3)
    """


class LazyConv3d(LazyConv, Conv3d, becomes=Conv3d):
    """A `Conv3d` that takes `in_channels` from the first input that it sees."""


class LazyConvTranspose1d(LazyConvTranspose, ConvTranspose1d, becomes=ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from the first input that it sees."""


class LazyConvTranspose2d(LazyConvTranspose, ConvTranspose2d, becomes=ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from the first input that it sees."""


class LazyConvTranspose3d(LazyConvTranspose, ConvTranspose3d, becomes=ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from the first input that it sees."""
