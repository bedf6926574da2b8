"""Rotations, translations, shears and scalings of images, by sampling them at other positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

Matrix = np.ndarray[Any, Any]
TURNING = ("nearest", "bilinear")
ROUNDING = 1e-4                 # a corner that lies so little beyond a pixel is taken for within it


def inverse_matrix(center: Sequence[float], angle: float, translate: Sequence[float], scale: float,
                   shear: Sequence[float]) -> Matrix:
    """Where each point comes from, as (x, y, 1) -> (x, y), with the middle of the image as 0.

    Forth it goes by T C R(angle) Y(shear y) X(shear x) scale C^-1, with C to the center.
    """
    turn, (x, y) = math.radians(angle), map(math.radians, shear)
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    sheared = np.array([[1, 0], [-math.tan(y), 1]]) @ np.array([[1, -math.tan(x)], [0, 1]])
    back = np.linalg.inv(rotation @ sheared) / scale
    middle, moved = np.array(center, float), np.array(translate, float)
    return np.column_stack([back, middle - back @ (middle + moved)])


def sampled(name: str, img: Tensor, matrix: Matrix, size: tuple[int, int], mode: str,
            fill: Any) -> Tensor:
    """An image of another size, whose pixels are those at the places that a matrix gives."""
    height, width = img.shape[-2:]
    if not height or not width:
        raise ValueError(f"{name}: an image without pixels can't be turned: {tuple(img.shape)}")
    floating = computable(img)
    rows, columns = (tl.arange(count, dtype=floating.dtype) - (count - 1) / 2 for count in size)
    places = tl.stack([columns.expand(*size), rows.unsqueeze(1).expand(*size),
                       tl.ones(*size, dtype=floating.dtype)], -1)
    back = tl.tensor(matrix.T.tolist(), dtype=floating.dtype)
    grid = (places.flatten(0, 1) @ (back / back.new_tensor([width / 2, height / 2]))).view(
        1, *size, 2)
    lead = img.shape[:-2]
    found = F.grid_sample(floating.reshape(1, lead.numel(), height, width), grid, mode=mode,
                          align_corners=False).reshape(*lead, *size)
    if fill is not None:
        there = F.grid_sample(floating.new_ones(1, 1, height, width), grid, mode=mode,
                              align_corners=False)[0, 0]
        colour = tl.as_tensor(fill, dtype=floating.dtype)
        colour = colour.reshape(-1, 1, 1) if colour.ndim else colour
        found = (tl.where(there < 0.5, colour, found) if mode == "nearest"
                 else found * there + (1 - there) * colour)
    return as_before(found, img.dtype)


def expanded_size(matrix: Matrix, height: int, width: int) -> tuple[int, int]:
    """The height and width that a turned image needs, by its corners."""
    corners = np.array([[x * width / 2, y * height / 2, 1] for x in (-1, 1) for y in (-1, 1)])
    ends = corners @ matrix.T + [width / 2, height / 2]
    last = np.ceil(np.trunc(ends.max(0) / ROUNDING) * ROUNDING)
    first = np.floor(np.trunc(ends.min(0) / ROUNDING) * ROUNDING)
    wide, high = (last - first).astype(int).tolist()
    return high, wide


def from_middle(center: Sequence[float] | None, img: Tensor) -> list[float]:
    """A point (x, y) that is given from the upper left corner, from the middle of the image."""
    if center is None:
        return [0.0, 0.0]
    return [x - size / 2 for x, size in zip(center, (img.shape[-1], img.shape[-2]), strict=True)]


def rotate(img: Tensor, angle: float, interpolation: Any = InterpolationMode.NEAREST,
           expand: bool = False, center: Sequence[float] | None = None, fill: Any = None) -> Tensor:
    """The image turned to the left.

    Args:
        img: the image, (..., H, W).
        angle: the angle in degrees.
        interpolation: `InterpolationMode.NEAREST` or BILINEAR, or the value of one.
        expand: whether the image becomes large enough for its corners.
        center: the point (x, y) around which it turns, from the upper left corner; by default the
            middle.
        fill: the value beyond the image: a number, or one for each channel; 0 for None.

    >>> rotate(tensorlib.tensor([[[1, 2], [3, 4]]]), 90)
    tensor([[[2, 4],
             [1, 3]]])
    """
    if is_of_pil(img):
        return pillow.rotated(img, angle, mode_of("rotate", interpolation, pillow.TURNING), expand,
                              center, fill)
    require_image("rotate", img)
    mode = mode_of("rotate", interpolation, TURNING)
    matrix = inverse_matrix(from_middle(center, img), -angle, (0, 0), 1.0, (0, 0))
    size = (img.shape[-2], img.shape[-1])
    return sampled("rotate", img, matrix, expanded_size(matrix, *size) if expand else size, mode,
                   fill)


def affine(img: Tensor, angle: float, translate: Sequence[float], scale: float,
           shear: float | Sequence[float], interpolation: Any = InterpolationMode.NEAREST,
           fill: Any = None, center: Sequence[float] | None = None) -> Tensor:
    """The image turned to the right, moved, made larger and sheared.

    Args:
        img: the image, (..., H, W).
        angle: the angle in degrees.
        translate: how far it is moved to the right and down, in pixels.
        scale: how much larger it becomes.
        shear: the angle in degrees between a column and the vertical, and maybe one for rows.
        interpolation: `InterpolationMode.NEAREST` or BILINEAR, or the value of one.
        fill: the value beyond the image: a number, or one for each channel; 0 for None.
        center: the point (x, y) around which it turns, from the upper left corner; by default the
            middle.

    Raises: ValueError for a scale of 0 or less.
    """
    _, height, width = sizes_of("affine", img)
    of_pil = is_of_pil(img)
    mode = mode_of("affine", interpolation, pillow.TURNING if of_pil else TURNING)
    if not scale > 0:
        raise ValueError(f"affine: scale must be more than 0, got {scale}")
    shears = (shear, 0.0) if isinstance(shear, (int, float)) else (*shear, 0.0)[:2]
    if of_pil:
        middle = (width / 2, height / 2) if center is None else center
        matrix = inverse_matrix(middle, angle, translate, scale, shears)
        return pillow.moved(img, matrix, mode, fill)
    matrix = inverse_matrix(from_middle(center, img), angle, translate, scale, shears)
    return sampled("affine", img, matrix, (height, width), mode, fill)
