"""Random crops, flips, rotations and other changes of geometry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.nn.modules.repr import Shown
from tensorlib.utils.data.transforms import affine, geometry, pillow
from tensorlib.utils.data.transforms.composed import Drawn, drawn
from tensorlib.utils.data.transforms.geometry import Sizes, pair
from tensorlib.utils.data.transforms.images import InterpolationMode, mode_of, sizes_of

TRIES = 10                     # of a part that fits, before the middle is taken


def drawn_place(size: int, part: int) -> int:
    """Where a part of a length begins."""
    return int(tl.randint(0, size - part + 1, ()))


def interval(name: str, what: str, value: Any, most: float = math.inf) -> tuple[float, float]:
    """A range that is given as two numbers, or as one on both sides of 0. Raises: ValueError."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{name}: {what}, if it is one number, must be 0 or more, got {value}")
        value = (-value, value)
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}: {what} is one number or two, got {value!r}")
    low, high = value
    if not -most <= low <= high <= most:
        raise ValueError(f"{name}: {what} is a range within {most}, from low to high, got {value}")
    return float(low), float(high)


class RandomHorizontalFlip(Drawn):
    """The image with left and right exchanged, or as it was.

    Args:
        p: how likely it is that they are.
    """

    def changed(self, img: Tensor) -> Tensor:
        """The mirrored image."""
        return geometry.hflip(img)


class RandomVerticalFlip(Drawn):
    """The image with top and bottom exchanged, or as it was.

    Args:
        p: how likely it is that they are.
    """

    def changed(self, img: Tensor) -> Tensor:
        """The mirrored image."""
        return geometry.vflip(img)


class RandomCrop(Shown):
    """A part of the image, anywhere in it.

    Args:
        size: its height and width, or one number for both.
        padding: what is padded before, as of `Pad`.
        pad_if_needed: whether a smaller image is padded.
        fill: the value of padded pixels.
        padding_mode: as of `Pad`.

    Raises: ValueError for an image that is too small.
    """

    shown = ("size", "padding")

    def __init__(self, size: Sizes, padding: Sizes | None = None, pad_if_needed: bool = False,
                 fill: float = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.size, self.padding = pair("RandomCrop", size), padding
        self.pad_if_needed = pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Tensor, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """The top, left, height and width of a part."""
        (_, height, width), (tall, wide) = sizes_of("RandomCrop", img), output_size
        if height < tall or width < wide:
            raise ValueError(f"RandomCrop: an image of {(height, width)} is smaller than "
                             f"{tuple(output_size)}; pad_if_needed=True pads it")
        return drawn_place(height, tall), drawn_place(width, wide), tall, wide

    def forward(self, img: Tensor) -> Tensor:
        sizes_of("RandomCrop", img)
        if self.padding is not None:
            img = geometry.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            size = sizes_of("RandomCrop", img)[1:]
            tall, wide = (max(want - have, 0) for want, have in zip(self.size, size))
            img = geometry.pad(img, (wide, tall), self.fill, self.padding_mode)
        return geometry.crop(img, *self.get_params(img, self.size))


class RandomResizedCrop(nn.Module):
    """A part of the image, of any form, made into one size.

    Args:
        size: the height and width that it is made into, or one number for both.
        scale: the smallest and the largest part of the area.
        ratio: the least and the greatest width, in heights.
        interpolation: as of `Resize`.
        antialias: as of `Resize`.
    """

    def __init__(self, size: Sizes, scale: Sequence[float] = (0.08, 1.0),
                 ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: Any = InterpolationMode.BILINEAR, antialias: bool = True) -> None:
        super().__init__()
        for name, values in (("scale", scale), ("ratio", ratio)):
            if len(values) != 2 or not 0 < values[0] <= values[1]:
                raise ValueError(f"RandomResizedCrop: {name} is two numbers above 0, from low to "
                                 f"high, got {values!r}")
        self.size, self.scale, self.ratio = pair("RandomResizedCrop", size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias
        mode_of("RandomResizedCrop", interpolation, pillow.FILTERS)

    @staticmethod
    def get_params(img: Tensor, scale: Sequence[float], ratio: Sequence[float]
                   ) -> tuple[int, int, int, int]:
        """The top, left, height and width of a part."""
        _, height, width = sizes_of("RandomResizedCrop", img)
        for _ in range(TRIES):
            area = height * width * drawn(*scale)
            form = math.exp(drawn(*map(math.log, ratio)))
            wide, tall = round(math.sqrt(area * form)), round(math.sqrt(area / form))
            if 0 < wide <= width and 0 < tall <= height:
                return drawn_place(height, tall), drawn_place(width, wide), tall, wide
        wide, tall = width, height                       # else as much of it as the form allows
        if width < height * min(ratio):
            tall = round(width / min(ratio))
        elif width > height * max(ratio):
            wide = round(height * max(ratio))
        return (height - tall) // 2, (width - wide) // 2, tall, wide

    def forward(self, img: Tensor) -> Tensor:
        return geometry.resized_crop(img, *self.get_params(img, self.scale, self.ratio), self.size,
                                     self.interpolation, self.antialias)

    def extra_repr(self) -> str:
        return f"size={self.size}, scale={tuple(self.scale)}, ratio={tuple(self.ratio)}"


class RandomRotation(Shown):
    """The image turned by an angle.

    Args:
        degrees: the least and the greatest angle, or one number for both sides of 0.
        interpolation: `InterpolationMode.NEAREST` or BILINEAR, or the value of one.
        expand: whether the image becomes large enough for its corners.
        center: the point (x, y) around which it turns, from the upper left corner.
        fill: the value beyond the image: a number, or one for each channel.
    """

    shown = ("degrees", "expand")

    def __init__(self, degrees: float | Sequence[float],
                 interpolation: Any = InterpolationMode.NEAREST, expand: bool = False,
                 center: Sequence[float] | None = None, fill: Any = 0) -> None:
        super().__init__()
        self.degrees = interval("RandomRotation", "degrees", degrees)
        mode_of("RandomRotation", interpolation, pillow.TURNING)
        self.interpolation, self.expand = interpolation, expand
        self.center, self.fill = center, fill

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """An angle."""
        return drawn(*degrees)

    def forward(self, img: Tensor) -> Tensor:
        return affine.rotate(img, self.get_params(self.degrees), self.interpolation, self.expand,
                             self.center, self.fill)


class RandomAffine(Shown):
    """The image turned, moved, made larger and sheared.

    Args:
        degrees: the least and the greatest angle, or one number for both sides of 0.
        translate: how far it is moved at most, across and down, in widths and heights.
        scale: how much larger it becomes, at least and at most.
        shear: the angles of columns, at least and at most, or one number for both sides of 0; or
            four numbers, of which two are for rows.
        interpolation: `InterpolationMode.NEAREST` or BILINEAR, or the value of one.
        fill: the value beyond the image: a number, or one for each channel.
        center: the point (x, y) around which it turns, from the upper left corner.
    """

    shown = ("degrees", "translate", "scale", "shear")

    def __init__(self, degrees: float | Sequence[float], translate: Sequence[float] | None = None,
                 scale: Sequence[float] | None = None,
                 shear: float | Sequence[float] | None = None,
                 interpolation: Any = InterpolationMode.NEAREST, fill: Any = 0,
                 center: Sequence[float] | None = None) -> None:
        super().__init__()
        self.degrees = interval("RandomAffine", "degrees", degrees)
        if translate is not None and (len(translate) != 2
                                      or not all(0 <= part <= 1 for part in translate)):
            raise ValueError(f"RandomAffine: translate is two numbers from 0 to 1, got {translate}")
        if scale is not None and (len(scale) != 2 or not 0 < scale[0] <= scale[1]):
            raise ValueError("RandomAffine: scale is two numbers above 0, from low to high, got "
                             f"{scale}")
        mode_of("RandomAffine", interpolation, pillow.TURNING)
        self.translate, self.scale, self.shear = translate, scale, shear
        self.shears = sheared_by(shear)
        self.interpolation, self.fill, self.center = interpolation, fill, center

    def forward(self, img: Tensor) -> Tensor:
        _, height, width = sizes_of("RandomAffine", img)
        moved = [0, 0] if self.translate is None else [
            round(drawn(-part * size, part * size))
            for part, size in zip(self.translate, (width, height))]
        scale = 1.0 if self.scale is None else drawn(*self.scale)
        shear = [drawn(*angles) for angles in self.shears]
        return affine.affine(img, drawn(*self.degrees), moved, scale, shear, self.interpolation,
                             self.fill, self.center)


def sheared_by(shear: Any) -> list[tuple[float, float]]:
    """The ranges of the angles of columns and of rows."""
    if shear is None:
        return [(0.0, 0.0)] * 2
    if isinstance(shear, (int, float)) or len(shear) == 2:
        return [interval("RandomAffine", "shear", shear), (0.0, 0.0)]
    if len(shear) != 4:
        raise ValueError(f"RandomAffine: shear is one number, or two or four, got {shear!r}")
    return [interval("RandomAffine", "shear", shear[:2]),
            interval("RandomAffine", "shear", shear[2:])]
