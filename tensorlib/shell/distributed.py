"""What scripts ask before they make groups of processes, of which there are none.

>>> tensorlib.distributed.is_available() and tensorlib.distributed.is_initialized()
False
"""

from typing import Any

__all__ = ["get_rank", "get_world_size", "init_process_group", "is_available", "is_initialized"]


def is_available() -> bool:
    """False, as of PyTorch built without it."""
    return False


def is_initialized() -> bool:
    """False: there is no group of processes."""
    return False


def get_rank(group: Any = None) -> int:
    """Raises ValueError: there is no group to have a place in."""
    raise ValueError(f"get_rank: {MISSING}")


def get_world_size(group: Any = None) -> int:
    """Raises ValueError: there is no group to have a size."""
    raise ValueError(f"get_world_size: {MISSING}")


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Raises RuntimeError: groups of processes can't be made."""
    raise RuntimeError(f"init_process_group: {MISSING}")


MISSING = ("there are no process groups (tensorlib.distributed.is_available() is False); one "
           "process uses all cores by its threads")
