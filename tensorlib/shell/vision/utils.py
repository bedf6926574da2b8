"""Images side by side in one, and in files, under torchvision's names.

>>> from tensorlib.vision.utils import make_grid
>>> make_grid(tensorlib.rand(6, 1, 28, 28), nrow=3).shape      # two rows, and 2 pixels between
tensorlib.Size([3, 62, 92])
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import tensorlib as tl
from tensorlib import Tensor

__all__ = ["make_grid", "save_image"]


@tl.no_grad()
def make_grid(tensor: Tensor | Sequence[Tensor], nrow: int = 8, padding: int = 2,
              normalize: bool = False, value_range: tuple[float, float] | None = None,
              scale_each: bool = False, pad_value: float = 0.0) -> Tensor:
    """One image of many: row by row, with a border of `padding` pixels around each.

    Args:
        tensor: images of one size, as a tensor or a list; those of one channel get three.
        nrow: how many are in a row.
        normalize: whether the elements are moved to the range from 0 to 1: from that of
            `value_range`, or of the elements themselves, of each image by itself if `scale_each`.
        pad_value: what the borders have.
    Shapes: (B, C, H, W), (C, H, W) or (H, W), or a list of these -> (C, H', W').
    Raises: TypeError for what are not images, ValueError for other numbers of dims and for none.
    """
    images = stacked(tensor)
    if normalize:
        groups = images.unbind() if scale_each else [images]
        parts = [in_unit_range(group, value_range) for group in groups]
        images = tl.stack(parts) if scale_each else parts[0]
    count, channels, height, width = images.shape
    if count == 1:
        return images[0]
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = images.new_full((channels, rows * height + padding, columns * width + padding),
                           pad_value)
    for place, image in enumerate(images.unbind()):
        top, left = (at * size + padding for at, size in zip(
            divmod(place, columns), (height, width), strict=True))
        grid[:, top:top + image.shape[1], left:left + image.shape[2]] = image
    return grid


def stacked(tensor: Tensor | Sequence[Tensor]) -> Tensor:
    """Images as one tensor (B, C, H, W) of at least three channels."""
    if not isinstance(tensor, Tensor):
        if not isinstance(tensor, (list, tuple)) or not all(
                isinstance(image, Tensor) for image in tensor):
            raise TypeError("make_grid: tensor must be a Tensor or a list of Tensors, got "
                            f"{type(tensor).__name__}")
        tensor = tl.stack(list(tensor)) if tensor else tl.empty(0)
    if not 2 <= tensor.ndim <= 4 or not len(tensor):
        raise ValueError("make_grid: expects images of 2 to 4 dims, one at least, got shape "
                         f"{tuple(tensor.shape)}")
    images = tensor[(None,) * (4 - tensor.ndim)]
    return images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images


def in_unit_range(images: Tensor, value_range: tuple[float, float] | None) -> Tensor:
    """Images with their elements moved to the range from 0 to 1."""
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError(f"make_grid: value_range must be a tuple, got {value_range!r}")
    low, high = value_range or (images.min().item(), images.max().item())
    return (images.clamp(low, high) - low) / max(high - low, 1e-5)


@tl.no_grad()
def save_image(tensor: Tensor | Sequence[Tensor], fp: Any, format: str | None = None,
               **kwargs: Any) -> None:
    """Writes images with elements from 0 to 1 into one file, as `make_grid` lays them out.

    Args:
        tensor: as in `make_grid`, which takes `kwargs` too.
        fp: a path, or a file that is open for bytes.
        format: "png" or another name of Pillow's, by default by the end of the path.
    Raises: as `make_grid`; ImportError where Pillow, which writes the file, is not installed.
    """
    try:
        image = importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError("save_image: needs the package Pillow: pip install pillow") from None
    grid = make_grid(tensor, **kwargs)
    pixels = (grid * 255 + 0.5).clamp(0, 255).permute(1, 2, 0).to(tl.uint8).contiguous().numpy()
    image.fromarray(pixels).save(fp, format=format)
