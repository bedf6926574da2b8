"""Random changes of colours, and random erasing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.nn.modules.repr import Shown
from tensorlib.utils.data.transforms import colours, geometry
from tensorlib.utils.data.transforms.composed import Drawn, drawn
from tensorlib.utils.data.transforms.images import require_image, sizes_of
from tensorlib.utils.data.transforms.random_geometry import TRIES, drawn_place

Factor = float | Sequence[float]
Range = tuple[float, float]


def factors(name: str, value: Any, center: float = 1.0, low: float = 0.0,
            high: float = math.inf) -> Range | None:
    """A range of factors, given as two numbers or as one around what changes nothing."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"ColorJitter: {name}, if it is one number, must be 0 or more, got "
                             f"{value}")
        value = (max(center - value, 0.0) if center else center - value, center + value)
    first, last = value
    if not low <= first <= last <= high:
        raise ValueError(f"ColorJitter: {name} is a range from {low} to {high}, got {value}")
    return None if first == last == center else (float(first), float(last))


class ColorJitter(Shown):
    """The image with other colours, changed in an order that is drawn.

    Args:
        brightness: the range of the factor of `functional.adjust_brightness`, or how far it may be
            from 1.
        contrast: the same of `adjust_contrast`.
        saturation: the same of `adjust_saturation`.
        hue: the same of `adjust_hue`, or how far it may be from 0: at most 0.5.

    Raises: ValueError for what is no such range.

    >>> ColorJitter(brightness=0.2, hue=0.1)(tensorlib.ones(3, 4, 4)).shape
    tensorlib.Size([3, 4, 4])
    """

    shown = ("brightness", "contrast", "saturation", "hue")

    def __init__(self, brightness: Factor = 0, contrast: Factor = 0, saturation: Factor = 0,
                 hue: Factor = 0) -> None:
        super().__init__()
        self.brightness = factors("brightness", brightness)
        self.contrast = factors("contrast", contrast)
        self.saturation = factors("saturation", saturation)
        self.hue = factors("hue", hue, 0.0, -0.5, 0.5)

    def forward(self, img: Tensor) -> Tensor:
        steps: list[tuple[Callable[[Tensor, float], Tensor], Range | None]] = [
            (colours.adjust_brightness, self.brightness), (colours.adjust_contrast, self.contrast),
            (colours.adjust_saturation, self.saturation), (colours.adjust_hue, self.hue)]
        sizes_of("ColorJitter", img, 3)
        for place in tl.randperm(len(steps)).tolist():
            adjust, range_ = steps[place]
            if range_ is not None:
                img = adjust(img, drawn(*range_))
        return img


class RandomGrayscale(Drawn):
    """The image in grey, in as many channels as it had, or as it was.

    Args:
        p: how likely it is that it becomes grey.
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def changed(self, img: Tensor) -> Tensor:
        """The image in grey."""
        return colours.rgb_to_grayscale(img, sizes_of("RandomGrayscale", img, 3)[0])


class GaussianBlur(Shown):
    """The image blurred, more or less.

    Args:
        kernel_size: how many pixels a mean is over, odd: one number, or (across, down).
        sigma: the least and the greatest standard deviation of their weights, or one for both.
    """

    shown = ("kernel_size", "sigma")

    def __init__(self, kernel_size: int | Sequence[int],
                 sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        colours.blur_sizes("GaussianBlur", kernel_size)
        self.kernel_size = kernel_size
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else tuple(sigma)
        if len(self.sigma) != 2 or not 0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError("GaussianBlur: sigma is one number above 0, or two from low to high, "
                             f"got {sigma!r}")

    def forward(self, img: Tensor) -> Tensor:
        return colours.gaussian_blur(img, self.kernel_size, drawn(*self.sigma))


class RandomErasing(Drawn):
    """The image with a part of it hidden, or as it was.

    Args:
        p: how likely it is that a part is hidden.
        scale: the smallest and the largest part of the area.
        ratio: the least and the greatest height, in widths.
        value: what stands there: a number, one for each channel, or "random" for normal numbers.
        inplace: whether to write into the image.
    """

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33),
                 ratio: Sequence[float] = (0.3, 3.3), value: Any = 0,
                 inplace: bool = False) -> None:
        super().__init__(p)
        if len(scale) != 2 or not 0 <= scale[0] <= scale[1] <= 1:
            raise ValueError(f"RandomErasing: scale is two numbers from 0 to 1, got {scale!r}")
        if len(ratio) != 2 or not 0 < ratio[0] <= ratio[1]:
            raise ValueError(f"RandomErasing: ratio is two numbers above 0, got {ratio!r}")
        if isinstance(value, str) and value != "random":
            raise ValueError("RandomErasing: value is a number, several, or 'random', got "
                             f"{value!r}")
        self.scale, self.ratio, self.value, self.inplace = scale, ratio, value, inplace

    def changed(self, img: Tensor) -> Tensor:
        """The image with a part hidden, if one that was drawn fits."""
        require_image("RandomErasing", img, 3)
        channels, height, width = img.shape[-3:]
        for _ in range(TRIES):
            area = height * width * drawn(*self.scale)
            form = math.exp(drawn(*map(math.log, self.ratio)))
            tall, wide = round(math.sqrt(area * form)), round(math.sqrt(area / form))
            if tall < height and wide < width:
                hidden = self.hidden(img, channels, tall, wide)
                return geometry.erase(img, drawn_place(height, tall), drawn_place(width, wide),
                                      tall, wide, hidden, self.inplace)
        return img

    def hidden(self, img: Tensor, channels: int, tall: int, wide: int) -> Any:
        """What stands in the place of the part."""
        if isinstance(self.value, str):
            return tl.randn(channels, tall, wide).to(img.dtype)
        if isinstance(self.value, (int, float)):
            return self.value
        values = tl.as_tensor(self.value, dtype=img.dtype)
        if len(values) not in (1, channels):
            raise ValueError(f"RandomErasing: value has {len(values)} numbers, for an image of "
                             f"{channels} channels")
        return values.view(-1, 1, 1)
