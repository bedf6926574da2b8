"""Tensors, arrays and numbers as what is logged: numbers, images, sounds."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from typing import Any

import numpy as np

from tensorlib import Tensor
from tensorlib._core.base.error_names import type_name

Array = np.ndarray[Any, Any]
LAYOUTS = {"NCHW", "NHWC", "CHW", "HWC", "HW", "WH", "NCWH", "CWH"}


def array_of(name: str, values: Any) -> Array:
    """The elements of a tensor, an array, a number or a list. Raises: TypeError."""
    if isinstance(values, Tensor):
        values = values.detach()
        values = values.float() if values.itemsize < 4 and values.is_floating_point() else values
        return np.asarray(values.numpy())
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: takes a tensor, an array or a number, got {type_name(values)}")
    return array


def number_of(name: str, value: Any) -> float:
    """One number. Raises: ValueError for several."""
    array = array_of(name, value)
    if array.size != 1:
        raise ValueError(f"{name}: takes one number, got shape {array.shape}")
    return float(array.reshape(()))


def one_image(name: str, pixels: Array, layout: str) -> Array:
    """Images in a layout such as "NCHW" as one (H, W, C) of 1, 3 or 4 channels, side by side."""
    layout = layout.upper()
    if layout not in LAYOUTS or pixels.ndim != len(layout):
        raise ValueError(f"{name}: dataformats {layout!r} does not fit a shape of {pixels.shape}; "
                         f"it is one of {', '.join(sorted(LAYOUTS))}")
    places = [layout.index(letter) for letter in "NHWC" if letter in layout]
    pixels = pixels.transpose(places)
    if "C" not in layout:
        pixels = pixels[..., None]
    if "N" in layout:
        pixels = side_by_side(pixels)
    if pixels.shape[-1] not in (1, 3, 4):
        raise ValueError(f"{name}: an image has 1, 3 or 4 channels, got {pixels.shape[-1]}")
    return pixels


def side_by_side(images: Array) -> Array:
    """Images (N, H, W, C) as one, in rows of up to 8."""
    count, height, width, channels = images.shape
    if not count:
        raise ValueError("add_images: there is no image")
    across = min(8, count)
    down = -(-count // across)
    grid = np.zeros((down * across, height, width, channels), images.dtype)
    grid[:count] = images
    rows = grid.reshape(down, across, height, width, channels).swapaxes(1, 2)
    return rows.reshape(down * height, across * width, channels)


def as_bytes(pixels: Array) -> Array:
    """Pixels of 0 to 255; floating-point ones go from 0 to 1, NaN is black."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind == "f":
        pixels = np.nan_to_num(pixels, nan=0.0, posinf=1.0, neginf=0.0) * 255
    return np.clip(pixels, 0, 255).astype(np.uint8)


def png(pixels: Array) -> bytes:
    """An image (H, W, C) of bytes as a PNG file."""
    return png_of(pixels.shape, [chunk(b"IDAT", packed(pixels))])


def animated_png(frames: Array, fps: float) -> bytes:
    """Images (T, H, W, C) of bytes as a PNG file that shows one after the other, without end."""
    height, width = frames.shape[1:3]
    delay = max(1, min(0xffff, round(1000 / fps)))
    parts = [chunk(b"acTL", struct.pack(">2I", len(frames), 0))]
    number = 0                          # of all that says or is a frame, beside the first image
    for index, frame in enumerate(frames):
        parts.append(chunk(b"fcTL", struct.pack(">5I2H2B", number, width, height, 0, 0, delay, 1000,
                                                0, 0)))
        number += 1
        if index:
            parts.append(chunk(b"fdAT", struct.pack(">I", number) + packed(frame)))
            number += 1
        else:
            parts.append(chunk(b"IDAT", packed(frame)))
    return png_of(frames.shape[1:], parts)


def png_of(shape: tuple[int, ...], parts: list[bytes]) -> bytes:
    """A PNG file of images (H, W, C), of which `parts` has all between the size and the end."""
    height, width, channels = shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(parts) + chunk(b"IEND", b"")


def packed(pixels: Array) -> bytes:
    """The rows of an image, each after a 0: it is not filtered."""
    height = len(pixels)
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    return zlib.compress(np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes())


def chunk(name: bytes, content: bytes) -> bytes:
    """A part of a PNG file."""
    return (struct.pack(">I", len(content)) + name + content
            + struct.pack(">I", zlib.crc32(name + content)))


def wav(samples: Array, rate: int) -> bytes:
    """A sound from -1 to 1 as a WAV file of 16 bits."""
    clipped = np.nan_to_num(np.clip(samples.astype(np.float64), -1, 1))
    with io.BytesIO() as file:
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(rate)
            sound.writeframes(np.round(clipped * 32767).astype("<i2").tobytes())
        return file.getvalue()
