"""Memory that MPI reads and writes: that of the tensors themselves where they are contiguous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib.autograd.graph import increment_version
from tensorlib.distributed.group import ProcessGroup
from tensorlib.distributed.work import EAGER_TESTS, Work


def packed(x: Tensor) -> Tensor:
    """The elements of x one after the other: x itself where they lie so."""
    return x if x.is_contiguous() else x.detach().contiguous()


class Target:
    """What a result is written to: the tensor itself, or memory that `unpack` copies to it."""

    def __init__(self, x: Tensor, filled: bool = False) -> None:
        self.x = x
        if x.is_contiguous():
            self.memory = x
        elif filled:
            self.memory = x.detach().contiguous()
        else:
            self.memory = tensorlib.empty(x.shape, dtype=x.dtype)

    def unpack(self) -> None:
        """Puts what came into its place."""
        if self.memory is self.x:
            increment_version(self.x)
        else:
            with tensorlib.no_grad():
                self.x.copy_(self.memory)


class FlatBuffer:
    """Several tensors as one stretch of memory, part after part.

    Those that lie so already, as a tensor cut into pieces does, are that memory themselves.
    """

    def __init__(self, xs: Sequence[Tensor], filled: bool = False) -> None:
        self.xs = tuple(xs)
        self.counts = [x.numel() for x in xs]
        self.packs = not adjacent(xs)
        self.memory: Tensor | MemorySpan
        if self.packs:
            self.memory = tensorlib.empty(sum(self.counts), dtype=xs[0].dtype)
            if filled:
                with tensorlib.no_grad():
                    for part, x in zip(self.memory.split(self.counts), xs):
                        part.copy_(x.reshape(-1))
        else:
            self.memory = MemorySpan(xs[0], sum(self.counts))

    def unpack(self) -> None:
        """Puts what came into the tensors."""
        if not self.packs:
            for x in self.xs:
                increment_version(x)
            return
        assert isinstance(self.memory, Tensor)
        with tensorlib.no_grad():
            for part, x in zip(self.memory.split(self.counts), self.xs):
                x.copy_(part.view(x.shape))


class MemorySpan:
    """Memory from where a tensor lies on, with so many elements of its dtype."""

    __slots__ = ("dtype", "nbytes", "place")

    def __init__(self, first: Tensor, count: int) -> None:
        self.dtype, self.nbytes = first.dtype, count * first.element_size()
        self.place = first.data_ptr()

    def data_ptr(self) -> int:
        """Its address."""
        return self.place


def adjacent(xs: Sequence[Tensor]) -> bool:
    """Whether contiguous tensors follow each other in memory."""
    place = xs[0].data_ptr()
    for x in xs:
        if x.data_ptr() != place or not x.is_contiguous():
            return False
        place += x.nbytes
    return True


def started(group: ProcessGroup, name: str, request: Any, async_op: bool, result: Any = None,
            finish: Callable[[], None] | None = None, nbytes: int = 0, keep: Any = None
            ) -> Work | None:
    """Waits for communication that has begun, unless it is asynchronous."""
    if not async_op:
        for _ in range(EAGER_TESTS):             # what a Work does, without one
            if request.Test():
                if finish is not None:
                    finish()
                return None
    work = Work(group, name, [request], result, finish, nbytes, keep)
    if async_op:
        return work
    work.wait()
    return None
