"""Types of `tensorlib.autograd.recompute`."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

_R = TypeVar("_R")

class CheckpointError(RuntimeError): ...

def checkpoint(
    function: Callable[..., _R], *args: Any, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = ...,
    determinism_check: str = "default", debug: bool = False, early_stop: bool = True, **kwargs: Any
) -> _R: ...
def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]], segments: int, input: Any,
    use_reentrant: bool | None = None, *, preserve_rng_state: bool = True
) -> Any: ...
def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]: ...
