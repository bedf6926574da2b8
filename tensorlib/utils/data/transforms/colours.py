"""The colours of images: brightness, contrast, saturation, hue, grey, and blur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.utils.data.transforms import pillow
from tensorlib.utils.data.transforms.images import (
    as_before,
    channels_first,
    computable,
    convert_image_dtype,
    largest_of,
    require_colours,
    require_image,
)
from tensorlib.utils.data.transforms.pillow import is_of_pil

LUMA = (0.2989, 0.587, 0.114)        # how bright red, green and blue are to the eye, ITU-R BT.601


def require_factor(name: str, factor: float, low: float = 0.0,
                   high: float = float("inf")) -> None:
    """Raises ValueError for a factor outside these bounds."""
    if not low <= factor <= high:
        raise ValueError(f"{name}: the factor must be from {low} to {high}, got {factor}")


def blended(img: Tensor, other: Any, ratio: float) -> Tensor:
    """`ratio` parts of an image, the rest of another, within what the dtype has."""
    mixed: Tensor = (float(ratio) * img + (1.0 - float(ratio)) * other).clamp(
        0, largest_of(img.dtype)).to(img.dtype)
    return mixed


def rgb_to_grayscale(img: Tensor, num_output_channels: int = 1) -> Tensor:
    """How bright each pixel is.

    Args:
        img: the image, (..., 3, H, W), or (..., 1, H, W), which is grey already.
        num_output_channels: 1, or 3 that are the same.

    Raises: TypeError for another number of channels, ValueError for other `num_output_channels`.

    >>> rgb_to_grayscale(tensorlib.ones(3, 1, 1)).shape
    tensorlib.Size([1, 1, 1])
    """
    if is_of_pil(img) and num_output_channels in (1, 3):
        return pillow.grey(img, num_output_channels)
    require_colours("rgb_to_grayscale", img)
    if num_output_channels not in (1, 3):
        raise ValueError("rgb_to_grayscale: num_output_channels is 1 or 3, got "
                         f"{num_output_channels}")
    if img.shape[-3] == 3:
        red, green, blue = img.unbind(-3)
        grey = (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).to(img.dtype).unsqueeze(-3)
    else:
        grey = img.clone()
    return grey.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else grey


def adjust_brightness(img: Tensor, brightness_factor: float) -> Tensor:
    """The image times a number, within what its dtype has.

    Args:
        img: the image, (..., 1 or 3, H, W).
        brightness_factor: 0 gives black, 1 the image, 2 twice as bright.

    Raises: ValueError for a factor below 0.
    """
    require_factor("adjust_brightness", brightness_factor)
    if is_of_pil(img):
        return pillow.enhanced(img, "Brightness", brightness_factor)
    require_colours("adjust_brightness", img)
    return blended(img, tl.zeros_like(img), brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: float) -> Tensor:
    """The image with each pixel further from, or nearer to, the mean brightness.

    Args:
        img: the image, (..., 1 or 3, H, W).
        contrast_factor: 0 gives an even grey, 1 the image.

    Raises: ValueError for a factor below 0.
    """
    require_factor("adjust_contrast", contrast_factor)
    if is_of_pil(img):
        return pillow.enhanced(img, "Contrast", contrast_factor)
    require_colours("adjust_contrast", img)
    mean = computable(rgb_to_grayscale(img)).mean((-3, -2, -1), keepdim=True)
    return blended(img, mean, contrast_factor)


def adjust_saturation(img: Tensor, saturation_factor: float) -> Tensor:
    """The image with more or less colour.

    Args:
        img: the image, (..., 1 or 3, H, W).
        saturation_factor: 0 gives the image in grey, 1 the image.

    Raises: ValueError for a factor below 0.
    """
    require_factor("adjust_saturation", saturation_factor)
    if is_of_pil(img):
        return pillow.enhanced(img, "Color", saturation_factor)
    require_colours("adjust_saturation", img)
    if img.shape[-3] == 1:
        return img
    return blended(img, rgb_to_grayscale(img), saturation_factor)


def hue_saturation_value(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Red, green and blue from 0 to 1 as hue, saturation and value from 0 to 1."""
    red, green, blue = img.unbind(-3)
    value, low = img.amax(-3), img.amin(-3)
    chroma = value - low
    grey = chroma == 0
    wide = tl.where(grey, 1, chroma)
    sixth = tl.where(value == red, (green - blue) / wide,
                     tl.where(value == green, 2 + (blue - red) / wide, 4 + (red - green) / wide))
    return sixth / 6 % 1, chroma / tl.where(grey, 1, value), value


def red_green_blue(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Each channel lies as far below `value` as the hue is from its own, up to `saturation`."""
    channels = []
    for place in (5, 3, 1):
        k = (place + 6 * hue) % 6
        channels.append(value - value * saturation * tl.minimum(k, 4 - k).clamp(0, 1))
    return tl.stack(channels, -3)


def adjust_hue(img: Tensor, hue_factor: float) -> Tensor:
    """The image with its hues turned around the circle of colours.

    Args:
        img: the image, (..., 1 or 3, H, W).
        hue_factor: how far, from -0.5 to 0.5, which are both half a circle.

    Raises: ValueError for another factor.

    >>> red = tensorlib.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    >>> adjust_hue(red, 1 / 3).flatten()
    tensor([0., 1., 0.])
    """
    require_factor("adjust_hue", hue_factor, -0.5, 0.5)
    if is_of_pil(img):
        return pillow.hue_turned(img, hue_factor)
    require_colours("adjust_hue", img)
    if img.shape[-3] == 1:
        return img
    hue, saturation, value = hue_saturation_value(convert_image_dtype(img, tl.float32))
    return convert_image_dtype(red_green_blue((hue + hue_factor) % 1, saturation, value), img.dtype)


def adjust_gamma(img: Tensor, gamma: float, gain: float = 1) -> Tensor:
    """The image to a power, as screens and cameras have it.

    Args:
        img: the image, (..., 1 or 3, H, W).
        gamma: the power; above 1 shadows become darker.
        gain: what that is multiplied by.

    Raises: ValueError for a gamma below 0.
    """
    require_factor("adjust_gamma", gamma)
    if is_of_pil(img):
        return pillow.gamma_adjusted(img, gamma, gain)
    require_colours("adjust_gamma", img)
    floating = convert_image_dtype(img, tl.float32) if not img.is_floating_point() else img
    return convert_image_dtype((gain * floating.pow(gamma)).clamp(0, 1), img.dtype)


def invert(img: Tensor) -> Tensor:
    """The negative of the image.

    Args:
        img: the image, (..., 1 or 3, H, W).
    """
    if is_of_pil(img):
        return pillow.inverted(img)
    require_colours("invert", img)
    return largest_of(img.dtype) - img


def bell(size: int, sigma: float, dtype: tl.dtype) -> Tensor:
    """The weights of a row of pixels under a normal distribution."""
    x = tl.linspace(-(size - 1) / 2, (size - 1) / 2, size, dtype=dtype)
    weights = (-0.5 * (x / sigma).square()).exp()
    return weights / weights.sum()


def blur_sizes(name: str, kernel_size: int | Sequence[int]) -> tuple[int, ...]:
    """Width and height of a blur's window. Raises: ValueError unless they are odd."""
    sizes = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 0 and size % 2
                                  for size in sizes):
        raise ValueError(f"{name}: kernel_size is odd, one int or two, got {kernel_size!r}")
    return sizes


def gaussian_blur(img: Tensor, kernel_size: int | Sequence[int],
                  sigma: float | Sequence[float] | None = None) -> Tensor:
    """The image blurred: each pixel is a mean of those around it.

    Args:
        img: the image, (..., C, H, W).
        kernel_size: how many pixels the mean is over, odd: one number, or (across, down).
        sigma: the standard deviation of their weights, one number or two; None takes 0.15 times
            the size, and 0.35.

    Raises: ValueError for an even size or a deviation of 0 or less, or for an image that has no
    more than half of `kernel_size` pixels.
    """
    if is_of_pil(img):
        found = gaussian_blur(channels_first("gaussian_blur", img), kernel_size, sigma)
        return pillow.to_pil_image(found, img.mode)
    require_image("gaussian_blur", img, 3)
    sizes = blur_sizes("gaussian_blur", kernel_size)
    if sigma is None:
        sigma = [0.15 * size + 0.35 for size in sizes]
    sigmas = (sigma,) if isinstance(sigma, (int, float)) else tuple(sigma)
    sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    if len(sigmas) != 2 or not all(each > 0 for each in sigmas):
        raise ValueError(f"gaussian_blur: sigma is more than 0, one number or two, got {sigma!r}")
    half = [size // 2 for size in sizes]
    if not all(have > part for have, part in zip((img.shape[-1], img.shape[-2]), half)):
        raise ValueError(f"gaussian_blur: a kernel of {sizes} is too large for an image of "
                         f"{tuple(img.shape[-2:])}")
    floating, lead = computable(img), img.shape[:-2]
    across, down = (bell(size, each, floating.dtype) for size, each in zip(sizes, sigmas))
    padded = F.pad(floating.reshape(lead.numel(), 1, *img.shape[-2:]),
                   (half[0], half[0], half[1], half[1]), mode="reflect")
    found = F.conv2d(F.conv2d(padded, across.view(1, 1, 1, -1)), down.view(1, 1, -1, 1))
    return as_before(found.reshape(img.shape), img.dtype)
