"""Training where processes have different numbers of batches, which is not supported yet.

Scripts import the names; with one process, or `enable=False`, there is nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tensorlib._core.base.explained import explain
from tensorlib.distributed.group import get_world_size, is_initialized

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a `Joinable` would do for a process that has no batches left."""


class Joinable:
    """The base of what a `Join` would wait for."""


class Join(nullcontext[None]):
    """A context of a loop over batches, of which each process may have another number.

    Raises: NotImplementedError where there are several processes and `enable` is True.
    """

    def __init__(self, joinables: Sequence[Any], enable: bool = True,
                 throw_on_early_termination: bool = False, **kwargs: Any) -> None:
        super().__init__()
        if enable and is_initialized() and get_world_size() > 1:
            raise NotImplementedError("Join: processes with different numbers of batches are not "
                                      "there; DistributedSampler gives each the same number")


explain(vars(), __all__)
