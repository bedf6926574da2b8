"""The functions behind the transforms, without randomness."""

from tensorlib._core.base.explained import explain
from tensorlib.utils.data.transforms.affine import affine, rotate
from tensorlib.utils.data.transforms.colours import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    gaussian_blur,
    invert,
    rgb_to_grayscale,
)
from tensorlib.utils.data.transforms.geometry import (
    center_crop,
    crop,
    erase,
    hflip,
    pad,
    resize,
    resized_crop,
    vflip,
)
from tensorlib.utils.data.transforms.images import (
    InterpolationMode,
    convert_image_dtype,
    get_dimensions,
    normalize,
    pil_to_tensor,
    to_tensor,
)
from tensorlib.utils.data.transforms.pillow import to_pil_image

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue",
    "adjust_saturation", "affine", "center_crop", "convert_image_dtype", "crop", "erase",
    "gaussian_blur", "get_dimensions", "hflip", "invert", "normalize", "pad", "pil_to_tensor",
    "resize", "resized_crop", "rgb_to_grayscale", "rotate", "to_pil_image", "to_tensor", "vflip"]

explain(vars(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
