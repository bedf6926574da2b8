"""Names that PyTorch keeps under `utils`."""

from tensorlib.utils import checkpoint

__all__ = ["checkpoint"]
