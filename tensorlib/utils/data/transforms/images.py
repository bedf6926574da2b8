"""Images as tensors: their sizes and dtypes, and conversions to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib._core.base.error_names import type_name
from tensorlib.utils.data.transforms.pillow import is_of_pil


class InterpolationMode(Enum):
    """How the value between pixels is found."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"                    # these three are for PIL's images alone
    HAMMING = "hamming"
    LANCZOS = "lanczos"


NUMBERED = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")      # Pillow's numbers


def mode_of(name: str, interpolation: Any, modes: Sequence[str]) -> str:
    """The name of a mode, given by that, as an InterpolationMode or by Pillow's number.

    Raises: ValueError.
    """
    mode = interpolation.value if isinstance(interpolation, InterpolationMode) else interpolation
    if isinstance(mode, int) and 0 <= mode < len(NUMBERED):
        mode = NUMBERED[mode]
    if mode not in modes:
        raise ValueError(f"{name}: interpolation must be one of {', '.join(modes)}, got "
                         f"{interpolation!r}")
    return str(mode)


def require_image(name: str, img: Any, dims: int = 2) -> None:
    """Raises: TypeError for what is not a tensor of at least so many dims."""
    if not isinstance(img, Tensor):
        raise TypeError(f"{name}: an image is a Tensor (..., H, W), got {type_name(img)}; "
                        "ToTensor() makes one of an array or of a PIL image")
    if img.ndim < dims:
        raise TypeError(f"{name}: an image is (..., {'C, ' * (dims > 2)}H, W), got a tensor of "
                        f"shape {tuple(img.shape)}")


def sizes_of(name: str, img: Any, dims: int = 2) -> list[int]:
    """The channels, the height and the width of an image.

    Raises: TypeError for what is no image of PIL's, nor a tensor of at least so many dims.
    """
    if is_of_pil(img):
        return [len(img.getbands()), img.height, img.width]
    require_image(name, img, dims)
    return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]


def require_colours(name: str, img: Any) -> None:
    """Raises: TypeError for what has not one channel or three."""
    require_image(name, img, 3)
    if img.shape[-3] not in (1, 3):
        raise TypeError(f"{name}: an image has 1 or 3 channels, got {img.shape[-3]}")


def get_dimensions(img: Tensor) -> list[int]:
    """The channels, the height and the width of an image.

    Args:
        img: the image, (..., C, H, W) or of PIL's; (H, W) has one channel.

    >>> get_dimensions(tensorlib.zeros(8, 3, 4, 5))
    [3, 4, 5]
    """
    return sizes_of("get_dimensions", img)


def largest_of(dtype: tl.dtype) -> int:
    """The value of white: 1 of floating-point dtypes, and the largest one of integers."""
    if dtype.is_floating_point or dtype == tl.bool:
        return 1
    return int(tl.iinfo(dtype).max)


def computable(img: Tensor) -> Tensor:
    """An image in a floating-point dtype; integers become float32."""
    return img if img.is_floating_point() else img.float()


def as_before(img: Tensor, dtype: tl.dtype) -> Tensor:
    """What was computed, in the dtype that the image had: rounded, if that is one of integers."""
    return img if dtype.is_floating_point else img.round().clamp(
        0 if dtype == tl.uint8 else None, largest_of(dtype)).to(dtype)


def convert_image_dtype(image: Tensor, dtype: tl.dtype = tl.float32) -> Tensor:
    """The image in another dtype, with its values spread over what that one has.

    Args:
        image: the image.
        dtype: the dtype, such as float32, whose values go from 0 to 1.

    Raises: RuntimeError for integers that the floating-point dtype is too short for.

    >>> convert_image_dtype(tensorlib.tensor([[[0, 51, 255]]], dtype=tensorlib.uint8))
    tensor([[[0.0000, 0.2000, 1.0000]]])
    """
    require_image("convert_image_dtype", image)
    before = image.dtype
    if before == dtype or before.is_floating_point and dtype.is_floating_point:
        return image.to(dtype)
    white, new_white = largest_of(before), largest_of(dtype)
    if before.is_floating_point:
        digits = {tl.float64: 53, tl.float32: 24}.get(before, 11)
        if new_white.bit_length() > digits:
            raise RuntimeError(f"convert_image_dtype: {before.name} has too few digits for "
                               f"{dtype.name}")
        return (image * (new_white + 1 - 1e-3)).to(dtype)       # each number gets as wide a part
    if dtype.is_floating_point:
        return image.to(dtype) / white
    if white > new_white:
        return image.div((white + 1) // (new_white + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((new_white + 1) // (white + 1))


def channels_first(name: str, pic: Any) -> Tensor:
    """An array (H, W) or (H, W, C), or a PIL image, as a tensor (C, H, W) of the same dtype."""
    if not is_of_pil(pic) and not isinstance(pic, np.ndarray):
        raise TypeError(f"{name}: takes a Tensor, a NumPy array or a PIL image, got "
                        f"{type_name(pic)}")
    pixels = np.array(pic)
    if pixels.ndim not in (2, 3):
        raise ValueError(f"{name}: an image is an array (H, W) or (H, W, C), got shape "
                         f"{pixels.shape}")
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return tl.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def pil_to_tensor(pic: Any) -> Tensor:
    """A PIL image or an array (H, W, C) as a tensor (C, H, W), with its values as they are.

    Args:
        pic: the image. A tensor stays as it is.
    """
    return pic if isinstance(pic, Tensor) else channels_first("pil_to_tensor", pic)


def to_tensor(pic: Any) -> Tensor:
    """An image as a tensor (C, H, W) of floating-point numbers: 0 to 255 become 0 to 1.

    Args:
        pic: a PIL image, an array (H, W) or (H, W, C), or a tensor (..., C, H, W). Of these, bytes
            and bools are divided by their largest value; other dtypes keep their values, and other
            integers become the default dtype.

    Raises: TypeError for something else, ValueError for an array of another number of dims.

    >>> to_tensor(np.full((2, 2, 3), 255, np.uint8)).shape
    tensorlib.Size([3, 2, 2])
    """
    image = pic if isinstance(pic, Tensor) else channels_first("to_tensor", pic)
    if image.is_floating_point():
        return image
    floating = image.to(tl.get_default_dtype())
    return floating / 255 if image.dtype == tl.uint8 else floating


def normalize(tensor: Tensor, mean: float | Sequence[float], std: float | Sequence[float],
              inplace: bool = False) -> Tensor:
    """The image less the mean of each channel, divided by its standard deviation.

    Args:
        tensor: the image, of a floating-point dtype.
        mean: a number for each channel, or one for all.
        std: as `mean`.
        inplace: whether to write into the image.

    Raises: TypeError for integers, ValueError for a deviation of 0 or a wrong number of channels.

    >>> normalize(tensorlib.ones(1, 1, 2), [0.5], [0.25])
    tensor([[[2., 2.]]])
    """
    require_image("normalize", tensor)
    if not tensor.is_floating_point():
        raise TypeError(f"normalize: takes a floating-point image, got {tensor.dtype.name}; "
                        "ToTensor() makes one")
    if tensor.ndim < 3:
        raise ValueError(f"normalize: an image is (..., C, H, W), got {tuple(tensor.shape)}")
    shifts, scales = (tl.as_tensor(values, dtype=tensor.dtype) for values in (mean, std))
    for name, values in (("mean", shifts), ("std", scales)):
        if values.ndim == 1 and len(values) not in (1, tensor.shape[-3]):
            raise ValueError(f"normalize: {name} has {len(values)} numbers, for an image of "
                             f"{tensor.shape[-3]} channels")
    if 0 in std if isinstance(std, Sequence) else (scales == 0).any():
        raise ValueError(f"normalize: std has a 0, which would divide by 0: {std}")
    shifts, scales = (values.reshape(-1, 1, 1) if values.ndim == 1 else values
                      for values in (shifts, scales))
    if inplace:
        return tensor.sub_(shifts).div_(scales)
    return (tensor - shifts) / scales
