"""Types of `tensorlib.func.mapping`."""

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Dims = int | tuple[Any, ...] | list[Any] | dict[Any, Any] | None

def vmap(
    func: Callable[_P, _R], in_dims: _Dims = 0, out_dims: _Dims = 0,
    randomness: Literal["error", "same", "different"] = "error", *, chunk_size: int | None = None
) -> Callable[_P, _R]: ...
