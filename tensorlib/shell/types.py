"""Types for annotations, under the names of `torch.types`."""

import builtins
import os
from collections.abc import Sequence
from typing import TypeAlias

from tensorlib import Size, Tensor, device, dtype, layout

__all__ = ["Device", "FileLike", "Number", "Tensor"]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str]
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
BoolLikeType: TypeAlias = builtins.bool
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_str, _bytes = builtins.str, builtins.bytes
_device, _dtype, _layout = device, dtype, layout
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]
