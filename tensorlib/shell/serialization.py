"""Saving and loading, under the name of `torch.serialization`: see `tensorlib.save` and `load`."""

from tensorlib.io.files import *  # noqa: F403
from tensorlib.io.files import __all__


def __dir__() -> list[str]:
    return sorted(__all__)
