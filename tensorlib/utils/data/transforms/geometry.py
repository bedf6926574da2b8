"""Flips, crops, padding, resizing and erasing of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.utils.data.transforms import pillow
from tensorlib.utils.data.transforms.images import (
    InterpolationMode,
    as_before,
    computable,
    mode_of,
    require_image,
    sizes_of,
)
from tensorlib.utils.data.transforms.pillow import is_of_pil

Sizes = int | Sequence[int]
RESIZING = ("nearest", "nearest-exact", "bilinear", "bicubic")


def pair(name: str, size: Any) -> tuple[int, int]:
    """A height and a width, given as one number or as two. Raises: ValueError."""
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    sizes = sizes * 2 if len(sizes) == 1 else sizes
    if len(sizes) != 2 or not all(isinstance(each, int) and each > 0 for each in sizes):
        raise ValueError(f"{name}: a size is an int of 1 or more, or a height and a width, got "
                         f"{size!r}")
    return sizes[0], sizes[1]


def hflip(img: Tensor) -> Tensor:
    """The image with left and right exchanged.

    Args:
        img: the image, (..., H, W).
    """
    if is_of_pil(img):
        return img.transpose(pillow.LEFT_RIGHT)
    require_image("hflip", img)
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    """The image with top and bottom exchanged.

    Args:
        img: the image, (..., H, W).
    """
    if is_of_pil(img):
        return img.transpose(pillow.TOP_BOTTOM)
    require_image("vflip", img)
    return img.flip(-2)


def four_sides(padding: Any) -> tuple[int, int, int, int]:
    """What is padded at the left, the top, the right and the bottom, given as torchvision does."""
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(sides) not in (1, 2, 4) or not all(isinstance(each, int) for each in sides):
        raise ValueError(f"pad: padding is an int, or 1, 2 or 4 of them, got {padding!r}")
    left, top, right, bottom = sides * (4 // len(sides))
    return left, top, right, bottom


def mirrored(place: Any, size: int, apart: int) -> Any:
    """Places beyond an image as those inside that a mirror at its edge shows."""
    period = max(2 * size - 2 * apart, 1)
    place = place % period
    return np.where(place < size, place, period - 1 - place + apart)


INSIDE: dict[str, Callable[[Any, int], Any]] = {      # where the pixel of each place comes from
    "edge": lambda place, size: np.clip(place, 0, size - 1),
    "reflect": lambda place, size: mirrored(place, size, 1),
    "symmetric": lambda place, size: mirrored(place, size, 0),
}


def pad(img: Tensor, padding: Sizes, fill: float = 0, padding_mode: str = "constant") -> Tensor:
    """The image with more pixels on its sides, or fewer where `padding` is negative.

    Args:
        img: the image, (..., H, W).
        padding: how many: one number for all sides, (left and right, top and bottom), or (left,
            top, right, bottom).
        fill: their value, in the mode "constant".
        padding_mode: "constant", "edge", "reflect" (without the pixels of the edge) or "symmetric".

    Raises: ValueError for a wrong `padding` or mode.

    >>> pad(tensorlib.tensor([[1, 2, 3]]), (1, 0), padding_mode="reflect")
    tensor([[2, 1, 2, 3, 2]])
    """
    left, top, right, bottom = four_sides(padding)
    if is_of_pil(img) and padding_mode in ("constant", *INSIDE):
        return pillow.padded(img, (left, top, right, bottom), fill, padding_mode)
    require_image("pad", img)
    if padding_mode == "constant":
        return F.pad(img, (left, right, top, bottom), value=fill)
    if padding_mode not in INSIDE:
        raise ValueError("pad: padding_mode must be constant, edge, reflect or symmetric, got "
                         f"{padding_mode!r}")
    for dim, before, after in ((-2, top, bottom), (-1, left, right)):
        size = img.shape[dim]
        if not size and (before > 0 or after > 0):
            raise ValueError(f"pad: an image without pixels has none to repeat: {tuple(img.shape)}")
        if before or after:
            places = INSIDE[padding_mode](np.arange(-before, size + after), size)
            img = img.index_select(dim, tl.from_numpy(places.astype(np.int64)))
    return img


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """A part of the image; what is beyond it is 0.

    Args:
        img: the image, (..., H, W).
        top: the first row.
        left: the first column.
        height: how many rows.
        width: how many columns.

    >>> crop(tensorlib.arange(6).view(2, 3), 1, 1, 2, 2)
    tensor([[4, 5],
            [0, 0]])
    """
    if is_of_pil(img):
        return img.crop((left, top, left + width, top + height))
    require_image("crop", img)
    if height < 0 or width < 0:
        raise ValueError(f"crop: height and width must be 0 or more, got {height} and {width}")
    rows, columns = img.shape[-2:]
    inside = img[..., max(top, 0):max(top + height, 0), max(left, 0):max(left + width, 0)]
    before = [min(max(-first, 0), count) for first, count in ((left, width), (top, height))]
    after = [count - had - lead for count, had, lead in (
        (width, inside.shape[-1], before[0]), (height, inside.shape[-2], before[1]))]
    return pad(inside, (*before, *after)) if any(before) or any(after) else inside


def center_crop(img: Tensor, output_size: Sizes) -> Tensor:
    """The middle of the image; one that is smaller is padded by 0 first.

    Args:
        img: the image, (..., H, W).
        output_size: height and width, or one number for both.
    """
    size = sizes_of("center_crop", img)[1:]
    height, width = pair("center_crop", output_size)
    tall, wide = (max(want - have, 0) for want, have in zip((height, width), size))
    if tall or wide:
        img = pad(img, (wide // 2, tall // 2, (wide + 1) // 2, (tall + 1) // 2))
        size = sizes_of("center_crop", img)[1:]
    top, left = (int(round((have - want) / 2)) for want, have in zip((height, width), size))
    return crop(img, top, left, height, width)


def new_size(image: tuple[int, int], size: Sizes, max_size: int | None) -> tuple[int, int]:
    """The height and width that `resize` gives an image, which keeps its form for one number."""
    given = (size,) if isinstance(size, int) else tuple(size)
    pair("resize", given)
    if len(given) == 2:
        if max_size is not None:
            raise ValueError("resize: max_size is for a size that is one number, the shorter side")
        return given[0], given[1]
    short, long = sorted(image)
    if not short:
        raise ValueError("resize: an image without pixels has no form to keep")
    new_short, new_long = given[0], int(given[0] * long / short)
    if max_size is not None:
        if max_size <= new_short:
            raise ValueError(f"resize: max_size ({max_size}) must be more than size ({new_short})")
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if image[1] <= image[0] else (new_short, new_long)


def resize(img: Tensor, size: Sizes, interpolation: Any = InterpolationMode.BILINEAR,
           max_size: int | None = None, antialias: bool = True) -> Tensor:
    """The image in another size.

    Args:
        img: the image, (..., H, W).
        size: a height and a width, or one number for the shorter side.
        interpolation: an InterpolationMode, or its value.
        max_size: the most that the longer side may become, where `size` is one number.
        antialias: whether a smaller image has all pixels of a larger one in it; of BILINEAR and
            BICUBIC. Pillow's images always have.

    Raises: ValueError for a size below 1 or an unknown mode.

    >>> resize(tensorlib.zeros(3, 20, 30), 10).shape
    tensorlib.Size([3, 10, 15])
    """
    _, *before = sizes_of("resize", img)
    of_pil = is_of_pil(img)
    mode = mode_of("resize", interpolation, pillow.FILTERS if of_pil else RESIZING)
    height, width = new_size((before[0], before[1]), size, max_size)
    if before == [height, width]:
        return img
    if of_pil:
        return img.resize((width, height), pillow.FILTERS[mode])
    smooth = mode in ("bilinear", "bicubic")
    lead = img.shape[:-2]
    found = F.interpolate(
        computable(img).reshape(1, lead.numel(), *before), size=(height, width), mode=mode,
        align_corners=False if smooth else None, antialias=antialias and smooth)
    return as_before(found.reshape(*lead, height, width), img.dtype)


def resized_crop(img: Tensor, top: int, left: int, height: int, width: int, size: Sizes,
                 interpolation: Any = InterpolationMode.BILINEAR, antialias: bool = True) -> Tensor:
    """A part of the image, in another size.

    Args:
        img: the image, (..., H, W).
        top: the first row.
        left: the first column.
        height: how many rows.
        width: how many columns.
        size: as of `resize`.
        interpolation: as of `resize`.
        antialias: as of `resize`.
    """
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """The image with a part of it written over.

    Args:
        img: the image, (..., H, W).
        i: the first row of the part.
        j: its first column.
        h: its rows.
        w: its columns.
        v: what stands there then: a number, or a tensor (..., h, w).
        inplace: whether to write into the image.
    """
    require_image("erase", img)
    img = img if inplace else img.clone()
    img[..., i:i + h, j:j + w] = v
    return img
