"""What one rank measures for `python -m benchmarks.collectives`; started by `mpiexec`."""

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import tensorlib as tl
import tensorlib.distributed as dist
from tensorlib import nn
from tensorlib.distributed.fsdp import fully_shard
from tensorlib.distributed.optim import ZeroRedundancyOptimizer
from tensorlib.nn import functional as F
from tensorlib.nn.parallel import DistributedDataParallel

WORLD = MPI.COMM_WORLD


def fastest(calls: list[Callable[[], Any]], repeats: int, seconds: float = 0.0) -> list[float]:
    """The least mean time of each call, in seconds, on the slowest rank; taken in turn.

    A repeat makes as many calls as fit into so many seconds, 1 to 200.
    """
    best = [float("inf")] * len(calls)
    start = time.perf_counter()
    for call in calls:
        call()
    once = (time.perf_counter() - start) / len(calls)
    inner = WORLD.bcast(max(1, min(200, int(seconds / once))))
    for _ in range(repeats):
        for i, call in enumerate(calls):
            WORLD.Barrier()
            start = time.perf_counter()
            for _ in range(inner):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / inner)
    return [WORLD.allreduce(each, MPI.MAX) for each in best]


# ---- collectives ---------------------------------------------------------------------------------

def pairs(count: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Each collective on `count` floats: ours, and mpi4py's on NumPy arrays."""
    size, rank = WORLD.size, WORLD.rank
    x, y = tl.ones(count), tl.ones(count * size)
    a, b = np.ones(count, np.float32), np.ones(count * size, np.float32)
    return {
        "all_reduce": (lambda: dist.all_reduce(x, "max"),
                       lambda: WORLD.Allreduce(MPI.IN_PLACE, a, MPI.MAX)),
        "reduce": (lambda: dist.reduce(x, 0, "max"), lambda: WORLD.Reduce(
            MPI.IN_PLACE if rank == 0 else a, a if rank == 0 else None, MPI.MAX)),
        "broadcast": (lambda: dist.broadcast(x, 0), lambda: WORLD.Bcast(a)),
        "all_gather": (lambda: dist.all_gather_into_tensor(y, x), lambda: WORLD.Allgather(a, b)),
        "reduce_scatter": (lambda: dist.reduce_scatter_tensor(x, y, "max"),
                           lambda: WORLD.Reduce_scatter_block(b, a, MPI.MAX)),
        "all_to_all": (lambda: dist.all_to_all_single(tl.empty_like(y), y),
                       lambda: WORLD.Alltoall(b, np.empty_like(b))),
        "send, recv": (lambda: message(x), lambda: plain_message(a)),
    }


def message(x: tl.Tensor) -> None:
    """There and back between the first two ranks."""
    if WORLD.rank == 0:
        dist.send(x, 1)
        dist.recv(x, 1)
    elif WORLD.rank == 1:
        dist.recv(x, 0)
        dist.send(x, 0)


def plain_message(a: np.ndarray[Any, Any]) -> None:
    if WORLD.rank == 0:
        WORLD.Send(a, 1)
        WORLD.Recv(a, 1)
    elif WORLD.rank == 1:
        WORLD.Recv(a, 0)
        WORLD.Send(a, 0)


def collectives(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for count in (1, 1 << 10) if quick else (1, 1 << 10, 1 << 14, 1 << 18, 1 << 22):
        for name, calls in pairs(count).items():
            ours, plain = fastest(list(calls), 2 if quick else 9, 0.0 if quick else 0.02)
            rows.append({"name": name, "bytes": 4 * count, "ours": ours, "plain": plain})
    return rows


# ---- models --------------------------------------------------------------------------------------

class GPT(nn.Module):
    """Blocks of causal attention over 64 letters."""

    def __init__(self, layers: int = 4, width: int = 128, length: int = 64) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(128, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
            norm_first=True) for _ in range(layers))
        self.out = nn.Linear(width, 128)
        self.mask = nn.Transformer.generate_square_subsequent_mask(length)

    def forward(self, codes: tl.Tensor) -> tl.Tensor:
        x = self.letter(codes) + self.place.weight
        for block in self.blocks:
            x = block(x, self.mask, is_causal=True)
        return self.out(x).flatten(0, 1)


def models() -> dict[str, tuple[Callable[[], nn.Module], tl.Tensor, tl.Tensor]]:
    """Each model, and what one rank is given in a step."""
    codes = tl.randint(0, 128, (8, 64))
    return {
        "perceptron": (lambda: nn.Sequential(
            nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
            tl.randn(128, 64), tl.randint(0, 10, (128,))),
        "convolutional net": (lambda: nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(64, 10)), tl.randn(16, 3, 32, 32), tl.randint(0, 10, (16,))),
        "GPT 4 x 128": (GPT, codes, tl.randint(0, 128, (8 * 64,))),
    }


def scaling(quick: bool) -> list[dict[str, Any]]:
    """Steps with and without communication, and the communication alone."""
    rows = []
    for name, (make, x, y) in models().items():
        tl.manual_seed(0)
        model = DistributedDataParallel(make(), gradient_as_bucket_view=True, bucket_cap_mb=1.0)
        optimizer = tl.optim.SGD(model.parameters(), lr=0.001)

        def step() -> None:
            optimizer.zero_grad(set_to_none=False)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

        def alone() -> None:
            with model.no_sync():
                step()

        def communicate() -> None:
            for bucket in model._reducer.buckets:
                dist.all_reduce(bucket.memory)

        for _ in range(2):
            step()
        both, computed, sent = fastest([step, alone, communicate], 2 if quick else 12)
        rows.append({"name": name, "step": both, "alone": computed, "communication": sent,
                     "bytes": 4 * sum(p.numel() for p in model.parameters())})
    return rows


def memory(quick: bool) -> list[dict[str, Any]]:
    """Bytes that a rank holds of a GPT between two steps, and at most."""
    rows = []
    for way in ("data parallel", "ZeRO-1", "ZeRO-3"):
        tl.manual_seed(0)
        gc.collect()
        before = tl.memory.stats()["in_use"]
        model: Any = GPT(2 if quick else 4, 32 if quick else 256)
        if way == "ZeRO-3":
            for block in model.blocks:
                fully_shard(block)
            fully_shard(model)
        else:
            model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        optimizer: Any = (ZeroRedundancyOptimizer(model.parameters(), tl.optim.AdamW, lr=0.001)
                          if way == "ZeRO-1" else tl.optim.AdamW(model.parameters(), lr=0.001))
        x, y = tl.randint(0, 128, (2, 64)), tl.randint(0, 128, (128,))
        for _ in range(2):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        gc.collect()
        held = tl.memory.stats()["in_use"] - before
        rows.append({"name": way, "bytes": WORLD.allreduce(held, MPI.MAX)})
        del model, optimizer, x, y
    return rows


def main() -> None:
    what, quick = sys.argv[1], sys.argv[2] == "quick"
    dist.init_process_group()
    rows = {"collectives": collectives, "scaling": scaling, "memory": memory}[what](quick)
    if WORLD.rank == 0:
        print("rows", json.dumps(rows), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
