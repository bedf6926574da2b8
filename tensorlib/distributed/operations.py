"""Collectives as operations: their results are new tensors, and they have gradients.

    >>> import tensorlib.distributed.nn.functional as D
    >>> total = D.all_reduce(loss)                                      # doctest: +SKIP

The loss is the sum of what all ranks compute, so the gradient of an input adds what arrives at all
that came of it, on any rank. So gradients are collectives too, and all ranks have to sweep. The
attribute `group` is the name of a group; that of this process alone, "self", needs no MPI.
"""

from math import prod

import tensorlib
from tensorlib import empty, where, zeros_like
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch.rules import as_it_is
from tensorlib.autograd.batch.values import batched
from tensorlib.distributed.collectives import operation_for
from tensorlib.distributed.errors import DistError
from tensorlib.distributed.group import ProcessGroup, groups
from tensorlib.distributed.mpi import memory, memory_in_parts
from tensorlib.distributed.work import Work
from tensorlib.ops.declare import op
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import reals

SELF = "self"
SHAPES = reals(-2, 2, ((4,), (2, 3), (1, 0)))


def members_of(group: str, name: str) -> ProcessGroup | None:
    """The group of that name; None is this process alone."""
    if group == SELF:
        return None
    if group not in groups:
        raise DistError(f"{name}: there is no group {group!r} any more; it was destroyed after "
                        "this was recorded")
    groups[group].check(name)
    return groups[group]


def size_of(group: str, name: str) -> int:
    """The number of ranks of the group."""
    members = members_of(group, name)
    return 1 if members is None else members.size()


def communicated(name: str, group: str, out: Tensor, input: Tensor, begin) -> Tensor:
    """`out`, filled by what `begin(communicator, source, target)` starts.

    A tensor without memory is only to have a shape, and nobody waits for it on other ranks.
    """
    if input.device.type == "cpu":
        members, source = groups[group], input.contiguous()
        Work(members, name, [begin(members.comm, source, out)], nbytes=input.nbytes).wait()
    return out


# ---- reductions ----------------------------------------------------------------------------------

def reduce_samples(rng):
    """Samples of `all_reduce` with each of its reductions."""
    for kind in ("sum", "avg", "max", "min", "product"):
        for (x,), _ in SHAPES(rng):
            yield (x,), {"kind": kind}


@op(public=False, method=False, takes="floating", pure=False,
    reference=lambda x, kind="sum", group=SELF: x, samples=reduce_samples)
def all_reduce(input: Tensor, kind="sum", group=SELF):
    """The tensors of all ranks reduced element by element, on each rank.

    Gradient: of "max" and "min" it is shared by the elements that are the extreme.
    """
    members = members_of(group, "all_reduce")
    if members is None:
        return input.clone()
    operation = operation_for("all_reduce", kind, input.dtype)
    out = communicated("all_reduce", group, empty(input.shape, dtype=input.dtype,
                                                  device=input.device), input,
                       lambda comm, x, y: comm.Iallreduce(memory(x), memory(y), operation))
    return out.div_(members.size()) if kind == "avg" else out


@all_reduce.vjp("input")
def all_reduce_vjp(g, input, out, kind, group):
    """The losses of all ranks count: the sum of their gradients, times this rank's share."""
    if kind in ("sum", "avg"):
        return all_reduce(g, kind, group)
    return all_reduce(g, "sum", group) * share(input, out, kind, group)


@all_reduce.jvp
def all_reduce_jvp(d_input, input, out, kind, group):
    """Of a sum the sum of the tangents; else that of each tangent times its share of the result."""
    if kind in ("sum", "avg"):
        return all_reduce(d_input, kind, group)
    return all_reduce(d_input * share(input, out, kind, group), "sum", group)


def share(input, out, kind, group):
    """The derivative of the result for the element of this rank."""
    if kind != "product":
        extreme = (input == out).to(input.dtype)
        return extreme / all_reduce(extreme, "sum", group)
    zero = input == 0
    zeros = all_reduce(zero.to(input.dtype), "sum", group)
    others = all_reduce(where(zero, 1.0, input), "product", group) / where(zero, 1.0, input)
    return where(zeros == zero.to(input.dtype), others, 0.0)


@op(public=False, method=False, takes="floating", pure=False, linear=True,
    reference=lambda x, dst=0, group=SELF: x, samples=SHAPES)
def reduce_to(input: Tensor, dst=0, group=SELF):
    """The sum of the tensors of all ranks, on the one at place `dst`; zeros on the others."""
    members = members_of(group, "reduce")
    if members is None:
        return input.clone()
    operation = operation_for("reduce", "sum", input.dtype)
    out, receives = zeros_like(input, memory_format=tensorlib.contiguous_format), (
        members.rank() == dst)
    return communicated("reduce", group, out, input, lambda comm, x, y: comm.Ireduce(
        memory(x), memory(y) if receives else None, operation, dst))


@reduce_to.vjp("input")
def reduce_to_vjp(g, dst, group):
    """What `dst` has, to all."""
    return broadcast_from(g, dst, group)


@op(public=False, method=False, takes="floating", pure=False, linear=True,
    reference=lambda x, src=0, group=SELF: x, samples=SHAPES)
def broadcast_from(input: Tensor, src=0, group=SELF):
    """The tensor of the rank at place `src`, on each rank."""
    members = members_of(group, "broadcast")
    if members is None:
        return input.clone()
    out = input.clone(memory_format=tensorlib.contiguous_format)
    return communicated("broadcast", group, out, input,
                        lambda comm, x, y: comm.Ibcast(memory(y), src))


@broadcast_from.vjp("input")
def broadcast_from_vjp(g, src, group):
    """The sum of all, to `src`."""
    return reduce_to(g, src, group)


# ---- parts ---------------------------------------------------------------------------------------

@op(public=False, method=False, takes="floating", pure=False, linear=True,
    reference=lambda x, group=SELF: x, samples=SHAPES)
def all_gather(input: Tensor, group=SELF):
    """The tensors of all ranks, concatenated along the first dim: (N, *) -> (ranks N, *)."""
    count = size_of(group, "all_gather")
    if group == SELF:
        return input.clone()
    out = empty((count * input.shape[0], *input.shape[1:]), dtype=input.dtype, device=input.device)
    return communicated("all_gather", group, out, input,
                        lambda comm, x, y: comm.Iallgather(memory(x), memory(y)))


@all_gather.vjp("input")
def all_gather_vjp(g, group):
    """The sum over all processes of the part that is this one's."""
    return reduce_scatter(g, group)


@op(public=False, method=False, takes="floating", pure=False, linear=True,
    reference=lambda x, group=SELF: x, samples=SHAPES)
def reduce_scatter(input: Tensor, group=SELF):
    """The sum of the tensors of all ranks, of which each gets its part: (ranks N, *) -> (N, *).

    Raises: RuntimeError for rows that the ranks can't share equally.
    """
    count = size_of(group, "reduce_scatter")
    if group == SELF:
        return input.clone()
    if input.shape[0] % count:
        raise RuntimeError(f"reduce_scatter: {input.shape[0]} rows are not shared equally by "
                           f"{count} ranks")
    operation = operation_for("reduce_scatter", "sum", input.dtype)
    out = empty((input.shape[0] // count, *input.shape[1:]), dtype=input.dtype,
                device=input.device)
    return communicated("reduce_scatter", group, out, input, lambda comm, x, y:
                        comm.Ireduce_scatter_block(memory(x), memory(y), operation))


@reduce_scatter.vjp("input")
def reduce_scatter_vjp(g, group):
    """Every part goes back to all."""
    return all_gather(g, group)


def exchange_samples(rng):
    """Samples of `all_to_all`, whose splits are numbers of rows."""
    for shape in ((4,), (2, 3)):
        yield (rng.uniform(-2, 2, shape),), {"sent": shape[:1], "taken": shape[:1]}


@op(public=False, method=False, takes="floating", pure=False, linear=True,
    reference=lambda x, sent=(), taken=(), group=SELF: x, samples=exchange_samples)
def all_to_all(input: Tensor, sent=(), taken=(), group=SELF):
    """What all ranks send to this one: (sum of sent, *) -> (sum of taken, *), numbers of rows."""
    if group == SELF:
        return input.clone()
    members_of(group, "all_to_all")
    rest = tuple(input.shape[1:])
    out = empty((sum(taken), *rest), dtype=input.dtype, device=input.device)
    given, got = ([rows * prod(rest) for rows in splits] for splits in (sent, taken))
    return communicated("all_to_all", group, out, input, lambda comm, x, y: comm.Ialltoallv(
        memory_in_parts(x, given), memory_in_parts(y, got)))


@all_to_all.vjp("input")
def all_to_all_vjp(g, sent, taken, group):
    """The same exchange, backwards."""
    return all_to_all(g, taken, sent, group)


# ---- batches of examples -------------------------------------------------------------------------

batched(all_reduce, reduce_to, broadcast_from)(as_it_is)      # sent at once, as one tensor


@batched(all_gather, reduce_scatter, all_to_all)
def row_by_row(op, level, tensors, attributes):
    """A batch is sent at once, after the rows of its examples, which are what the ranks share."""
    return op.function(tensors[0].value.movedim(0, 1), **attributes).movedim(1, 0)


declared(__name__)
