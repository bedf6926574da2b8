"""The bits of training, which are the same for any number of ranks."""

import hashlib
import sys

from common import all_parts, drawn, raised

import tensorlib as tl
from tensorlib import distributed as dist
from tensorlib import nn
from tensorlib.nn.parallel import DistributedDataParallel as DDP

MICRO = 12


def bits_after(steps, rank, size, **options):
    tl.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3)), deterministic=True,
                micro_batches=MICRO, **options)
    optimizer = tl.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        generator = tl.Generator().manual_seed(step)
        x = tl.randn(2 * MICRO, 6, generator=generator)
        y = tl.randn(2 * MICRO, 3, generator=generator)
        rows = slice(rank * 2 * MICRO // size, (rank + 1) * 2 * MICRO // size)
        optimizer.zero_grad()
        own = []
        for a, b in model.micro_batches(x[rows], y[rows]):
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            own.append(loss.detach())
        dist.all_gather_into_tensor(every := tl.empty(MICRO), tl.stack(own))
        losses.append(every.mean().item())
        optimizer.step()
    digest = hashlib.sha256()
    for x in model.parameters():
        digest.update(x.detach().numpy().tobytes())
    return digest.hexdigest(), losses


def test_bits(rank, size):
    digest, losses = bits_after(20, rank, size)
    for options in ({"bucket_cap_mb": 0.0001}, {"gradient_as_bucket_view": True}):
        assert bits_after(20, rank, size, **options) == (digest, losses)
    if rank == 0:
        print("bits", digest, losses[-1].hex(), flush=True)


def test_it_is_the_mean(rank, size):
    tl.manual_seed(0)
    plain = nn.Linear(4, 2)
    model = DDP(plain, deterministic=True, micro_batches=MICRO)
    x = drawn(1, MICRO, 4)
    own = x[rank * MICRO // size:(rank + 1) * MICRO // size]
    for piece in model.micro_batches(own):
        model(piece).square().mean().backward()
    found = plain.weight.grad.clone()
    plain.zero_grad()
    plain(x).square().mean().backward()
    tl.testing.assert_close(found, plain.weight.grad)


def test_misuse(rank, size):
    model = DDP(nn.Linear(4, 2), deterministic=True, micro_batches=2 * size)
    x = tl.ones(2, 4)
    raised(RuntimeError, lambda: model(x).sum().backward(), "1 sweeps of a step", "has 2 of")
    dist.barrier()
    model = DDP(nn.Linear(4, 2), deterministic=True, micro_batches=2 * size)
    raised(ValueError, lambda: list(model.micro_batches(tl.ones(3, 4))), "3 examples")
    for piece in model.micro_batches(x):
        model(piece).sum().backward()
    raised(RuntimeError, lambda: model(x), "has a gradient already")
    raised(RuntimeError, lambda: model.register_comm_hook(None, print), "deterministic=True")
    raised(ValueError, lambda: DDP(nn.Linear(2, 2), deterministic=True, micro_batches=0),
           "micro_batches=0")


if __name__ == "__main__":
    all_parts(globals())
    sys.exit()
