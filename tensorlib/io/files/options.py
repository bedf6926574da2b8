"""Safe globals, which loading may build beside tensors, and PyTorch's other settings."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = [
    "LoadEndianness", "add_safe_globals", "clear_safe_globals", "get_default_load_endianness",
    "get_safe_globals", "safe_globals", "set_default_load_endianness"]

allowed: list[Any] = []


def add_safe_globals(safe_globals: Sequence[Callable[..., Any] | tuple[Any, str]]) -> None:
    """Allows classes and functions in files of `torch.save`, whose pickles may then call them.

    Each is given as itself, or with the full name that the file has for it. Only what is harmless
    with any arguments should be allowed.
    """
    for one in safe_globals:
        if not callable(one[0] if isinstance(one, tuple) else one):
            raise TypeError(f"add_safe_globals: expected classes and functions, got {one!r}")
    allowed.extend(one for one in safe_globals if one not in allowed)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has allowed."""
    return list(allowed)


def clear_safe_globals() -> None:
    """Allows nothing beyond what `load` builds itself."""
    allowed.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Callable[..., Any] | tuple[Any, str]]) -> Iterator[None]:
    """Allows classes and functions for a `with` block.

    >>> import argparse
    >>> with tensorlib.serialization.safe_globals([argparse.Namespace]):
    ...     tensorlib.serialization.get_safe_globals()
    [<class 'argparse.Namespace'>]
    """
    before = list(allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        allowed[:] = before


class LoadEndianness(enum.Enum):
    """The order of bytes in files of `torch.save` that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


default_endianness: LoadEndianness | None = None


def get_default_load_endianness() -> LoadEndianness | None:
    """The order that was set for files that do not say theirs; None stands for little."""
    return default_endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the order for files that do not say theirs. Raises: TypeError."""
    global default_endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("set_default_load_endianness: expected a LoadEndianness, got "
                        f"{type(endianness).__name__}")
    default_endianness = endianness
