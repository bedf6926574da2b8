"""A sum over micro-batches that has the same bits for any number of ranks.

The leaves of the tree are the gradients of micro-batches 0, 1, ..., M - 1 of the whole batch.
Neighbours of the same size are added, again and again; what is left at the end, where M is no power
of two, is added from the right. Which numbers meet depends on M alone. Each rank adds what it has
of the tree, then every rank adds a slice of the elements for all, in the same order, and all gather
the slices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorlib import Tensor, empty, no_grad
from tensorlib.distributed.group import ProcessGroup
from tensorlib.distributed.mpi import memory, memory_in_parts
from tensorlib.distributed.work import Work, WorkFuture


class Part(NamedTuple):
    """The sum of `count` neighbouring leaves, from `start` on; `count` is a power of two."""

    start: int
    count: int
    sum: Tensor


def merge(parts: list[Part]) -> None:
    """Adds the last two parts for as long as they are the halves of one."""
    while len(parts) > 1:
        a, b = parts[-2:]
        if a.count != b.count or a.start % (2 * a.count) or a.start + a.count != b.start:
            break
        a.sum.add_(b.sum)
        parts[-2:] = [Part(a.start, 2 * a.count, a.sum)]


def cut(start: int, count: int) -> list[int]:
    """The sizes of the parts that are left of `count` leaves from `start` on."""
    found: list[tuple[int, int]] = []
    for leaf in range(start, start + count):
        found.append((leaf, 1))
        while len(found) > 1 and found[-2][1] == found[-1][1] and not found[-2][0] % (
                2 * found[-1][1]):
            found[-2:] = [(found[-2][0], 2 * found[-1][1])]
    return [size for _, size in found]


class TreeSum:
    """The mean over all micro-batches of one bucket of gradients."""

    def __init__(self, group: ProcessGroup, micro_batches: int) -> None:
        self.group, self.micro_batches = group, micro_batches
        self.own = micro_batches // group.size()
        self.leaf = self.first = group.rank() * self.own
        self.parts: list[Part] = []

    def add(self, gradient: Tensor) -> None:
        """The next leaf of this rank; a copy of it is kept."""
        if self.leaf == self.first + self.own:
            raise RuntimeError(
                f"DistributedDataParallel: more than {self.own} sweeps of a step on rank "
                f"{self.group.global_rank}, which has {self.own} of {self.micro_batches} "
                "micro-batches; the last of them has to be outside of no_sync()")
        with no_grad():
            self.parts.append(Part(self.leaf, 1, gradient.clone()))
            self.leaf += 1
            merge(self.parts)

    def begin(self) -> WorkFuture:
        """Begins the exchange, and gives a future of the mean."""
        if self.leaf != self.first + self.own:
            raise RuntimeError(
                f"DistributedDataParallel: {self.leaf - self.first} sweeps of a step on rank "
                f"{self.group.global_rank}, which has {self.own} of {self.micro_batches} "
                "micro-batches; micro_batches() yields them")
        size, count = self.group.size(), self.parts[0].sum.numel()
        if size == 1:
            mean = self.folded(self.parts)
            future = WorkFuture()
            future.set_result(mean)
            return future
        each = -(-count // size)                 # of the elements, for each rank to add
        slices = [max(0, min(each, count - rank * each)) for rank in range(size)]
        mine = slices[self.group.rank()]
        # to each rank its slice of all parts of this one, part after part
        sent = empty(count * len(self.parts), dtype=self.parts[0].sum.dtype)
        place = 0
        with no_grad():
            for rank, width in enumerate(slices):
                for part in self.parts:
                    sent[place:place + width].copy_(part.sum[rank * each:rank * each + width])
                    place += width
        layout = [cut(rank * self.own, self.own) for rank in range(size)]
        taken = empty(mine * sum(map(len, layout)), dtype=sent.dtype)
        request = self.group.comm.Ialltoallv(
            memory_in_parts(sent, [width * len(self.parts) for width in slices]),
            memory_in_parts(taken, [mine * len(parts) for parts in layout]))
        work = Work(self.group, "DistributedDataParallel", [request], nbytes=sent.nbytes,
                    keep=(sent, taken))
        return WorkFuture(work, lambda: self.gathered(taken, layout, slices))

    def gathered(self, taken: Tensor, layout: list[list[int]], slices: list[int]) -> Tensor:
        """Adds this rank's slice in the order of the tree, and gathers those of all."""
        mine = slices[self.group.rank()]
        parts: list[Part] = []
        with no_grad():
            rows = iter(taken.view(-1, mine).unbind(0) if mine else [taken] * sum(
                map(len, layout)))
            start = 0
            for sizes in layout:
                for size in sizes:
                    parts.append(Part(start, size, next(rows)))
                    start += size
                    merge(parts)
        own = self.folded(parts).contiguous()
        mean = empty(sum(slices), dtype=own.dtype)
        Work(self.group, "DistributedDataParallel", [self.group.comm.Iallgatherv(
            memory(own), memory_in_parts(mean, slices))], nbytes=mean.nbytes,
            keep=(own, mean)).wait()
        return mean

    def folded(self, parts: list[Part]) -> Tensor:
        """The mean, of the parts that are left."""
        with no_grad():
            total: Any = parts[-1].sum
            for part in parts[-2::-1]:
                total = part.sum + total
            return total / self.micro_batches
