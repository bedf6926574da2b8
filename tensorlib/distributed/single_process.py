"""A replacement of `mpi4py.MPI` for groups of one process, where MPI is not installed.

Whatever such a process sends comes back to it, so every collective is at most a copy: sums,
extremes and products of one value are the value. Names and arguments are those of mpi4py.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from tensorlib.distributed.errors import DistError

__all__ = ["COMM_WORLD", "IN_PLACE", "Communicator", "Op", "Status", "memory"]

IN_PLACE = object()
ANY_SOURCE, TAG_UB = -1, 0
LARGEST_TAG = 2**31 - 1
Exception = DistError            # nothing here raises it: there is no one who could fail


def __getattr__(name: str) -> str:
    """The types of elements and the reductions, which one process need not tell apart."""
    if not name.isupper():
        raise AttributeError(f"a group of one process without MPI has no {name!r}")
    return name


class memory:
    """Memory at an address, of so many bytes."""

    @staticmethod
    def fromaddress(address: int, nbytes: int) -> memoryview:
        """That memory, to be read and written."""
        return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")


class Op:
    """A reduction that is given as a function of two."""

    @staticmethod
    def Create(function: Any, commute: bool = False) -> Any:
        """The function, which is never called."""
        return function


class Status:
    """Where a message came from; no message comes."""


class Request:
    """Communication that has ended, or that never will."""

    def __init__(self, ended: bool = True) -> None:
        self.ended = ended

    def Test(self, status: Status | None = None) -> bool:
        """Whether it has ended."""
        return self.ended

    def Cancel(self) -> None:
        """Nothing waits for it."""


def copied(source: Any, target: Any, *further: Any) -> Request:
    """A collective: the elements of one buffer, `[memory, ...]`, into those of the other."""
    if source is not IN_PLACE:
        target[0][:] = source[0]
    return Request()


class Communicator:
    """A communicator whose only rank is this process."""

    size, rank = 1, 0

    Iallreduce = Ireduce = Iallgather = Iallgatherv = Igather = Igatherv = staticmethod(copied)
    Iscatter = Iscatterv = Ireduce_scatter = Ireduce_scatter_block = staticmethod(copied)
    Ialltoall = Ialltoallv = staticmethod(copied)

    def Ibcast(self, buffer: Any, root: int) -> Request:
        """The elements are where they should be."""
        return Request()

    def Ibarrier(self) -> Request:
        """Everybody is here."""
        return Request()

    def Irecv(self, buffer: Any, source: int, tag: int) -> Request:
        """Nobody sends anything, since a rank sends nothing to itself."""
        return Request(ended=False)

    def Get_attr(self, key: int) -> int:
        """The largest tag."""
        return LARGEST_TAG

    def Dup(self) -> Communicator:
        """The same: nothing is under way that could be mistaken for something else."""
        return self

    def Get_group(self) -> Communicator:
        """The group that it is of: itself."""
        return self

    def Incl(self, ranks: list[int]) -> Communicator:
        """The group of these ranks, of which there is one."""
        return self

    def Create_group(self, group: Communicator, tag: int = 0) -> Communicator:
        """A communicator of that group."""
        return self

    def Free(self) -> None:
        """There is nothing to give back."""

    def Abort(self, code: int = 1) -> None:
        """Ends the process, at once."""
        os._exit(code)


COMM_WORLD = Communicator()
