"""The allocator of tensors: what it holds, and how to make it hold less.

>>> tensorlib.memory.set_cache_limit(1 << 30)
>>> tensorlib.memory.stats()["limit"]
1073741824
"""

from tensorlib._core.base.storage import (
    OutOfMemoryError,
    empty_cache,
    reset_peak,
    set_cache_limit,
    set_cache_time,
    stats,
)

__all__ = ["OutOfMemoryError", "empty_cache", "reset_peak", "set_cache_limit",
           "set_cache_time", "stats"]


def __dir__():
    return sorted(__all__)
