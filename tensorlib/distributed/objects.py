"""Python's objects among ranks, as pickles: for settings and results, not for tensors.

What is unpickled may run code, so this is for ranks that trust each other, which those of one job
do.
"""

from __future__ import annotations

import pickle
from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib.distributed.checking import agree, collective, member_of
from tensorlib.distributed.group import ProcessGroup, root_of
from tensorlib.distributed.mpi import memory, memory_in_parts
from tensorlib.distributed.work import Work

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


def pickled(value: Any) -> Tensor:
    """An object as a tensor of bytes."""
    return tensorlib.frombuffer(bytearray(pickle.dumps(value)), dtype=tensorlib.uint8)


def unpickled(data: Tensor) -> Any:
    """The object of such a tensor."""
    return pickle.loads(data.numpy().tobytes())


def sizes_of(members: ProcessGroup, name: str, size: int) -> list[int]:
    """The numbers that all ranks give."""
    mine, found = tensorlib.tensor([size]), tensorlib.tensor([0] * members.size())
    Work(members, name, [members.comm.Iallgather(memory(mine), memory(found))],
         keep=(mine, found)).wait()
    return found.tolist()


@collective
def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Fills `object_list` of each rank with the objects of all of them.

    Raises: ValueError for a list of another length than there are ranks; what pickling raises.
    """
    name = "all_gather_object"
    members = member_of(group, name)
    check_list(name, "object_list", object_list, members)
    mine = pickled(obj)
    agree(members, name)
    sizes = sizes_of(members, name, mine.numel())
    found = tensorlib.empty(sum(sizes), dtype=tensorlib.uint8)
    Work(members, name, [members.comm.Iallgatherv(memory(mine), memory_in_parts(found, sizes))],
         nbytes=found.nbytes, keep=(mine, found)).wait()
    object_list[:] = map(unpickled, found.split(sizes))


@collective
def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: ProcessGroup | None = None, group_dst: int | None = None) -> None:
    """Fills `object_gather_list` of rank `dst` (by default 0) with the objects of all ranks.

    Raises: ValueError for a list on another rank, or none on `dst`; what pickling raises.
    """
    name = "gather_object"
    members = member_of(group, name)
    root = root_of(members, name, "dst", *default_root(dst, group_dst))
    if members.rank() == root:
        check_list(name, "object_gather_list", object_gather_list, members)
    elif object_gather_list:
        raise ValueError(f"{name}: object_gather_list is for rank {members.ranks[root]} alone")
    mine = pickled(obj)
    agree(members, name, f"dst={root}")
    sizes = sizes_of(members, name, mine.numel())
    receives = object_gather_list is not None and members.rank() == root
    found = tensorlib.empty(sum(sizes) if receives else 0, dtype=tensorlib.uint8)
    Work(members, name, [members.comm.Igatherv(
        memory(mine), memory_in_parts(found, sizes) if receives else None, root)],
        nbytes=found.nbytes, keep=(mine, found)).wait()
    if object_gather_list is not None and receives:
        object_gather_list[:] = map(unpickled, found.split(sizes))


@collective
def broadcast_object_list(object_list: list[Any], src: int | None = None,
                          group: ProcessGroup | None = None, device: Any = None,
                          group_src: int | None = None) -> None:
    """Writes the objects of rank `src` (by default 0) over those in the lists of the others.

    Raises: ValueError for a rank that is not in the group; what pickling raises.
    """
    name = "broadcast_object_list"
    members = member_of(group, name)
    root = root_of(members, name, "src", *default_root(src, group_src))
    if not isinstance(object_list, list):
        raise TypeError(f"{name}: object_list is a list, got {type(object_list).__name__}")
    sends = members.rank() == root
    data = pickled(object_list) if sends else None
    agree(members, name, f"src={root}", len(object_list))
    size = sizes_of(members, name, data.numel() if data is not None else 0)[root]
    if data is None:
        data = tensorlib.empty(size, dtype=tensorlib.uint8)
    Work(members, name, [members.comm.Ibcast(memory(data), root)], nbytes=size, keep=data).wait()
    if not sends:
        object_list[:] = unpickled(data)


@collective
def scatter_object_list(scatter_object_output_list: list[Any],
                        scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: ProcessGroup | None = None,
                        group_src: int | None = None) -> None:
    """Puts the object for this rank, of the list of rank `src`, into the first place of a list.

    Raises: ValueError for no list on `src`, and an output list without a place; what pickling
    raises.
    """
    name = "scatter_object_list"
    members = member_of(group, name)
    root = root_of(members, name, "src", *default_root(src, group_src))
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(f"{name}: scatter_object_output_list is a list with a place")
    parts = []
    if members.rank() == root:
        check_list(name, "scatter_object_input_list", scatter_object_input_list, members)
        parts = [pickled(each) for each in scatter_object_input_list or []]
    agree(members, name, f"src={root}")
    counts = tensorlib.tensor([part.numel() for part in parts] or [0] * members.size())
    Work(members, name, [members.comm.Ibcast(memory(counts), root)], keep=counts).wait()
    sizes = counts.tolist()
    whole = tensorlib.cat(parts) if parts else None
    found = tensorlib.empty(sizes[members.rank()], dtype=tensorlib.uint8)
    Work(members, name, [members.comm.Iscatterv(
        memory_in_parts(whole, sizes) if whole is not None else None, memory(found), root)],
        nbytes=sum(sizes), keep=(whole, found)).wait()
    scatter_object_output_list[0] = unpickled(found)


def default_root(rank: int | None, group_rank: int | None) -> tuple[int | None, int | None]:
    """The ranks that a call gave, or that it means the first of the group."""
    return (None, 0) if rank is None and group_rank is None else (rank, group_rank)


def check_list(name: str, what: str, given: Any, members: ProcessGroup) -> None:
    """Raises: TypeError, ValueError for what is not a list with a place for each rank."""
    if not isinstance(given, list):
        raise TypeError(f"{name}: {what} is a list, got {type(given).__name__}")
    if len(given) != members.size():
        raise ValueError(f"{name}: {what} has {len(given)} places for {members.size()} ranks")
