"""Boxes and their names drawn into images, by Pillow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tensorlib.utils.tensorboard.values import Array, array_of, as_bytes, one_image

COLOUR, THICKNESS = "red", 2


def image_with_boxes(image: Any, boxes: Any, rescale: float, layout: str,
                     labels: Sequence[str] | str | None) -> Array:
    """An image (H, W, C) in which boxes (x1, y1, x2, y2) are drawn, times `rescale` in size."""
    name = "add_image_with_boxes"
    pixels = as_bytes(one_image(name, array_of(name, image), layout))
    corners = array_of(name, boxes).astype(np.float64)
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise ValueError(f"{name}: box_tensor is (N, 4), got {corners.shape}")
    texts = [labels] if isinstance(labels, str) else labels
    if texts is not None and len(texts) != len(corners):
        raise ValueError(f"{name}: there are {len(texts)} labels for {len(corners)} boxes")
    if not rescale > 0:
        raise ValueError(f"{name}: rescale is above 0, got {rescale}")
    try:
        pillow, drawing, fonts = (import_module(f"PIL.{part}")
                                  for part in ("Image", "ImageDraw", "ImageFont"))
    except ImportError:
        raise ImportError(f"{name}: drawing needs the package Pillow: pip install pillow") from None
    picture = pillow.fromarray(pixels if pixels.shape[2] == 3 else rgb(pixels))
    draw, font = drawing.Draw(picture), fonts.load_default()
    for index, (left, top, right, bottom) in enumerate(corners.tolist()):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)],
                  width=THICKNESS, fill=COLOUR)
        if texts is not None:
            write(draw, font, left, bottom, texts[index])
    height, width = pixels.shape[:2]
    size = max(1, int(width * rescale)), max(1, int(height * rescale))
    return np.asarray(picture.resize(size, pillow.Resampling.LANCZOS))


def rgb(pixels: Array) -> Array:
    """The colours of a grey image, or of one that is transparent."""
    return np.repeat(pixels, 3, 2) if pixels.shape[2] == 1 else pixels[..., :3].copy()


def write(draw: Any, font: Any, left: float, bottom: float, text: str) -> None:
    """Writes a text on a ground of the boxes' colour, above the lower left corner."""
    x1, y1, x2, y2 = font.getbbox(text)
    margin = math.ceil(0.05 * (y2 - y1))
    top = bottom - (y2 - y1) - 2 * margin
    draw.rectangle([(left, top), (left + x2 - x1 + 2 * margin, bottom)], fill=COLOUR)
    draw.text((left + margin, top + margin - y1), text, fill="black", font=font)
