"""Names that PyTorch keeps under `utils`."""

from tensorlib.utils import checkpoint

__all__ = ["checkpoint"]


def __dir__():
    return sorted(__all__)
