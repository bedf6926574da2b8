"""Images of Pillow's, changed by Pillow itself: with them, transforms give what torchvision's do.

An image of PIL's that is given to a transform stays one until `ToTensor` or `PILToTensor`. Here is
what the functions of images, which take tensors too, do with it. Pillow is imported when an image
of its own is there.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib._core.base.error_names import type_name

# Pillow's numbers of the modes; its nearest pixel is the one around a point, as of nearest-exact.
FILTERS = {"nearest": 0, "nearest-exact": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4,
           "hamming": 5}
TURNING = ("nearest", "bilinear", "bicubic")
WITHOUT_HUE = ("L", "1", "I", "F")
LEFT_RIGHT, TOP_BOTTOM, AFFINE = 0, 1, 0                # Pillow's numbers
# By the dtype of the pixels and their channels: the mode of an image, and others that it may have.
MODES: dict[tuple[str, int], tuple[str, ...]] = {
    ("uint8", 1): ("L",), ("int16", 1): ("I;16",), ("uint16", 1): ("I;16",),
    ("int32", 1): ("I",), ("float32", 1): ("F",), ("uint8", 2): ("LA",),
    ("uint8", 3): ("RGB", "YCbCr", "HSV", "LAB"), ("uint8", 4): ("RGBA", "CMYK", "RGBX")}


def is_of_pil(img: Any) -> bool:
    """Whether an image is one of Pillow's."""
    return not isinstance(img, Tensor) and hasattr(img, "getbands")


def part_of_pillow(name: str) -> Any:
    """A module of Pillow. Raises: ImportError without it."""
    try:
        return importlib.import_module(f"PIL.{name}")
    except ImportError:
        raise ImportError("to_pil_image: needs the package Pillow: pip install pillow") from None


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A tensor (C, H, W), or an array (H, W, C), as an image of PIL's.

    Args:
        pic: the pixels, of 1 to 4 channels, or (H, W). Floating-point numbers of a tensor go from
            0 to 1, and become bytes, except for mode "F".
        mode: what the channels are, by Pillow's name; by default "L", "LA", "RGB" and "RGBA", and
            "I;16", "I" and "F" for one channel of int16, int32 and float32.

    Raises: TypeError for something else or pixels of another dtype, ValueError for another number
    of dims or channels, or a mode that they cannot have.

    >>> to_pil_image(tensorlib.zeros(3, 4, 5)).size                  # the width first
    (5, 4)
    """
    if not isinstance(pic, (Tensor, np.ndarray)):
        raise TypeError(f"to_pil_image: takes a Tensor or a NumPy array, got {type_name(pic)}")
    if pic.ndim not in (2, 3):
        raise ValueError(f"to_pil_image: an image has 2 or 3 dims, got shape {tuple(pic.shape)}")
    if isinstance(pic, Tensor):
        pic = pic.detach()
        if pic.is_floating_point() and mode != "F":
            pic = pic.mul(255).to(tl.uint8)
        pixels = pic.numpy() if pic.ndim == 2 else pic.permute(1, 2, 0).numpy()
    else:
        pixels = pic
    pixels = np.ascontiguousarray(pixels[:, :, None] if pixels.ndim == 2 else pixels)
    height, width, channels = pixels.shape
    if not 1 <= channels <= 4:
        raise ValueError(f"to_pil_image: an image has 1 to 4 channels, got {channels}")
    modes = MODES.get((pixels.dtype.name, channels))
    if modes is None:
        raise TypeError(f"to_pil_image: no image has {channels} channels of {pixels.dtype}")
    if mode is not None and mode not in modes:
        raise ValueError(f"to_pil_image: {channels} channels of {pixels.dtype} may be "
                         f"{', '.join(modes)}, got mode {mode!r}")
    return part_of_pillow("Image").frombytes(mode or modes[0], (width, height), pixels.tobytes())


def filled(fill: Any, img: Any) -> Any:
    """The value of pixels from beyond an image: for each of its channels."""
    bands = len(img.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, Sequence):
        if len(fill) not in (1, bands):
            raise ValueError(f"fill: got {len(fill)} numbers for an image of {bands} channels")
        fill = tuple(fill) * (bands // len(fill))
    else:
        fill = (fill,) * bands
    fill = fill if img.mode == "F" else tuple(map(int, fill))
    return fill[0] if bands == 1 else fill


# ---- places --------------------------------------------------------------------------------------

def padded(img: Any, sides: tuple[int, int, int, int], fill: Any, padding_mode: str) -> Any:
    """As `pad`, by what stands at the left, the top, the right and the bottom."""
    palette = img.getpalette() if img.mode == "P" else None
    if padding_mode == "constant":
        wider = part_of_pillow("ImageOps").expand(img, border=sides, fill=filled(fill, img))
    else:
        left, top, right, bottom = sides
        pixels = np.asarray(img)
        around = ((top, bottom), (left, right), (0, 0))[:pixels.ndim]
        wider = part_of_pillow("Image").fromarray(np.pad(pixels, around, mode=padding_mode))
    if palette is not None:
        wider.putpalette(palette)
    return wider


def rotated(img: Any, angle: float, mode: str, expand: bool, center: Sequence[float] | None,
            fill: Any) -> Any:
    """As `rotate`."""
    return img.rotate(angle, FILTERS[mode], expand, center, fillcolor=filled(fill, img))


def moved(img: Any, matrix: Any, mode: str, fill: Any) -> Any:
    """As `affine`, by the matrix that says where each point (x, y, 1) comes from."""
    return img.transform(img.size, AFFINE, matrix.ravel().tolist(), FILTERS[mode],
                         fillcolor=filled(fill, img))


# ---- colours -------------------------------------------------------------------------------------

def grey(img: Any, channels: int) -> Any:
    """As `rgb_to_grayscale`."""
    found = img.convert("L")
    return found if channels == 1 else found.convert("RGB")


def enhanced(img: Any, what: str, factor: float) -> Any:
    """As `adjust_brightness` and others, by Pillow's name of what is changed."""
    return getattr(part_of_pillow("ImageEnhance"), what)(img).enhance(factor)


def hue_turned(img: Any, factor: float) -> Any:
    """As `adjust_hue`."""
    if img.mode in WITHOUT_HUE:
        return img
    pixels = np.array(img.convert("HSV"))
    pixels[:, :, 0] += np.int32(factor * 255).astype(np.uint8)           # modulo 256
    return to_pil_image(pixels, "HSV").convert(img.mode)


def gamma_adjusted(img: Any, gamma: float, gain: float) -> Any:
    """As `adjust_gamma`."""
    table = [int((255 + 1 - 1e-3) * gain * (value / 255) ** gamma) for value in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def inverted(img: Any) -> Any:
    """As `invert`."""
    return part_of_pillow("ImageOps").invert(img)
