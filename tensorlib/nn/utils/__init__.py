"""What networks need beside layers: sequences of different lengths, in `nn.utils.rnn`."""

from tensorlib.nn.utils import rnn

__all__ = ["rnn"]


def __dir__() -> list[str]:
    return sorted(__all__)
