"""Windows under the names of `torch.signal`.

>>> tensorlib.signal.windows.cosine(3)
tensor([0.5000, 1.0000, 0.5000])
"""

from . import windows

__all__ = ["windows"]
