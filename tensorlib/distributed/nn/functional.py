"""Collectives with gradients, under the names of `torch.distributed.nn.functional`.

They return new tensors. The loss is the sum of those of all ranks: whatever a tensor contributes to
on any rank adds to its gradient. So the sweep communicates as well, and all ranks have to make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib.distributed import operations
from tensorlib.distributed.checking import agree, check_tensors, collective, member_of
from tensorlib.distributed.collectives import ReduceOp, elements
from tensorlib.distributed.group import ProcessGroup, place_of

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather",
           "reduce", "reduce_scatter", "scatter"]


@collective
def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """The tensors of all ranks reduced element by element: sum, avg, product, min or max."""
    members = member_of(group, "all_reduce")
    check_is_tensor("all_reduce", tensor)
    kind = op.lower()
    if kind not in ("sum", "avg", "product", "min", "max"):
        raise ValueError(f"all_reduce: {op} has no gradient; take tensorlib.distributed."
                         "all_reduce")
    agree(members, "all_reduce", kind, tensor)
    return operations.all_reduce(tensor, kind, members.group_name)


@collective
def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Any:
    """The tensor of rank `src`, on each rank."""
    members = member_of(group, "broadcast")
    check_is_tensor("broadcast", tensor)
    root = place_of(members, src, "broadcast", "src")
    agree(members, "broadcast", f"src={root}", tensor)
    return operations.broadcast_from(tensor, root, members.group_name)


@collective
def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM,
           group: ProcessGroup | None = None) -> Any:
    """The sum of the tensors of all ranks on rank `dst`; zeros on the others."""
    members = member_of(group, "reduce")
    check_is_tensor("reduce", tensor)
    root = place_of(members, dst, "reduce", "dst")
    if op.lower() != "sum":
        raise ValueError(f"reduce: only sums have a gradient here, got {op}; all_reduce takes "
                         "more")
    agree(members, "reduce", f"dst={root}", tensor)
    return operations.reduce_to(tensor, root, members.group_name)


@collective
def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> Any:
    """A tuple of the tensors of all ranks, which have the same shape."""
    members = member_of(group, "all_gather")
    check_is_tensor("all_gather", tensor)
    agree(members, "all_gather", tensor)
    return operations.all_gather(tensor.unsqueeze(0), members.group_name).unbind(0)


@collective
def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM,
                   group: ProcessGroup | None = None) -> Any:
    """What is at the place of this rank in the sum, or mean, of the lists of all ranks.

    `output` is not written; it is there for its shape.
    """
    name = "reduce_scatter"
    members = member_of(group, name)
    check_tensors(name, "input_list", list(input_list), members.size(), writes=False,
                  differentiable=True)
    if any(x.shape != output.shape for x in input_list):
        raise RuntimeError(f"{name}: the tensors of input_list have to have the shape of "
                           f"output, {tuple(output.shape)}")
    if op.lower() not in ("sum", "avg"):
        raise ValueError(f"{name}: op is SUM or AVG, got {op}")
    agree(members, name, op.lower(), *input_list)
    part = operations.reduce_scatter(tensorlib.stack(list(input_list)), members.group_name)[0]
    return part / members.size() if op.lower() == "avg" else part


@collective
def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None,
                      group: ProcessGroup | None = None) -> Any:
    """The rows that all ranks send to this one; `output` is there for its shape."""
    name = "all_to_all_single"
    members = member_of(group, name)
    check_is_tensor(name, input)
    splits = [rows_of(name, what, x, given, members.size()) for what, x, given in (
        ("input", input, input_split_sizes), ("output", output, output_split_sizes))]
    agree(members, name, str(input.dtype))
    return operations.all_to_all(input, *splits, members.group_name)


def rows_of(name: str, what: str, x: Tensor, splits: list[int] | None, count: int
            ) -> tuple[int, ...]:
    """The numbers of rows of each rank, checked."""
    elements(name, what, x, splits, count)
    return (x.shape[0] // count,) * count if splits is None else tuple(splits)


@collective
def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
               group: ProcessGroup | None = None) -> Any:
    """A tuple of the tensors that all ranks send to this one.

    `output_tensor_list` is not written; it is there for the shapes.
    """
    name = "all_to_all"
    members = member_of(group, name)
    for what, xs in (("output", output_tensor_list), ("input", input_tensor_list)):
        check_tensors(name, f"{what}_tensor_list", list(xs), members.size(), writes=False,
                      differentiable=True)
    agree(members, name, str(input_tensor_list[0].dtype))
    sent = tuple(x.numel() for x in input_tensor_list)
    taken = tuple(x.numel() for x in output_tensor_list)
    flat = tensorlib.cat([x.reshape(-1) for x in input_tensor_list])
    parts = operations.all_to_all(flat, sent, taken, members.group_name).split(taken)
    return tuple(part.reshape(x.shape) for part, x in zip(parts, output_tensor_list))


@collective
def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> Any:
    """A tuple of the tensors of all ranks on rank `dst`; of zeros on the others."""
    members = member_of(group, "gather")
    check_is_tensor("gather", tensor)
    root = place_of(members, dst, "gather", "dst")
    agree(members, "gather", f"dst={root}", tensor)
    size, place = members.size(), members.rank()
    zero = tensorlib.zeros_like(tensor)
    own = tensorlib.stack([tensor if i == place else zero for i in range(size)])
    return operations.reduce_to(own, root, members.group_name).unbind(0)


@collective
def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Any:
    """The tensor for this rank in the list of rank `src`; the other lists are there for shapes."""
    members = member_of(group, "scatter")
    check_tensors("scatter", "tensors", list(tensors), members.size(), writes=False,
                  differentiable=True)
    root = place_of(members, src, "scatter", "src")
    agree(members, "scatter", f"src={root}", *tensors)
    return operations.broadcast_from(tensorlib.stack(list(tensors)), root, members.group_name)[
        members.rank()]


def check_is_tensor(name: str, x: Any) -> None:
    """Raises TypeError for what is not a Tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: takes a Tensor, got {type(x).__name__}")
