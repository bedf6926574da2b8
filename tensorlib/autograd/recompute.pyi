"""Types of `tensorlib.autograd.recompute`."""

from collections.abc import Callable
from typing import Any, TypeVar

_R = TypeVar("_R")

class CheckpointError(RuntimeError): ...

def checkpoint(
    function: Callable[..., _R], *args: Any, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True, **kwargs: Any
) -> _R: ...
