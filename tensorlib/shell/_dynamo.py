"""What scripts tell PyTorch's compiler: settings that are kept, and change nothing.

>>> tensorlib._dynamo.config.suppress_errors = True
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tensorlib._core.base.importing import parts_of
from tensorlib.program.compiled.compiled_modules import CompiledModule as OptimizedModule

from .compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = ["Config", "OptimizedModule", "TransformGetItemToIndex", "allow_in_graph",
           "assume_constant_result", "config", "disable", "graph_break", "is_compiling",
           "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
           "maybe_mark_dynamic", "reset"]

parts_of(__name__, "eval_frame", "_trace_wrapped_higher_order_op")


class Config:
    """Settings that are stored, without effect."""

    def __init__(self, **usual: Any) -> None:
        vars(self).update(usual)

    @contextmanager
    def patch(self, *names: Any, **values: Any) -> Iterator[None]:
        """A context in which settings have other values: by keyword, in a dict, or name, value."""
        given = {**(names[0] if len(names) == 1 else dict([names] if names else [])), **values}
        before = dict(vars(self))
        vars(self).update(given)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)


config = Config(cache_size_limit=8, capture_scalar_outputs=False, dynamic_shapes=True,
                optimize_ddp=True, recompile_limit=8, suppress_errors=False, verbose=False)


def is_dynamo_supported() -> bool:
    """False: PyTorch's compiler is not here."""
    return False


def graph_break(msg: str = "") -> None:
    """Does nothing: the lines around it are captured as they can be."""


def mark_dynamic(t: Any, index: Any = None, *, hint_override: int | None = None,
                 min: int | None = None, max: int | None = None,
                 specialize_on: Any = None) -> None:
    """Does nothing: a call with other sizes is captured anew."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Does nothing: a captured function takes a tensor wherever it lies."""


class TransformGetItemToIndex(nullcontext[None]):
    """A context in which `x[i]` of a 0-d tensor `i` is no view: it is one nowhere here."""
