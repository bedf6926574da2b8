"""Names that PyTorch keeps under `utils`."""

from typing import TYPE_CHECKING

from tensorlib._importing import on_first_use

if TYPE_CHECKING:
    from tensorlib.utils import checkpoint, data

__all__ = ["checkpoint", "data"]

__getattr__, __dir__ = on_first_use(__name__, {"checkpoint": "checkpoint", "data": "data"})
