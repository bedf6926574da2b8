"""Saving and loading, under the name of `torch.serialization`: see `tensorlib.save` and `load`."""

import os
from collections.abc import Callable
from typing import IO, Any, TypeAlias

from tensorlib import device
from tensorlib._core.base.explained import explain
from tensorlib.io.files import (
    LoadEndianness,
    LoadError,
    add_safe_globals,
    clear_safe_globals,
    get_default_load_endianness,
    get_safe_globals,
    load,
    safe_globals,
    save,
    set_default_load_endianness,
)

__all__ = [
    "LoadEndianness", "LoadError", "add_safe_globals", "clear_safe_globals",
    "get_default_load_endianness", "get_safe_globals", "load", "safe_globals", "save",
    "set_default_load_endianness"]

DEFAULT_PROTOCOL = 2
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None
FILE_LIKE = FileLike


def __dir__() -> list[str]:
    return sorted(__all__)

explain(vars(), __all__)
