"""Ranks compare their calls before they communicate, so that a mismatch is an error on all of them.

`TENSORLIB_DISTRIBUTED_CHECK=1` switches it on for the groups that are made from then on. Each call
then costs one small exchange more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Signature, signature
from typing import Any, TypeVar

import tensorlib
from tensorlib import Tensor
from tensorlib.distributed.errors import DistError
from tensorlib.distributed.group import ProcessGroup, group_of
from tensorlib.distributed.mpi import mpi
from tensorlib.distributed.work import Work, backend_error

RECORD = 256                    # bytes in which a rank describes its call; what is longer is cut
ANYTHING = "*"                  # what a rank says of what it leaves to others

T = TypeVar("T")


def collective(function: Callable[..., T]) -> Callable[..., T]:
    """A call that all members of a group make: what one rank refuses, the others hear of.

    The function takes `group`, by which it asks for `member_of`, checks its arguments, has the
    ranks `agree`, and then communicates.
    """
    name = function.__name__
    parameters = signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if isinstance(error, TypeError) and not takes(parameters, args, kwargs):
                raise
            group = parameters.bind(*args, **kwargs).arguments.get("group")
            raise told_to_others(error, group, name) from None

    return call


def takes(parameters: Signature, args: Any, kwargs: Any) -> bool:
    """Whether a function takes these arguments."""
    try:
        parameters.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def told_to_others(error: Exception, given: Any, name: str) -> Exception:
    """What to raise for an error of one rank, after the others heard that it makes no call."""
    try:
        members = group_of(given, name)
        if isinstance(error, mpi().Exception):           # there is an MPI, as there is a group
            return backend_error(members, name, error)
        members.check(name)
    except Exception:
        return error                    # a group that can't be used by anybody
    if members.compares and not members.agreed:
        compare(members, name, [f"refused: {error}"], False)
    return error


def member_of(group: Any, name: str) -> ProcessGroup:
    """The group that a call was given, of which this rank is a member. Raises: as `group_of`."""
    found = group_of(group, name)
    found.check(name)
    found.agreed = False
    return found


def agree(group: ProcessGroup, name: str, *facts: Any) -> None:
    """Raises DistError unless all ranks make this call with these facts, where they compare."""
    group.agreed = True
    if group.compares:
        compare(group, name, facts)


def compare(group: ProcessGroup, name: str, facts: Sequence[Any], complain: bool = True) -> None:
    """Raises DistError unless all ranks make the same call with the same facts.

    complain: this rank has no error of its own to raise.
    """
    size = group.size()
    if size == 1:
        return
    group.calls += 1
    text = " ".join([f"#{group.calls}", name, *map(told, facts)])
    mine = text.encode()[:RECORD].ljust(RECORD)
    all_of = bytearray(RECORD * size)
    request = group.control.Iallgather([mine, mpi().BYTE], [all_of, mpi().BYTE])
    Work(group, name, [request], keep=(mine, all_of)).wait()
    texts = [all_of[i * RECORD:(i + 1) * RECORD].decode(errors="replace").strip()
             for i in range(size)]
    if complain and not same(texts):
        lines = "".join(f"\n  rank {rank}: {text}" for rank, text in zip(group.ranks, texts))
        raise DistError(f"{name}: the ranks of {group.described()} do not make the same call, with "
                        f"the same shapes and dtypes:{lines}")


def same(texts: list[str]) -> bool:
    """Whether descriptions agree, word by word, where none is left open; and nobody refused."""
    if all(text == texts[0] for text in texts):
        return " refused: " not in texts[0]
    rows = [text.split(" ") for text in texts]
    return all(len(row) == len(rows[0]) for row in rows) and "refused:" not in rows[0] and all(
        len({*column} - {ANYTHING}) <= 1 for column in zip(*rows))


def told(fact: Any) -> str:
    """One fact of a call as a word, or several."""
    if isinstance(fact, Tensor):
        return f"{str(fact.dtype).removeprefix('tensorlib.')}[{','.join(map(str, fact.shape))}]"
    return str(fact).replace(", ", ",")


def check_tensor(name: str, what: str, x: Any, form: str = "", writes: bool = True,
                 differentiable: bool = False) -> None:
    """Raises TypeError or RuntimeError for what has no elements to send.

    form: the differentiable call for tensors whose gradient this one would lose, unless it is
    differentiable itself.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {what} is a Tensor, got {type(x).__name__}")
    if type(x) is Tensor and x.is_contiguous() and not x.requires_grad and (
            x.numel() == 0 or x.data_ptr()):
        return                       # nearly all of them
    if x.device.type != "cpu":
        raise RuntimeError(f"{name}: {what} is on {x.device.type!r}, where tensors have no "
                           "elements; materialise it first")
    if x.layout is not tensorlib.strided:
        raise RuntimeError(f"{name}: {what} has the layout {x.layout}; make it dense first")
    if x.requires_grad and not differentiable and tensorlib.is_grad_enabled():
        way = (f"tensorlib.distributed.nn.functional.{form} has a gradient; " if form else "")
        raise RuntimeError(f"{name}: {what} requires a gradient, which this call would lose; {way}"
                           "detach() it, or call this under no_grad(), where none is wanted")
    if writes and any(not stride and size > 1 for stride, size in zip(x.stride(), x.shape)):
        raise RuntimeError(f"{name}: {what} has elements that share memory (expanded); clone() it")


def check_tensors(name: str, what: str, xs: Any, count: int, form: str = "",
                  writes: bool = True, differentiable: bool = False) -> None:
    """The same for a list with one tensor for each rank."""
    if not isinstance(xs, (list, tuple)):
        raise TypeError(f"{name}: {what} is a list of Tensors, got {type(xs).__name__}")
    if len(xs) != count:
        raise ValueError(f"{name}: {what} has {len(xs)} tensors for a group of {count} ranks")
    for i, x in enumerate(xs):
        check_tensor(name, f"{what}[{i}]", x, form, writes, differentiable)


def check_dtypes(name: str, first: Tensor, others: Any) -> None:
    """Raises TypeError for tensors of other dtypes."""
    for x in others:
        if x.dtype != first.dtype:
            raise TypeError(f"{name}: dtypes differ: {first.dtype} and {x.dtype}")
