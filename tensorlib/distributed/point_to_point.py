"""Messages from one rank to another, and barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tensorlib import Tensor
from tensorlib.distributed.buffers import Target, packed, started
from tensorlib.distributed.checking import agree, check_tensor, collective, member_of, told
from tensorlib.distributed.errors import DistError, DistTimeoutError
from tensorlib.distributed.group import ProcessGroup, group_of, root_of
from tensorlib.distributed.mpi import memory, mpi
from tensorlib.distributed.work import Work, backend_error, seconds_of, wait_until

__all__ = ["P2POp", "barrier", "batch_isend_irecv", "irecv", "isend", "monitored_barrier", "recv",
           "send"]

LABEL = 64                   # bytes that describe a message to a receiver that compares
ARRIVED, ANSWERED = 1, 2     # tags of a monitored barrier


# ---- messages ------------------------------------------------------------------------------------

def isend(tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
          group_dst: int | None = None) -> Work:
    """Begins to send a tensor to rank `dst`; it must not be written before `wait()`.

    Raises: RuntimeError for a tensor that requires a gradient or has no elements; ValueError for a
    rank that is not in the group, or this one.
    """
    members, peer = other_rank("isend", group, "dst", dst, group_dst, tag)
    assert peer is not None
    check_tensor("isend", "tensor", tensor, writes=False)
    source = packed(tensor)
    label = told(tensor).encode()[:LABEL].ljust(LABEL) if members.compares else b""
    try:
        requests = [members.comm.Isend(memory(source), peer, tag)]
        if label:
            requests.append(members.control.Isend([label, mpi().BYTE], peer, tag + 2 + ANSWERED))
    except mpi().Exception as error:
        raise backend_error(members, "isend", error) from error
    return Work(members, "isend", requests, tensor, None, tensor.nbytes, (source, label))


def irecv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
          group_src: int | None = None) -> Work:
    """Begins to receive a tensor from rank `src`, or from any; it is there after `wait()`.

    Raises: as `isend`; in `wait()`, RuntimeError for a message of another size, and where ranks
    compare their calls for another shape or dtype.
    """
    members, peer = other_rank("irecv", group, "src", src, group_src, tag, anyone=True)
    check_tensor("irecv", "tensor", tensor)
    target, status = Target(tensor), mpi().Status()
    count = tensor.numel()

    def finish() -> None:
        work.source = members.ranks[status.Get_source()]
        if members.compares:
            label = bytearray(LABEL)
            Work(members, "irecv", [members.control.Irecv(
                [label, mpi().BYTE], status.Get_source(), tag + 2 + ANSWERED)], keep=label).wait()
            sent, takes = label.decode().strip(), told(tensor)[:LABEL]
            if sent != takes:
                raise DistError(f"irecv: rank {work.source} sent {sent}, and the tensor of rank "
                                f"{members.global_rank} is {takes}")
        found = status.Get_elements(mpi().BYTE) // tensor.element_size()
        if found != count:
            raise DistError(f"irecv: rank {work.source} sent {found} elements, and the tensor of "
                            f"rank {members.global_rank} has {count}")
        target.unpack()

    place = mpi().ANY_SOURCE if peer is None else peer
    try:
        request = ReceiveRequest(members.comm.Irecv(memory(target.memory), place, tag), status)
    except mpi().Exception as error:
        raise backend_error(members, "irecv", error) from error
    work = Work(members, "irecv", [request], tensor, finish, tensor.nbytes, target)
    return work


class ReceiveRequest:
    """A request whose status is kept."""

    def __init__(self, request: Any, status: Any) -> None:
        self.request, self.status = request, status

    def Test(self) -> bool:
        """Whether the message is there."""
        return self.request.Test(self.status)


def send(tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Sends a tensor to rank `dst`, and returns when it may be written again.

    Raises: as `isend`; DistTimeoutError if it is not received.
    """
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_src: int | None = None) -> int:
    """Receives a tensor from rank `src`, or from any, and returns the rank that sent it.

    Raises: as `irecv`; DistTimeoutError if nothing comes.
    """
    work = irecv(tensor, src, group, tag, group_src)
    work.wait()
    return work.source_rank()


def other_rank(name: str, group: Any, what: str, rank: int | None, group_rank: int | None, tag: int,
               anyone: bool = False) -> tuple[ProcessGroup, int | None]:
    """The group, and the place in it of the rank at the other end; None is any."""
    members = group_of(group, name)
    members.check(name)
    if isinstance(tag, bool) or not isinstance(tag, int):
        raise TypeError(f"{name}: tag is an int, got {type(tag).__name__}")
    most = members.comm.Get_attr(mpi().TAG_UB) - 8
    if not 0 <= tag < most:
        raise ValueError(f"{name}: tag={tag} is not in [0, {most})")
    if anyone and rank is None and group_rank is None:
        return members, None
    place = root_of(members, name, what, rank, group_rank)
    if place == members.rank():
        raise ValueError(f"{name}: {what}={members.global_rank} is this rank itself")
    return members, place


class P2POp:
    """A message for `batch_isend_irecv`: `op` is `isend` or `irecv`, `peer` the other rank."""

    def __init__(self, op: Callable[..., Work], tensor: Tensor, peer: int | None = None,
                 group: ProcessGroup | None = None, tag: int = 0,
                 group_peer: int | None = None) -> None:
        if op not in (isend, irecv):
            raise ValueError("P2POp: op is tensorlib.distributed.isend or irecv")
        self.op, self.tensor, self.peer = op, tensor, peer
        self.group, self.tag, self.group_peer = group, tag, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begins several messages, and returns one Work for each.

    Raises: as `isend` and `irecv`; TypeError for what is no P2POp; ValueError for an empty list.
    """
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: takes one P2POp or more")
    for each in p2p_op_list:
        if not isinstance(each, P2POp):
            raise TypeError(f"batch_isend_irecv: takes P2POps, got {type(each).__name__}")
    return [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
            for each in p2p_op_list]


# ---- barriers ------------------------------------------------------------------------------------

@collective
def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None
            ) -> Work | None:
    """Returns when all ranks of the group have come here.

    Raises: DistTimeoutError if one does not.
    """
    members = member_of(group, "barrier")
    agree(members, "barrier")
    return started(members, "barrier", members.comm.Ibarrier(), async_op)


def monitored_barrier(group: ProcessGroup | None = None, timeout: timedelta | float | None = None,
                      wait_all_ranks: bool = False) -> None:
    """A barrier that names the ranks which did not come.

    wait_all_ranks: names all of them, and not the first alone.
    Raises: DistTimeoutError on all ranks that came.
    """
    name = "monitored_barrier"
    members = group_of(group, name)
    members.check(name)
    bound = members.seconds if timeout is None else seconds_of(timeout)
    if members.rank():
        answer = bytearray(4096)
        requests = [members.control.Isend([bytearray(1), mpi().BYTE], 0, ARRIVED),
                    members.control.Irecv([answer, mpi().BYTE], 0, ANSWERED)]
        # rank 0 decides who is late; its answer takes a moment more
        Work(members, name, requests, keep=answer).wait(bound + 2)
        late = answer.rstrip(b"\0").decode()
    else:
        late = ask_all(members, bound, wait_all_ranks)
    if late:
        raise DistTimeoutError(f"{name}: after {bound:g} s in {members.described()}, these did "
                               f"not come: {late}")


def ask_all(members: ProcessGroup, bound: float, wait_all_ranks: bool) -> str:
    """On rank 0: tells all that came who did not, as a text, and returns it."""
    waiting = {place: members.control.Irecv([bytearray(1), mpi().BYTE], place, ARRIVED)
               for place in range(1, members.size())}
    came = []

    def all_came() -> bool:
        for place, request in list(waiting.items()):
            if request.Test():
                came.append(place)
                del waiting[place]
        return not waiting

    wait_until(all_came, bound)
    late = [members.ranks[place] for place in waiting]
    for request in waiting.values():
        request.Cancel()
    shown = late if wait_all_ranks else late[:1]
    text = f"rank{'s' if len(shown) > 1 else ''} {', '.join(map(str, shown))}" if late else ""
    answer = text.encode()[:4096].ljust(4096, b"\0")
    sent = [members.control.Isend([answer, mpi().BYTE], place, ANSWERED) for place in came]
    Work(members, "monitored_barrier", sent, keep=answer).wait()
    return text
