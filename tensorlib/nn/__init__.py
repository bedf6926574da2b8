"""Neural networks: the functions that they are made of, in `nn.functional`."""

from tensorlib.nn import functional

__all__ = ["functional"]


def __dir__():
    return sorted(__all__)
