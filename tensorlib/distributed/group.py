"""Groups of processes: how they begin, who is in them, and how they end."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

from tensorlib._core.base.registry import Registry
from tensorlib.distributed import mpi as door
from tensorlib.distributed.errors import DistError, NoGroupError
from tensorlib.distributed.work import Work, seconds_of

__all__ = ["Backend", "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend",
           "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank",
           "get_world_size", "init_process_group", "is_backend_available", "is_gloo_available",
           "is_initialized", "is_nccl_available", "is_torchelastic_launched"]

default_pg_timeout = timedelta(minutes=30)          # PyTorch's for processes on CPUs
WORLD = "world"
BACKENDS = ("mpi", "gloo")
SWITCH = "TENSORLIB_DISTRIBUTED_CHECK"


class Backend(str):
    """The name of what carries the messages: `Backend("MPI") == "mpi"`.

    Of those that need other devices there is no more than the name, for scripts that compare it.
    """

    MPI, GLOO, UNDEFINED = "mpi", "gloo", "undefined"
    NCCL, UCC, XCCL = "nccl", "ucc", "xccl"
    default_device_backend_map = {"cpu": GLOO}

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """Processes that communicate, made by `init_process_group` and `new_group`.

    A process may hold a group that it is not in; calls with it raise ValueError.
    """

    def __init__(self, name: str, ranks: Sequence[int], comm: Any, seconds: float,
                 global_rank: int) -> None:
        self.group_name, self.ranks, self.seconds = name, list(ranks), seconds
        self.global_rank = global_rank
        self.comm = comm
        # what ranks tell each other of their calls, apart from the elements
        self.control = comm.Dup() if comm is not None else None
        self.stuck: list[Work] = []
        self.destroyed = False
        self.compares = os.environ.get(SWITCH, "0") not in ("", "0")
        self.calls = 0                           # that were compared between the ranks
        self.agreed = False                      # on the call that is being made

    def rank(self) -> int:
        """The place of this process in the group, -1 outside of it."""
        return self.ranks.index(self.global_rank) if self.global_rank in self.ranks else -1

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend."""
        return "mpi"

    def described(self) -> str:
        """The group as errors speak of it."""
        if self.group_name == WORLD:
            return f"the group of all {self.size()} ranks"
        return f"group {self.group_name!r} of ranks {self.ranks}"

    def fail(self, work: Work) -> None:
        """Notes communication that did not end: its memory stays, and nothing more is begun."""
        self.stuck.append(work)

    def check(self, name: str) -> None:
        """Raises DistError where it can't be used, ValueError where this rank is not in it."""
        if self.destroyed:
            raise NoGroupError(f"{name}: {self.described()} was destroyed; make a new one")
        if self.stuck:
            raise DistError(f"{name}: {self.described()} failed in {self.stuck[0].name}, which "
                            "other ranks did not take part in; end the job")
        if self.comm is None:
            raise ValueError(f"{name}: rank {self.global_rank} is not in {self.described()}; only "
                             "its members may make this call")

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} of ranks {self.ranks}>"

    def __reduce__(self) -> Any:
        raise TypeError("ProcessGroup: a group is of its process, and can't be pickled or copied")

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self


class GroupMember:
    """What PyTorch calls the group of all, and the group of a process that is in none."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


groups: dict[str, ProcessGroup] = Registry()
state: dict[str, Any] = {"hook": None, "forked": False}


# ---- begin and end -------------------------------------------------------------------------------

def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: timedelta | float | None = None, world_size: int = -1,
                       rank: int = -1, store: Any = None, group_name: str = "",
                       pg_options: Any = None, device_id: Any = None) -> None:
    """Makes the group of all processes of the job, which the launcher knows: no argument is needed.

    backend: "mpi"; "gloo" is taken as the same. timeout: how long a call waits for other ranks, 30
    minutes by default. world_size, rank: checked if they are given; `world_size=1, rank=0`, also
    as the environment's WORLD_SIZE and RANK, makes a group of one without a launcher, for which
    mpi4py need not be installed.
    Raises: DistError outside of a launcher, without mpi4py, or if the group is there already;
    ValueError for another backend, rank or size than those of the job.
    """
    name = "init_process_group"
    if backend is not None:
        parts = [part.split(":")[-1] for part in str(backend).lower().split(",")]
        if parts and not set(parts) <= set(BACKENDS):
            raise ValueError(f"{name}: backend is 'mpi' (or 'gloo', which is taken as the same), "
                             f"got {backend!r}")
    seconds = seconds_of(default_pg_timeout if timeout is None else timeout)
    if WORLD in groups:
        raise DistError(f"{name}: the group of all processes is there already; "
                        "destroy_process_group() ends it")
    if state["forked"]:
        raise DistError(f"{name}: this process was forked from one that uses MPI, and can't")
    if not door.is_launched() and not is_alone(world_size, rank):
        raise DistError(
            f"{name}: this process was not started by a launcher, so that there are no others; "
            "start it with `mpiexec -n 2 python ...` or `python -m tensorlib.distributed.run -n 2 "
            "...`, or give world_size=1, rank=0 for a group of one")
    comm = door.mpi().COMM_WORLD
    for what, given, found in (("world_size", world_size, comm.size), ("rank", rank, comm.rank)):
        if given not in (-1, found):
            raise ValueError(f"{name}: {what}={given}, but the launcher says {found}")
    groups[WORLD] = ProcessGroup(WORLD, range(comm.size), comm.Dup(), seconds, comm.rank)
    GroupMember.WORLD = groups[WORLD]
    if comm.size > 1 and state["hook"] is None:
        state["hook"], sys.excepthook = sys.excepthook, end_the_job


def is_alone(world_size: int, rank: int) -> bool:
    """Whether these, or else the variables that PyTorch's launcher sets, are of one process."""
    if (world_size, rank) == (-1, -1):
        return (os.environ.get("WORLD_SIZE"), os.environ.get("RANK", "0")) == ("1", "0")
    return world_size == 1 and rank in (0, -1)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group, or all of them: calls with it raise. All members have to call it.

    Raises: NoGroupError before `init_process_group`.
    """
    found = group_of(group, "destroy_process_group")
    ended = list(groups.values()) if found.group_name == WORLD else [found]
    for each in ended:
        groups.pop(each.group_name, None)
        if each.comm is not None and not each.stuck:
            each.control.Free()
            each.comm.Free()
        each.destroyed = True
        if each.stuck:
            broken.append(each)
    if found.group_name == WORLD:
        GroupMember.WORLD = None
        if state["hook"] is not None:
            sys.excepthook, state["hook"] = state["hook"], None


broken: list[ProcessGroup] = []


def end_the_job(kind: type[BaseException], error: BaseException,
                where: TracebackType | None) -> None:
    """Shows an error that nobody caught, as Python does, and ends all ranks: they would wait."""
    rank = groups[WORLD].global_rank if WORLD in groups else -1
    sys.stdout.flush()
    text = "".join(traceback.format_exception(kind, error, where))
    sys.stderr.write(f"rank {rank} ends the job:\n{text}")
    sys.stderr.flush()
    door.mpi().COMM_WORLD.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)


@atexit.register
def leave() -> None:
    """MPI would wait for communication that never ends."""
    if broken or any(group.stuck for group in groups.values()):
        sys.stdout.flush()
        sys.stderr.flush()
        door.mpi().COMM_WORLD.Abort(1)


def leave_to_parent() -> None:
    """A forked process, such as a loader's worker, has no part in the groups of its parent."""
    if groups:
        groups.clear()
        broken.clear()
        GroupMember.WORLD = None
        if state["hook"] is not None:
            sys.excepthook = state["hook"]
        state.update(hook=None, forked=True)


os.register_at_fork(after_in_child=leave_to_parent)


# ---- groups and ranks ----------------------------------------------------------------------------

def group_of(group: Any, name: str) -> ProcessGroup:
    """A group that a call was given: None is that of all. Raises: NoGroupError, TypeError."""
    if group is None:
        if WORLD not in groups:
            raise NoGroupError(f"{name}: there is no process group in this " + (
                "process, which was forked from one that has; loaders' workers can't communicate"
                if state["forked"] else "process; call init_process_group() first"))
        return groups[WORLD]
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"{name}: group is what new_group() returns or None, got "
                        f"{type(group).__name__}")
    if state["forked"]:
        return group_of(None, name)
    return group


def is_initialized() -> bool:
    """Whether `init_process_group` was called, and `destroy_process_group` not since."""
    return WORLD in groups


def get_rank(group: ProcessGroup | None = None) -> int:
    """The place of this process in a group, by default that of all; -1 outside of it.

    Raises: NoGroupError before `init_process_group`.
    """
    return group_of(group, "get_rank").rank()


def _rank_not_in_group(group: ProcessGroup | None = None) -> bool:
    """Whether this process is outside of a group; of that of all each is a member."""
    return group is not None and (
        group == GroupMember.NON_GROUP_MEMBER or get_rank(group) < 0)


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes of a group, by default that of all; -1 outside of it.

    Raises: NoGroupError before `init_process_group`.
    """
    found = group_of(group, "get_world_size")
    return found.size() if found.rank() >= 0 else -1


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """"mpi". Raises: NoGroupError before `init_process_group`."""
    group_of(group, "get_backend")
    return Backend("mpi")


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of a group's members among all processes."""
    return list(group_of(group, "get_process_group_ranks").ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank among all processes of a member. Raises: ValueError for a rank out of range."""
    ranks = group_of(group, "get_global_rank").ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"get_global_rank: group rank {group_rank} is not in [0, {len(ranks)})")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The place in a group of a rank among all. Raises: ValueError for one that is not in it."""
    return place_of(group_of(group, "get_group_rank"), global_rank, "get_group_rank", "rank")


def place_of(group: ProcessGroup, rank: Any, name: str, what: str) -> int:
    """The same, for errors of the call `name` about its argument `what`."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(f"{name}: {what} is a rank, got {type(rank).__name__}")
    if rank not in group.ranks:
        raise ValueError(f"{name}: {what}={rank} is not in {group.described()}")
    return group.ranks.index(rank)


def root_of(group: ProcessGroup, name: str, what: str, rank: int | None,
            group_rank: int | None) -> int:
    """The place in the group of the rank that a call names, in one of two ways."""
    if (rank is None) == (group_rank is None):
        raise ValueError(f"{name}: takes either {what} or group_{what}")
    if group_rank is None:
        return place_of(group, rank, name, what)
    if isinstance(group_rank, bool) or not isinstance(group_rank, int):
        raise TypeError(f"{name}: group_{what} is a rank, got {type(group_rank).__name__}")
    if not 0 <= group_rank < group.size():
        raise ValueError(f"{name}: group_{what}={group_rank} is not in [0, {group.size()})")
    return group_rank


def is_gloo_available() -> bool:
    """Whether mpi4py is installed: "gloo" is taken for MPI."""
    return door.is_mpi_available()


def is_nccl_available() -> bool:
    """False: there are no GPUs."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether PyTorch's launcher `torchrun` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether groups can be made with this backend."""
    return backend.lower() in BACKENDS and door.is_mpi_available()
