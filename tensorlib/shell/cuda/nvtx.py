"""Marks for NVIDIA's profiler: there is none here, and each raises, as in PyTorch without CUDA."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..backends.absent import needs_device

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _missing(name: str) -> Any:
    return needs_device(
        name, f"cuda.nvtx.{name}: NVTX functions not installed. Are you sure you have a CUDA "
        "build? tensorlib.profiler says where time goes on the CPU", __name__)


mark = _missing("mark")
range_push = _missing("range_push")
range_pop = _missing("range_pop")
range_start = _missing("range_start")
range_end = _missing("range_end")


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A context that is marked. Raises: RuntimeError when it is entered."""
    range_push(msg.format(*args, **kwargs))
    yield
