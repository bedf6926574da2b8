"""`ChannelShuffle`: channels of groups interleaved."""

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.repr import Shown

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Shown):
    """The channels of several groups, in turn: see `nn.functional.channel_shuffle`."""

    shown = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
