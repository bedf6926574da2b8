"""Python's `multiprocessing`, under the name by which scripts for PyTorch import it.

Tensors go to other processes by value. What lies in shared memory, as `Module.share_memory()`
makes it, is the same memory in all processes that are forked afterwards.
"""

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _names

__all__ = [*_names, "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]

STRATEGIES = {"file_descriptor", "file_system"}
_kept = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(STRATEGIES)


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was told, at first "file_descriptor"."""
    return _kept[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Keeps what it is told, and changes nothing. Raises: ValueError for an unknown name.

    >>> tensorlib.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in STRATEGIES:
        raise ValueError(f"set_sharing_strategy: expected one of {', '.join(sorted(STRATEGIES))}, "
                         f"got {new_strategy!r}")
    _kept[0] = new_strategy
