"""What goes wrong, one case for each call of the program."""

import os
import signal
import sys
import time

from common import raised

import tensorlib as tl
from tensorlib import distributed as dist


def differing_calls():
    """Each is refused on every rank, and the group goes on to work."""
    rank, size = dist.get_rank(), dist.get_world_size()
    one = rank == 1
    cases = [
        ("shapes", lambda: dist.all_reduce(tl.ones(3 if one else 2)), "float32[3]", "float32[2]"),
        ("dtypes", lambda: dist.all_reduce(tl.ones(2, dtype=tl.float64 if one else tl.float32)),
         "float64[2]", "float32[2]"),
        ("reductions", lambda: dist.all_reduce(tl.ones(2), "max" if one else "sum"), "max", "sum"),
        ("roots", lambda: dist.broadcast(tl.ones(2), int(one)), "src=1", "src=0"),
        ("calls", lambda: dist.barrier() if one else dist.all_reduce(tl.ones(2)), "barrier",
         "all_reduce"),
        ("rows", lambda: dist.all_gather_into_tensor(
            tl.ones(size * (2 + one)), tl.ones(2 + one)), "float32[3]"),
        ("lists", lambda: dist.all_gather(
            [tl.ones(2 + (one and r == 0)) for r in range(size)], tl.ones(2)), "float32[3]"),
        ("splits", lambda: dist.all_to_all_single(
            tl.ones(size), tl.ones(size + 1 if one else size), None,
            [2, *[1] * (size - 1)] if one else None), "elements"),
    ]
    for name, call, *parts in cases:
        text = raised(RuntimeError, call, *parts)
        assert name == "splits" or f"rank {rank}" in text, text
        dist.all_reduce(x := tl.ones(2))
        assert x.tolist() == [size, size], name
    if one:                            # only this rank's arguments are wrong: its own error
        raised(ValueError, lambda: dist.broadcast(tl.ones(2), size), f"src={size} is not in")
        raised(RuntimeError, lambda: dist.all_reduce(tl.ones(2, device="meta")), "'meta'")
    else:                              # and the others are told
        raised(dist.DistError, lambda: dist.broadcast(tl.ones(2), 0), "rank 1: ", f"src={size}")
        raised(dist.DistError, lambda: dist.all_reduce(tl.ones(2)), "rank 1: ", "meta")


def bad_arguments():
    raised(TypeError, lambda: dist.all_reduce([1.0]), "tensor is a Tensor, got list")
    raised(TypeError, lambda: dist.all_reduce(tl.ones(2), 3), "op is a ReduceOp")
    raised(ValueError, lambda: dist.all_reduce(tl.ones(2), "mean"), "op is one of sum")
    raised(TypeError, lambda: dist.all_reduce(tl.ones(2), group="world"), "group is what new_group")
    raised(ValueError, lambda: dist.all_gather([tl.ones(2)], tl.ones(2)), "has 1 tensors for")
    raised(RuntimeError, lambda: dist.all_reduce(tl.ones(1).expand(3)), "share memory", "clone()")
    raised(RuntimeError, lambda: dist.all_gather_into_tensor(tl.ones(3), tl.ones(2)), "as large as")
    raised(TypeError, lambda: dist.all_gather_into_tensor(
        tl.ones(4, dtype=tl.float64), tl.ones(2)), "dtypes differ")
    raised(RuntimeError, lambda: dist.all_reduce(tl.ones(2, requires_grad=True)), "functional.all_")
    raised(ValueError, lambda: dist.broadcast(tl.ones(2)), "either src or group_src")
    raised(ValueError, lambda: dist.all_to_all_single(tl.ones(3), tl.ones(3)), "3 rows for 2 ranks")
    raised(ValueError, lambda: dist.send(tl.ones(2), 1 - dist.get_rank(), tag=-1), "tag=-1")
    raised(TypeError, lambda: dist.batch_isend_irecv([1]), "takes P2POps")
    raised(RuntimeError, dist.init_process_group, "is there already")


def one_raises():
    if dist.get_rank() == 1:
        raise KeyError("the reason of rank 1")
    dist.barrier()


def one_is_killed():
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def one_leaves():
    if dist.get_rank() == 1:
        sys.exit(3)
    dist.barrier()


def one_never_comes():
    if dist.get_rank() == 1:
        time.sleep(5)
        return
    x = tl.ones(2)
    text = raised(TimeoutError, lambda: dist.all_reduce(x), "all_reduce: rank 0 waited for 1 s")
    assert "look at the other ranks first" in text
    raised(RuntimeError, lambda: dist.all_reduce(x), "failed in all_reduce")
    print("told of it", flush=True)


def one_is_missed():
    if dist.get_rank() == 1:
        time.sleep(2)
        return
    raised(TimeoutError, lambda: dist.monitored_barrier(timeout=0.5), "did not come: rank 1")
    print("told of it", flush=True)


def waits():
    print("waits", flush=True)
    if dist.get_rank() == 1:
        time.sleep(100)
    dist.barrier()


class Asking(tl.utils.data.Dataset):
    """Rows that tell whether a worker has a group, or that ask one."""

    def __init__(self, communicates=False):
        self.communicates = communicates

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if self.communicates:
            dist.all_reduce(tl.ones(1))
        return tl.tensor(float(dist.is_initialized()))


def workers():
    """Loaders' workers are forked beside MPI, and have no part in it."""
    loader = tl.utils.data.DataLoader(Asking(), batch_size=2, num_workers=2)
    rows = [row for batch in loader for row in batch.tolist()]
    assert rows == [0.0] * 8, rows
    dist.all_reduce(x := tl.ones(2))
    assert x.tolist() == [dist.get_world_size()] * 2
    raised(RuntimeError, lambda: list(tl.utils.data.DataLoader(Asking(True), num_workers=1)),
           "forked from one that has")


if __name__ == "__main__":
    case = sys.argv[1]
    dist.init_process_group(timeout=1 if case.endswith("comes") else 20)
    globals()[case]()
    print("passed", flush=True)
    if not case.startswith("one_"):
        dist.destroy_process_group()
        raised(RuntimeError, lambda: dist.all_reduce(tl.ones(2)), "call init_process_group() first")
