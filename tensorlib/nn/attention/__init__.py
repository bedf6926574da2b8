"""The choice of an attention kernel, as PyTorch's scripts make it: there is one kernel here.

>>> from tensorlib.nn.attention import SDPBackend, sdpa_kernel
>>> with sdpa_kernel(SDPBackend.MATH):
...     x = tensorlib.nn.functional.scaled_dot_product_attention(*[tensorlib.ones(1, 2, 4)] * 3)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """PyTorch's kernels for `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """A context in which attention is computed as usual. Raises: TypeError for no `SDPBackend`."""
    for backend in [backends] if isinstance(backends, SDPBackend) else backends:
        if not isinstance(backend, SDPBackend):
            raise TypeError("sdpa_kernel: expected SDPBackend or a list of them, got "
                            f"{type(backend).__name__}")
    yield {}
