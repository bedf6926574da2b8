"""Transforms without randomness: they do the same to each image, and so to a batch of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.nn.modules.repr import Shown
from tensorlib.utils.data.transforms import colours, geometry, images, pillow
from tensorlib.utils.data.transforms.geometry import Sizes
from tensorlib.utils.data.transforms.images import InterpolationMode


class ToTensor(nn.Module):
    """An image as a tensor (C, H, W) of floating-point numbers: 0 to 255 become 0 to 1.

    It takes PIL images, arrays (H, W, C) and tensors; see `functional.to_tensor`.

    >>> ToTensor()(tensorlib.tensor([[[0, 255]]], dtype=tensorlib.uint8))
    tensor([[[0., 1.]]])
    """

    on_batches = True

    def forward(self, pic: Any) -> Tensor:
        return images.to_tensor(pic)


class PILToTensor(nn.Module):
    """A PIL image or an array (H, W, C) as a tensor (C, H, W), with its values as they are."""

    on_batches = True

    def forward(self, pic: Any) -> Tensor:
        return images.pil_to_tensor(pic)


class ToPILImage(Shown):
    """A tensor (C, H, W), or an array (H, W, C), as an image of PIL's.

    Args:
        mode: what the channels are; see `functional.to_pil_image`.
    """

    shown = ("mode",)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def forward(self, pic: Any) -> Any:
        return pillow.to_pil_image(pic, self.mode)


class ConvertImageDtype(nn.Module):
    """The image in another dtype, with its values spread over what that one has.

    Args:
        dtype: the dtype, such as float32, whose values go from 0 to 1.
    """

    on_batches = True

    def __init__(self, dtype: tl.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return images.convert_image_dtype(image, self.dtype)


class Normalize(nn.Module):
    """The image less the mean of each channel, divided by its standard deviation.

    Args:
        mean: a number for each channel, or one for all.
        std: as `mean`.
        inplace: whether to write into the image.

    >>> Normalize((0.5,), (0.25,))(tensorlib.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """

    on_batches = True

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float],
                 inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return images.normalize(tensor, self.mean, self.std, self.inplace)

    def extra_repr(self) -> str:
        return f"mean={self.mean}, std={self.std}"


class Resize(nn.Module):
    """The image in another size.

    Args:
        size: a height and a width, or one number for the shorter side.
        interpolation: an InterpolationMode, or its value.
        max_size: the most that the longer side may become, where `size` is one number.
        antialias: whether a smaller image has all pixels of a larger one in it.
    """

    on_batches = True

    def __init__(self, size: Sizes, interpolation: Any = InterpolationMode.BILINEAR,
                 max_size: int | None = None, antialias: bool = True) -> None:
        super().__init__()
        self.size, self.interpolation = size, interpolation
        self.max_size, self.antialias = max_size, antialias
        geometry.pair("Resize", size)
        images.mode_of("Resize", interpolation, pillow.FILTERS)

    def forward(self, img: Tensor) -> Tensor:
        return geometry.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def extra_repr(self) -> str:
        mode = images.mode_of("Resize", self.interpolation, pillow.FILTERS)
        return (f"size={self.size}, interpolation={mode}, max_size={self.max_size}, "
                f"antialias={self.antialias}")


class CenterCrop(Shown):
    """The middle of the image; one that is smaller is padded by 0 first.

    Args:
        size: height and width, or one number for both.
    """

    on_batches = True

    shown = ("size",)

    def __init__(self, size: Sizes) -> None:
        super().__init__()
        self.size = geometry.pair("CenterCrop", size)

    def forward(self, img: Tensor) -> Tensor:
        return geometry.center_crop(img, self.size)


class Pad(nn.Module):
    """The image with more pixels on its sides.

    Args:
        padding: how many: one number for all sides, (left and right, top and bottom), or (left,
            top, right, bottom).
        fill: their value, in the mode "constant".
        padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    on_batches = True

    def __init__(self, padding: Sizes, fill: float = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        geometry.four_sides(padding)
        if padding_mode != "constant" and padding_mode not in geometry.INSIDE:
            raise ValueError("Pad: padding_mode must be constant, edge, reflect or symmetric, got "
                             f"{padding_mode!r}")
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Tensor) -> Tensor:
        return geometry.pad(img, self.padding, self.fill, self.padding_mode)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode}"


class Grayscale(Shown):
    """How bright each pixel is.

    Args:
        num_output_channels: 1, or 3 that are the same.
    """

    on_batches = True

    shown = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Tensor) -> Tensor:
        return colours.rgb_to_grayscale(img, self.num_output_channels)
