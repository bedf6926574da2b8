"""Calls that all ranks of a group make together, under PyTorch's names and on tensors in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib.distributed.buffers import FlatBuffer, Target, packed, started
from tensorlib.distributed.checking import (
    agree,
    check_dtypes,
    check_tensor,
    check_tensors,
    collective,
    member_of,
)
from tensorlib.distributed.group import ProcessGroup, root_of
from tensorlib.distributed.mpi import OPERATIONS, memory, memory_in_parts, mpi, mpi_operation
from tensorlib.distributed.work import Work

__all__ = ["ReduceOp", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all",
           "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
           "reduce_scatter_tensor", "scatter"]


class ReduceOp(str):
    """What reductions do with the elements of all ranks: `ReduceOp.SUM`."""

    SUM: ReduceOp
    PRODUCT: ReduceOp
    MIN: ReduceOp
    MAX: ReduceOp
    AVG: ReduceOp
    BAND: ReduceOp
    BOR: ReduceOp
    BXOR: ReduceOp
    RedOpType: type[ReduceOp]

    def __repr__(self) -> str:
        return f"<ReduceOp.{self.upper()}>"


for _name in OPERATIONS:
    setattr(ReduceOp, _name.upper(), ReduceOp(_name))
ReduceOp.RedOpType = ReduceOp       # PyTorch's name of the type of these constants


known: dict[tuple[str, Any], Any] = {}      # MPI's operations that were asked for


def operation_for(name: str, op: Any, dtype: Any) -> Any:
    """MPI's operation. Raises: TypeError, ValueError."""
    found = known.get((op, dtype)) if type(op) in (ReduceOp, str) else None
    if found is not None:
        return found
    if not isinstance(op, str):
        raise TypeError(f"{name}: op is a ReduceOp, got {type(op).__name__}")
    if op.lower() not in OPERATIONS:
        raise ValueError(f"{name}: op is one of {', '.join(OPERATIONS)}, got {op!r}")
    found = mpi_operation(op.lower(), dtype)
    if found is None:
        raise TypeError(f"{name}: {op.upper()} is not defined for {dtype}")
    known[op, dtype] = found
    return found


def finish_of(op: str, group: ProcessGroup, target: Target) -> Callable[[], None]:
    """What is left to do after a reduction."""
    if op.lower() != "avg":
        return target.unpack

    def finish() -> None:
        with tensorlib.no_grad():
            target.memory.div_(group.size())
        target.unpack()

    return finish


@collective
def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Reduces the tensors of all ranks, and gives all of them the result, in place.

    Raises: RuntimeError for a tensor that requires a gradient, or has no elements; TypeError for
    an operation that its dtype does not have; DistTimeoutError if a rank does not come.
    """
    members = member_of(group, "all_reduce")
    check_tensor("all_reduce", "tensor", tensor, "all_reduce")
    operation = operation_for("all_reduce", op, tensor.dtype)
    agree(members, "all_reduce", op.lower(), tensor)
    target = Target(tensor, filled=True)
    return started(members, "all_reduce", members.comm.Iallreduce(
        mpi().IN_PLACE, memory(target.memory), operation), async_op, tensor,
        finish_of(op, members, target), tensor.nbytes, target)


@collective
def reduce(tensor: Tensor, dst: int | None = None, op: str = ReduceOp.SUM,
           group: ProcessGroup | None = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """Reduces the tensors of all ranks into that of rank `dst`; the others stay as they are.

    Raises: as `all_reduce`; ValueError for a rank that is not in the group.
    """
    members = member_of(group, "reduce")
    check_tensor("reduce", "tensor", tensor, "reduce")
    operation = operation_for("reduce", op, tensor.dtype)
    root = root_of(members, "reduce", "dst", dst, group_dst)
    agree(members, "reduce", op.lower(), f"dst={root}", tensor)
    if members.rank() != root:
        source = packed(tensor)
        return started(members, "reduce", members.comm.Ireduce(
            memory(source), None, operation, root), async_op, tensor, None, tensor.nbytes, source)
    target = Target(tensor, filled=True)
    return started(members, "reduce", members.comm.Ireduce(
        mpi().IN_PLACE, memory(target.memory), operation, root), async_op, tensor,
        finish_of(op, members, target), tensor.nbytes, target)


@collective
def broadcast(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None,
              async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Writes the tensor of rank `src` over those of the others.

    Raises: RuntimeError for a tensor that requires a gradient, or has no elements; ValueError for
    a rank that is not in the group; DistTimeoutError if a rank does not come.
    """
    members = member_of(group, "broadcast")
    root = root_of(members, "broadcast", "src", src, group_src)
    sends = members.rank() == root
    check_tensor("broadcast", "tensor", tensor, "broadcast", writes=not sends)
    agree(members, "broadcast", f"src={root}", tensor)
    target = Target(tensor, filled=sends)
    return started(members, "broadcast", members.comm.Ibcast(memory(target.memory), root),
                   async_op, tensor, None if sends else target.unpack, tensor.nbytes, target)


@collective
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Fills `tensor_list` of each rank with the tensors of all of them, which may differ in shape.

    Raises: as `broadcast`; ValueError for another number of tensors than of ranks; RuntimeError if
    the tensor that a rank sends does not have the shape of its place in the lists.
    """
    members = member_of(group, "all_gather")
    check_tensor("all_gather", "tensor", tensor, "all_gather", writes=False)
    check_tensors("all_gather", "tensor_list", tensor_list, members.size(), "all_gather")
    check_dtypes("all_gather", tensor, tensor_list)
    own = tensor_list[members.rank()]
    if own.shape != tensor.shape:
        raise RuntimeError(f"all_gather: tensor is {tuple(tensor.shape)}, but its place in "
                           f"tensor_list {tuple(own.shape)}")
    agree(members, "all_gather", *tensor_list)
    source, target = packed(tensor), FlatBuffer(tensor_list)
    return started(members, "all_gather", members.comm.Iallgatherv(
        memory(source), memory_in_parts(target.memory, target.counts)), async_op, tensor_list,
        target.unpack, target.memory.nbytes, (source, target))


@collective
def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor,
                           group: ProcessGroup | None = None, async_op: bool = False
                          ) -> Work | None:
    """Fills `output_tensor` with the inputs of all ranks, one after the other.

    It is as if they were concatenated along the first dim, or stacked along a new one.
    Raises: as `broadcast`; RuntimeError for an output of another size.
    """
    name = "all_gather_into_tensor"
    members = member_of(group, name)
    check_tensor(name, "input_tensor", input_tensor, "all_gather", writes=False)
    check_tensor(name, "output_tensor", output_tensor)
    check_dtypes(name, input_tensor, [output_tensor])
    check_sizes(name, output_tensor, "output_tensor", input_tensor, "input_tensor", members)
    agree(members, name, input_tensor)
    source, target = packed(input_tensor), Target(output_tensor)
    return started(members, name, members.comm.Iallgather(
        memory(source), memory(target.memory)), async_op, output_tensor, target.unpack,
        output_tensor.nbytes, (source, target))


def check_sizes(name: str, large: Tensor, large_name: str, small: Tensor, small_name: str,
                members: ProcessGroup) -> None:
    """Raises RuntimeError unless one tensor has as many elements as one of each rank."""
    if large.numel() != members.size() * small.numel():
        raise RuntimeError(f"{name}: {large_name} {tuple(large.shape)} has to be {members.size()} "
                           f"times as large as {small_name} {tuple(small.shape)}")


@collective
def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: ProcessGroup | None = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """Fills `gather_list` of rank `dst` (by default 0) with the tensors of all ranks.

    Raises: as `broadcast`; ValueError for a list on another rank, or none on `dst`.
    """
    members = member_of(group, "gather")
    if dst is None and group_dst is None:
        group_dst = 0
    root = root_of(members, "gather", "dst", dst, group_dst)
    check_tensor("gather", "tensor", tensor, "all_gather", writes=False)
    check_list_of_root("gather", members, root, tensor, gather_list)
    agree(members, "gather", f"dst={root}", tensor)
    source = packed(tensor)
    if members.rank() != root:
        return started(members, "gather", members.comm.Igather(
            memory(source), None, root), async_op, gather_list, None, tensor.nbytes, source)
    target = FlatBuffer(gather_list or [])
    return started(members, "gather", members.comm.Igather(
        memory(source), memory(target.memory), root), async_op, gather_list, target.unpack,
        target.memory.nbytes, (source, target))


def check_list_of_root(name: str, members: ProcessGroup, root: int, x: Tensor, others: Any,
                       writes: bool = True) -> None:
    """Raises unless the root, and no other rank, has a list with a tensor like x for each rank."""
    if members.rank() == root:
        check_tensors(name, f"{name}_list", others, members.size(), writes=writes)
        check_dtypes(name, x, others)
        check_alike(name, x, others)
    elif others:
        raise ValueError(f"{name}: {name}_list is for rank {members.ranks[root]} alone")


def check_alike(name: str, x: Tensor, others: Any) -> None:
    """Raises RuntimeError unless all have the shape of x."""
    for other in others:
        if other.shape != x.shape:
            raise RuntimeError(f"{name}: shapes differ: {tuple(x.shape)} and {tuple(other.shape)}")


@collective
def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: ProcessGroup | None = None, async_op: bool = False,
            group_src: int | None = None) -> Work | None:
    """Fills `tensor` of each rank with its part of `scatter_list` of rank `src` (by default 0).

    Raises: as `broadcast`; ValueError for a list on another rank, or none on `src`.
    """
    members = member_of(group, "scatter")
    if src is None and group_src is None:
        group_src = 0
    root = root_of(members, "scatter", "src", src, group_src)
    check_tensor("scatter", "tensor", tensor)
    check_list_of_root("scatter", members, root, tensor, scatter_list, writes=False)
    agree(members, "scatter", f"src={root}", tensor)
    target = Target(tensor)
    if members.rank() != root:
        return started(members, "scatter", members.comm.Iscatter(
            None, memory(target.memory), root), async_op, tensor, target.unpack, tensor.nbytes,
            target)
    source = FlatBuffer(scatter_list or [], filled=True)
    return started(members, "scatter", members.comm.Iscatter(
        memory(source.memory), memory(target.memory), root), async_op, tensor, target.unpack,
        source.memory.nbytes, (source, target))


@collective
def reduce_scatter(output: Tensor, input_list: list[Tensor], op: str = ReduceOp.SUM,
                   group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Reduces the lists of all ranks place by place, and gives each rank what is at its place.

    Raises: as `all_reduce`; ValueError for another number of tensors than of ranks.
    """
    name = "reduce_scatter"
    members = member_of(group, name)
    check_tensor(name, "output", output)
    check_tensors(name, "input_list", input_list, members.size(), name, writes=False)
    check_dtypes(name, output, input_list)
    operation = operation_for(name, op, output.dtype)
    check_alike(name, output, [input_list[members.rank()]])
    agree(members, name, op.lower(), *input_list)
    source, target = FlatBuffer(input_list, filled=True), Target(output)
    return started(members, name, members.comm.Ireduce_scatter(
        memory(source.memory), memory(target.memory), source.counts, operation), async_op, output,
        finish_of(op, members, target), source.memory.nbytes, (source, target))


@collective
def reduce_scatter_tensor(output: Tensor, input: Tensor, op: str = ReduceOp.SUM,
                          group: ProcessGroup | None = None, async_op: bool = False
                          ) -> Work | None:
    """Reduces the inputs of all ranks, and gives each rank its part of the result, in order.

    Raises: as `all_reduce`; RuntimeError for an output of another size.
    """
    name = "reduce_scatter_tensor"
    members = member_of(group, name)
    check_tensor(name, "output", output)
    check_tensor(name, "input", input, "reduce_scatter", writes=False)
    check_dtypes(name, output, [input])
    operation = operation_for(name, op, output.dtype)
    check_sizes(name, input, "input", output, "output", members)
    agree(members, name, op.lower(), input)
    source, target = packed(input), Target(output)
    return started(members, name, members.comm.Ireduce_scatter_block(
        memory(source), memory(target.memory), operation), async_op, output,
        finish_of(op, members, target), input.nbytes, (source, target))


@collective
def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Sends each rank its tensor of the input list, and gathers what all send to this one.

    Raises: as `all_gather`.
    """
    name = "all_to_all"
    members = member_of(group, name)
    check_tensors(name, "output_tensor_list", output_tensor_list, members.size())
    check_tensors(name, "input_tensor_list", input_tensor_list, members.size(), name,
                  writes=False)
    check_dtypes(name, input_tensor_list[0], [*input_tensor_list, *output_tensor_list])
    agree(members, name, str(input_tensor_list[0].dtype))
    source, target = FlatBuffer(input_tensor_list, filled=True), FlatBuffer(output_tensor_list)
    return exchanged(members, name, source.memory, source.counts, target.memory, target.counts,
                     async_op, output_tensor_list, target.unpack, (source, target))


@collective
def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None,
                      group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Sends each rank its rows of `input`, and puts the rows that come into `output`, in order.

    The splits are numbers of rows, by default equal ones.
    Raises: as `broadcast`; ValueError for splits that do not add up.
    """
    name = "all_to_all_single"
    members = member_of(group, name)
    check_tensor(name, "output", output)
    check_tensor(name, "input", input, "all_to_all", writes=False)
    check_dtypes(name, output, [input])
    sent = elements(name, "input", input, input_split_sizes, members.size())
    taken = elements(name, "output", output, output_split_sizes, members.size())
    agree(members, name, str(input.dtype))
    source, target = packed(input), Target(output)
    return exchanged(members, name, source, sent, target.memory, taken, async_op, output,
                     target.unpack, (source, target))


def elements(name: str, what: str, x: Tensor, splits: list[int] | None, count: int) -> list[int]:
    """How many elements of x are of each rank. Raises: ValueError."""
    rows = x.shape[0] if x.ndim else 1
    if splits is None:
        if rows % count:
            raise ValueError(f"{name}: {what} has {rows} rows for {count} ranks; give "
                             f"{what}_split_sizes")
        splits = [rows // count] * count
    if len(splits) != count or sum(splits) != rows or any(size < 0 for size in splits):
        raise ValueError(f"{name}: {what}_split_sizes {list(splits)} do not cut {rows} rows into "
                         f"{count} parts")
    each = x.numel() // rows if rows else 0
    return [size * each for size in splits]


def exchanged(members: ProcessGroup, name: str, source: Any, sent: list[int], target: Any,
              taken: list[int], async_op: bool, result: Any, finish: Any, keep: Any
              ) -> Work | None:
    """All-to-all of parts with so many elements, which the ranks compare if they compare calls."""
    if members.compares:
        compare_counts(members, name, sent, taken)
    return started(members, name, members.comm.Ialltoallv(
        memory_in_parts(source, sent), memory_in_parts(target, taken)), async_op, result, finish,
        source.nbytes, keep)


def compare_counts(members: ProcessGroup, name: str, sent: list[int], taken: list[int]) -> None:
    """Raises RuntimeError on all ranks unless each is sent what it takes."""
    counts, found = tensorlib.tensor(sent), tensorlib.tensor([0] * members.size())
    Work(members, name, [members.control.Ialltoall(memory(counts), memory(found))],
         keep=(counts, found)).wait()
    wrong = found.tolist() != taken
    verdict = tensorlib.tensor([wrong], dtype=tensorlib.int32)
    Work(members, name, [members.control.Iallreduce(
        mpi().IN_PLACE, memory(verdict), mpi().MAX)], keep=verdict).wait()
    if verdict.item():
        raise RuntimeError(
            f"{name}: rank {members.global_rank} is sent {found.tolist()} elements by the others, "
            f"and takes {taken}" + ("" if wrong else "; another rank's do not fit"))
