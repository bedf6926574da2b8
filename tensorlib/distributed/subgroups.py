"""Groups of some of the processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from operator import index
from typing import Any

from tensorlib.distributed.checking import ANYTHING, compare
from tensorlib.distributed.group import BACKENDS, ProcessGroup, group_of, groups
from tensorlib.distributed.work import seconds_of

__all__ = ["new_group", "new_subgroups"]

made = {"count": 0}


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | float | None = None,
              backend: str | None = None, pg_options: Any = None,
              use_local_synchronization: bool = False, group_desc: str | None = None
              ) -> ProcessGroup:
    """A group of these ranks, by default of all. All processes make this call, members or not.

    Raises: ValueError for ranks that do not exist, or twice; DistError where the processes do not
    give the same ranks; DistTimeoutError if one does not come.
    """
    world = group_of(None, "new_group")
    world.check("new_group")
    if backend is not None and backend.lower() not in BACKENDS:
        raise ValueError(f"new_group: backend is 'mpi' or 'gloo', got {backend!r}")
    chosen = list(range(world.size())) if ranks is None else sorted(map(index, ranks))
    if len({*chosen}) != len(chosen) or not {*chosen} <= {*range(world.size())}:
        raise ValueError(f"new_group: ranks {chosen} are not different ones of [0, {world.size()})")
    if not chosen:
        raise ValueError("new_group: a group has one rank or more")
    seconds = world.seconds if timeout is None else seconds_of(timeout)
    # MPI makes groups in calls that have no bound, so everybody has to be here before
    compare(world, "new_group", [ANYTHING if use_local_synchronization else str(chosen)])
    made["count"] += 1
    name = f"group {made['count']}" if group_desc is None else f"{group_desc} {made['count']}"
    comm = None
    if world.global_rank in chosen:
        members = world.comm.Get_group().Incl(chosen)
        comm = world.comm.Create_group(members, made["count"])
        members.Free()
    group = ProcessGroup(name, chosen, comm, seconds, world.global_rank)
    groups[name] = group
    return group


def new_subgroups(group_size: int | None = None, group: ProcessGroup | None = None,
                  timeout: timedelta | float | None = None, backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None
                  ) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Groups of `group_size` neighbours each: the one of this process, and all of them.

    Raises: ValueError for a size that does not divide the number of processes; as `new_group`.
    """
    world = group_of(group, "new_subgroups")
    size = world.size() if group_size is None else group_size
    if size < 1 or world.size() % size:
        raise ValueError(f"new_subgroups: group_size={size} does not divide {world.size()} ranks")
    found = [new_group(world.ranks[start:start + size], timeout, backend, pg_options,
                       group_desc=group_desc) for start in range(0, world.size(), size)]
    return next((each for each in found if each.rank() >= 0), None), found
