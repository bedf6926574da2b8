"""U-Net: an image in, an image of the same size out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.nn import functional as F


class UNet(nn.Module):
    """A U-Net: images become smaller and deeper, then larger again beside what they were.

    Args:
        in_channels: the channels of the input.
        out_channels: those of the output.
        channels: those of each depth, of which the next one has half the height and width.

    Shapes: (N, in_channels, H, W) -> (N, out_channels, H, W), of any H and W of at least
    2 ** (depths - 1)
    Source: Ronneberger, Fischer and Brox, U-Net: convolutional networks for biomedical image
    segmentation, 2015; with padding, batch norms, and sizes that are not powers of 2.

    >>> UNet(1, 2, channels=(4, 8))(tensorlib.zeros(1, 1, 9, 6)).shape
    tensorlib.Size([1, 2, 9, 6])
    """

    def __init__(self, in_channels: int = 3, out_channels: int = 1,
                 channels: Sequence[int] = (64, 128, 256, 512, 1024)) -> None:
        super().__init__()
        if not channels:
            raise ValueError("UNet: channels has a number for each depth, one or more")
        self.down = nn.ModuleList(
            two_convolutions(before, after) for before, after in pairwise([in_channels, *channels]))
        upwards = list(pairwise(reversed(channels)))
        self.larger = nn.ModuleList(
            nn.ConvTranspose2d(below, above, 2, stride=2) for below, above in upwards)
        self.up = nn.ModuleList(two_convolutions(2 * above, above) for _, above in upwards)
        self.out = nn.Conv2d(channels[0], out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The image, or the logits of each pixel."""
        beside: list[Tensor] = []
        for depth, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if depth else x)
            beside.append(x)
        beside.pop()
        for larger, block in zip(self.larger, self.up):
            other = beside.pop()
            x = larger(x)
            missing = [have - got for have, got in zip(other.shape[-2:], x.shape[-2:])]
            if any(missing):                     # a row or a column that the pool left out
                x = F.pad(x, (0, missing[1], 0, missing[0]), mode="replicate")
            x = block(tl.cat([other, x], 1))
        result: Tensor = self.out(x)
        return result


def two_convolutions(before: int, after: int) -> nn.Sequential:
    """Two convolutions of 3 x 3, each with a norm and a rectifier."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
