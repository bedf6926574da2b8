"""What scripts for many processes import of PyTorch's launcher: `record`.

    from torch.distributed.elastic.multiprocessing.errors import record

The launcher here is `python -m tensorlib.distributed.run`, which prints the errors of processes.
"""

from collections.abc import Callable
from typing import TypeVar

from tensorlib._core.base.importing import parts_of

__all__ = ["record"]

parts_of(__name__, "errors", "multiprocessing")

F = TypeVar("F", bound=Callable[..., object])


def record(fn: F, error_handler: object = None) -> F:
    """`fn` as it is: an error of it ends the process, and is printed as any other."""
    return fn
