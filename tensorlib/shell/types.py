"""Types for annotations, under the names of `torch.types`."""

import builtins
import os
from typing import TypeAlias

from tensorlib import Size, Tensor, device

__all__ = ["Device", "FileLike", "Number", "Tensor"]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str]
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]
