"""Sharded optimisers and parameters against the same training in one process; checkpoints."""

import os
import sys

from common import all_parts, drawn, raised

import tensorlib as tl
from tensorlib import distributed as dist
from tensorlib import nn
from tensorlib.distributed.fsdp import ShardedParameter, fully_shard, unsharded
from tensorlib.distributed.optim import ZeroRedundancyOptimizer
from tensorlib.nn.parallel import DistributedDataParallel as DDP

BATCH = 12


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.GELU())
        self.second = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        x = self.first(x)
        return self.last(x + self.second(x))


def made():
    tl.manual_seed(0)
    return Net()


def fully(model, **options):
    for part in (model.first, model.second):
        fully_shard(part, **options)
    return fully_shard(model, **options)


def step_of(model, optimizer, step, rank, size, clip=None):
    x, y = drawn(100 + step, BATCH, 5), drawn(200 + step, BATCH, 3)
    rows = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip) if clip else None
    optimizer.step()
    return norm


def expected(steps=5, clip=None, kind=tl.optim.AdamW, **options):
    model = made()
    optimizer = kind(model.parameters(), lr=0.01, **options)
    norms = [step_of(model, optimizer, i, 0, 1, clip) for i in range(steps)]
    return model, optimizer, norms


def assert_close(a, b):
    tl.testing.assert_close(a.detach(), b.detach(), rtol=1e-4, atol=1e-5)


def test_zero_redundancy(rank, size):
    plain, plain_optimizer, _ = expected()
    for as_views in (False, True):
        model = DDP(made())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), tl.optim.AdamW, lr=0.01,
                                            parameters_as_bucket_view=as_views)
        for i in range(5):
            step_of(model, optimizer, i, rank, size)
        for a, b in zip(model.parameters(), plain.parameters()):
            assert_close(a, b)
        held = sum(x.numel() for state in optimizer.optim.state.values()
                   for x in state.values() if x.numel() > 1)
        sizes = [2 * p.numel() for p in model.parameters()]
        assert held <= sum(sizes) / size + max(sizes), (held, sizes)     # whole ones are shared
        raised(RuntimeError, optimizer.state_dict, "consolidate_state_dict(to=rank)")
        optimizer.consolidate_state_dict()
        told = [optimizer.state_dict() if rank == 0 else None]
        dist.broadcast_object_list(told)
        single = plain_optimizer.state_dict()
        for number, state in single["state"].items():
            for key, x in state.items():
                assert_close(told[0]["state"][number][key], x)
        again = ZeroRedundancyOptimizer(model.parameters(), tl.optim.AdamW, lr=1.0)
        again.load_state_dict(told[0])
        assert again.param_groups[0]["lr"] == 0.01
        step_of(model, again, 5, rank, size)
    step_of(plain, plain_optimizer, 5, 0, 1)
    for a, b in zip(model.parameters(), plain.parameters()):
        assert_close(a, b)


def test_schedules_and_groups(rank, size):
    plain = made()
    model = DDP(made())
    found = []
    for net, make in ((plain, tl.optim.SGD), (model, None)):
        params = list(net.parameters())
        first = [{"params": params[:3], "lr": 0.1}, {"params": params[3:5]}]
        optimizer = make(first, lr=0.05, momentum=0.9) if make else ZeroRedundancyOptimizer(
            first, tl.optim.SGD, lr=0.05, momentum=0.9)
        optimizer.add_param_group({"params": params[5:], "lr": 0.02})
        schedule = tl.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for i in range(3):
            step_of(net, optimizer, i, *((0, 1) if make else (rank, size)))
            schedule.step()
        found.append(params)
    for a, b in zip(*found):
        assert_close(a, b)


def test_fully_sharded(rank, size):
    for options in ({}, {"reshard_after_forward": False}):
        plain, _, norms = expected(clip=0.5)
        whole = sum(p.numel() for p in plain.parameters())
        model = fully(made(), **options)
        shards = list(model.parameters())
        assert all(isinstance(p, ShardedParameter) for p in shards)
        assert sum(p.numel() for p in shards) <= whole / size + len(shards)
        optimizer = tl.optim.AdamW(model.parameters(), lr=0.01)
        for i in range(5):
            assert_close(step_of(model, optimizer, i, rank, size, clip=0.5), norms[i])
        assert all(p.grad.numel() == p.numel() for p in shards)
        with unsharded(model):
            for (name, a), b in zip(plain.named_parameters(), shards):
                owner, _, key = name.rpartition(".")
                assert_close(getattr(model.get_submodule(owner), key), a)
        assert isinstance(model.last.weight, ShardedParameter)
        model.eval()
        with tl.no_grad():
            assert_close(model(drawn(7, 4, 5)), plain(drawn(7, 4, 5)))
    raised(RuntimeError, lambda: fully_shard(model), "sharded already")


def test_whole_parameters_are_let_go(rank, size):
    """The graph keeps none of them between the forward pass and the sweep."""
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(8)))
    for block in blocks:
        fully_shard(block)
    fully_shard(blocks)
    one = 256 * 257 * 4
    held = tl.memory.stats()["in_use"]
    out = blocks(tl.ones(4, 256))
    assert tl.memory.stats()["in_use"] - held < 2 * one          # activations alone
    out.sum().backward()
    assert all(not unit.again for unit in (vars(block)["_sharded_unit"] for block in blocks))


def test_checkpoints(rank, size):
    from_here = sys.argv[1:]
    if not from_here:
        return
    way, path = from_here
    checkpoint = dist.checkpoint
    model = fully(made())
    optimizer = tl.optim.AdamW(model.parameters(), lr=0.01)
    if way == "save":
        for i in range(3):
            step_of(model, optimizer, i, rank, size)
        weights, states = checkpoint.get_state_dict(model, optimizer)
        checkpoint.save({"model": weights, "optimizer": states, "step": 3,
                         "same": tl.arange(7.0)}, checkpoint_id=path)
        files = sorted(os.listdir(path))
        assert len(files) == size + 1, files
        raised(TypeError, lambda: checkpoint.save({"f": print}, checkpoint_id=path), "f is a")
    else:
        weights, states = checkpoint.get_state_dict(model, optimizer)
        loaded = {"model": weights, "optimizer": states, "step": 0, "same": tl.zeros(7)}
        checkpoint.load(loaded, checkpoint_id=path)
        checkpoint.set_state_dict(model, optimizer, model_state_dict=loaded["model"],
                                  optim_state_dict=loaded["optimizer"])
        assert loaded["step"] == 3 and loaded["same"].tolist() == list(range(7))
        plain, plain_optimizer, _ = expected(3)
        for step in (3, 4):
            step_of(plain, plain_optimizer, step, 0, 1)
            step_of(model, optimizer, step, rank, size)
        with unsharded(model):
            for name, a in plain.named_parameters():
                owner, _, key = name.rpartition(".")
                assert_close(getattr(model.get_submodule(owner), key), a)
        raised(KeyError, lambda: checkpoint.load({"nothing": tl.zeros(2)}, checkpoint_id=path),
               "nothing")
        raised(RuntimeError, lambda: checkpoint.load({"same": tl.zeros(3)}, checkpoint_id=path),
               "same", "(3,)", "(7,)")


if __name__ == "__main__":
    all_parts(globals())
