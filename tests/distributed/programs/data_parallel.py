"""DistributedDataParallel against the same training of the whole batch in one process."""

import copy

from common import all_parts, drawn, raised

import tensorlib as tl
from tensorlib import distributed as dist
from tensorlib import nn
from tensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from tensorlib.nn.parallel import DistributedDataParallel as DDP

BATCH = 12


def made(seed=0):
    tl.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))


def batch(step):
    return drawn(100 + step, BATCH, 5), drawn(200 + step, BATCH, 3)


def own(x, rank, size):
    return x[rank * (BATCH // size):(rank + 1) * (BATCH // size)]


def loss_of(model, x, y):
    return nn.functional.mse_loss(model(x), y)


def train(model, rank, size, steps=4, lr=0.1, around=lambda f: f):
    optimizer = tl.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        return loss

    step = around(step)
    for i in range(steps):
        x, y = batch(i)
        step(own(x, rank, size), own(y, rank, size))
    return model


def states(model):
    return {name.removeprefix("module."): x for name, x in model.state_dict().items()}


def assert_agree(model, expected, **tolerance):
    for name, x in states(expected).items():
        tl.testing.assert_close(states(model)[name], x, **tolerance)


def assert_same_everywhere(model):
    for x in model.state_dict().values():
        found = [tl.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(found, x)
        assert all(tl.equal(each, x) for each in found)


def test_options(rank, size):
    expected = train(made(), 0, 1)
    for options in ({}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.0002},
                    {"bucket_cap_mb": 0.0002, "gradient_as_bucket_view": True},
                    {"find_unused_parameters": True}, {"static_graph": True}):
        model = train(DDP(made(rank), **options), rank, size)     # begins with rank 0's
        assert_agree(model, expected)
        assert_same_everywhere(model)
    assert list(model.state_dict())[0] == "module.0.weight"


def test_gradients_are_parts_of_buckets(rank, size):
    model = DDP(made(), gradient_as_bucket_view=True)
    x, y = batch(0)
    for _ in range(3):
        loss_of(model, x, y).backward()
    buckets = model._reducer.buckets
    assert all(p.grad is view or p.grad.data_ptr() == view.data_ptr()
               for bucket in buckets for p, view in zip(bucket.own, bucket.views))
    assert buckets[0].own[0] is list(model.parameters())[-1] or len(buckets) == 1
    model.zero_grad(set_to_none=False)
    assert not buckets[0].memory.any()


def test_no_sync(rank, size):
    expected, plain = made(), made()
    model = DDP(made(), gradient_as_bucket_view=bool(rank % 2) if size == 1 else False)
    for step in range(3):
        x, y = batch(step)
        (loss_of(expected, x, y)).backward()
        with model.no_sync():
            if step < 2:
                loss_of(model, own(x, rank, size), own(y, rank, size)).backward()
                loss_of(plain, own(x, rank, size), own(y, rank, size)).backward()
        if step < 2:
            for a, b in zip(model.parameters(), plain.parameters()):
                assert tl.equal(a.grad, b.grad)
    loss_of(model, own(x, rank, size), own(y, rank, size)).backward()
    for a, b in zip(model.parameters(), expected.parameters()):
        tl.testing.assert_close(a.grad, b.grad)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 3), nn.Linear(5, 3), nn.Linear(5, 3)

    def forward(self, x, which):
        return (self.a if which else self.b)(x)


def test_unused_parameters(rank, size):
    model = DDP(Branches(), find_unused_parameters=True)
    plain = copy.deepcopy(model.module)
    x, y = batch(0)
    nn.functional.mse_loss(model(x, rank == 0), y).backward()
    assert model.module.c.weight.grad is None                     # used by nobody
    nn.functional.mse_loss(plain.a(x), y).backward()
    nn.functional.mse_loss(plain.b(x), y).backward()
    tl.testing.assert_close(model.module.a.weight.grad, plain.a.weight.grad / size)
    if size > 1:
        tl.testing.assert_close(model.module.b.weight.grad,
                                plain.b.weight.grad * (size - 1) / size)
    strict = DDP(Branches())
    nn.functional.mse_loss(strict(x, True), y).backward()
    raised(RuntimeError, lambda: strict(x, True), "gave no gradient to b.weight", "c.bias",
           "find_unused_parameters=True")
    strict.eval()
    with tl.no_grad():
        strict(x, True)


def test_buffers(rank, size):
    model = DDP(nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3)))
    x, y = batch(0)
    loss_of(model, own(x, rank, size), own(y, rank, size)).backward()
    loss_of(model, own(x, rank, size), own(y, rank, size)).backward()
    with model.no_sync():
        before = model.module[0].running_mean.clone()
        model(own(x, rank, size))
        assert not tl.equal(before, model.module[0].running_mean)
    model(tl.ones(4, 5) + rank)
    assert_same_everywhere(DDP(model.module))                        # made alike again


def test_hooks(rank, size):
    expected = train(made(), 0, 1)
    for hook, atol in ((default_hooks.allreduce_hook, 1e-6),
                       (default_hooks.fp16_compress_hook, 2e-3),
                       (default_hooks.bf16_compress_hook, 2e-2),
                       (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 2e-3)):
        model = DDP(made(rank), bucket_cap_mb=0.0002)
        model.register_comm_hook(None, hook)
        assert_agree(train(model, rank, size), expected, rtol=1e-5, atol=atol)
        assert_same_everywhere(model)
    state = powerSGD_hook.PowerSGDState(matrix_approximation_rank=8, start_powerSGD_iter=1,
                                        min_compression_rate=0.1)
    model = DDP(made(rank))
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    assert_agree(train(model, rank, size), expected, rtol=1e-5, atol=1e-3)     # of full rank
    thin = powerSGD_hook.PowerSGDState(start_powerSGD_iter=0)
    model = DDP(made(rank), bucket_cap_mb=0.0002)
    model.register_comm_hook(thin, powerSGD_hook.powerSGD_hook)
    before = loss_of(model.module, *batch(0)).item()
    train(model, rank, size, 8, 0.05)
    assert_same_everywhere(model)
    assert loss_of(model.module, *batch(0)).item() < before
    rate, whole, sent = thin.compression_stats()
    assert rate > 1 and sent < whole and thin.errors
    raised(RuntimeError, lambda: model.register_comm_hook(None, print), "a hook already")


def test_compiled(rank, size):
    expected = train(made(), 0, 1, 6)
    for model, around in ((DDP(tl.compile(made())), lambda f: f), (tl.compile(DDP(made())), None),
                          (DDP(made()), tl.compile)):
        found = train(model, rank, size, 6, around=around or (lambda f: f))
        for a, b in zip(found.parameters(), expected.parameters()):
            tl.testing.assert_close(a, b)


def test_synchronized_batch_norm(rank, size):
    def layers():
        tl.manual_seed(3)
        return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))

    expected = train(layers(), 0, 1)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(layers())
    train(DDP(model), rank, size)
    assert_agree(model, expected, rtol=1e-4, atol=1e-5)
    model.eval()
    expected.eval()
    tl.testing.assert_close(model(batch(9)[0]), expected(batch(9)[0]), rtol=1e-4, atol=1e-5)


def test_models_that_differ(rank, size):
    if size > 1:
        raised(dist.DistError, lambda: DDP(nn.Linear(5, 3 + rank)), "weight:float32[4,5]")
    raised(RuntimeError, lambda: DDP(nn.ReLU()), "no parameter of the module requires")
    raised(RuntimeError, lambda: DDP(made(), device_ids=[0]), "no GPUs")
    raised(ValueError, lambda: DDP(made(), deterministic=True, micro_batches=size + 1)
           if size > 1 else DDP(made(), bucket_cap_mb=0), "DistributedDataParallel: ")


def test_loaders_ask_the_group(rank, size):
    data = tl.utils.data.TensorDataset(tl.arange(10))
    sampler = tl.utils.data.DistributedSampler(data, shuffle=True)
    assert (sampler.rank, sampler.num_replicas) == (rank, size)
    loader = tl.utils.data.DataLoader(data, batch_size=2, sampler=sampler)
    mine = [i for (x,) in loader for i in x.tolist()]
    found = [None] * size
    dist.all_gather_object(found, mine)
    assert {i for each in found for i in each} == set(range(10))


if __name__ == "__main__":
    all_parts(globals())
