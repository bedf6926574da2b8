"""`PixelShuffle` and `PixelUnshuffle`: channels as pixels, and pixels as channels."""

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.repr import Shown

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Shown):
    """(*, C * r**2, H, W) as (*, C, H * r, W * r): see `nn.functional.pixel_shuffle`."""

    shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Shown):
    """(*, C, H * r, W * r) as (*, C * r**2, H, W): see `nn.functional.pixel_unshuffle`."""

    shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)
