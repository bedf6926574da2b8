"""Modules on devices, compiled, shared between processes, and wrapped for several devices."""

import copy
import pickle

import pytest
from process import run_forked

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.attention import SDPBackend, sdpa_kernel
from tensorlib.nn.modules.utils import (
    _pair,
    _reverse_repeat_tuple,
    _single,
    _triple,
    consume_prefix_in_state_dict_if_present,
)
from tensorlib.testing import assert_close


@pytest.mark.parametrize("name", ["cuda", "xpu"])
def test_a_module_goes_to_no_gpu(name):
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=name):
        getattr(layer, name)()
    with pytest.raises(RuntimeError):
        getattr(layer, name)(0)
    loss = nn.MSELoss()
    assert getattr(loss, name)() is loss and layer.cpu() is layer


def net():
    tl.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())


def test_a_compiled_module_trains_as_ever():
    eager, compiled = net(), net()
    compiled.compile(fullgraph=True)
    x = tl.randn(5, 3)
    for training in (True, True, True, False, False):
        for model in (eager, compiled):
            model.train(training)
        expected, found = eager(x), compiled(x)
        assert found.tolist() == expected.tolist()
        for model, out in ((eager, expected), (compiled, found)):
            model.zero_grad()
            out.square().sum().backward()
        assert_close([p.grad for p in compiled.parameters()], [p.grad for p in eager.parameters()])
    assert_close(dict(compiled.state_dict()), dict(eager.state_dict()))


def test_a_compiled_module_replays_its_forward():
    class Doubled(nn.Linear):
        def forward(self, input):
            return super().forward(input) * 2

    layer, x = Doubled(2, 2), tl.ones(1, 2)
    wanted = layer(x)
    layer.compile()
    for _ in range(5):
        assert tl.equal(layer(x), wanted)
    (way,) = layer._compiled_call.function._entries
    assert way.replay is not None
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        layer.compile(nonsense=True)


def test_hooks_of_a_compiled_module_are_called():
    model, seen = net(), []
    model.compile()
    x = tl.randn(5, 3)
    model(x)
    handle = model.register_forward_hook(lambda *args: seen.append(1))
    model(x), model(x)
    handle.remove()
    model(x)
    assert len(seen) == 2


def test_copies_of_a_compiled_module_are_not_compiled():
    model = net().eval()
    model.compile()
    x = tl.randn(5, 3)
    expected = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert vars(other)["_compiled_call"] is None
        assert other(x).tolist() == expected.tolist()


def test_forked_processes_write_into_shared_parameters():
    run_forked("""if True:
        import os
        import tensorlib as tl
        model = tl.nn.BatchNorm1d(3).double()
        assert model.share_memory() is model
        before = list(model.parameters())
        if os.fork() == 0:
            optimizer = tl.optim.SGD(model.parameters(), lr=0.5)
            model(tl.arange(12.0, dtype=tl.float64).reshape(4, 3)).sum().backward()
            optimizer.step()
            with tl.no_grad():
                model.weight.fill_(7.0)
            os._exit(0)
        os.wait()
        assert model.weight.tolist() == [7.0] * 3 and model.bias.tolist() == [-2.0] * 3
        assert model.num_batches_tracked.item() == 1
        assert all(p is q for p, q in zip(before, model.parameters()))
        assert tl.nn.Linear(2, 0).share_memory().weight.shape == (0, 2)
        """)


def test_a_base_after_module_takes_arguments():
    class Named:
        def __init__(self, name):
            self.name = name

    class Layer(nn.Module, Named):
        call_super_init = True

        def __init__(self):
            super().__init__("layer")
            self.part = nn.ReLU()

    assert Layer().name == "layer" and list(Layer().children())


# ---- for several devices -------------------------------------------------------------------------

def test_data_parallel_calls_its_module():
    model = net()
    both, x = nn.DataParallel(model), tl.randn(4, 3)
    model.eval()
    assert both(x).tolist() == model(x).tolist() and both.module is model
    assert nn.parallel.data_parallel(model, x).tolist() == model(x).tolist()
    assert nn.parallel.data_parallel(model, None, module_kwargs={"input": x}).shape == (4, 4)
    state = both.state_dict()
    assert list(state)[0] == "module.0.weight"
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == list(model.state_dict())
    assert state._metadata == model.state_dict()._metadata
    net().load_state_dict(state)


@pytest.mark.parametrize("act, text", [
    (lambda: nn.DataParallel(nn.ReLU(), device_ids=[0, 1]), r"no GPUs, got device_ids=\[0, 1\]"),
    (lambda: nn.parallel.data_parallel(nn.ReLU(), tl.ones(2), [0]), "data_parallel: there are no"),
    (lambda: nn.parallel.DistributedDataParallel(nn.ReLU()), "there is no process group"),
])
def test_devices_that_are_not_there(act, text):
    with pytest.raises(RuntimeError, match=text):
        act()


def test_synchronized_batch_norm_is_that_of_this_process():
    model, x = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3))), tl.randn(5, 3)
    expected = copy.deepcopy(model)
    model[1].eval()
    weight = model[1][0].weight
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert made is model and isinstance(model[0], nn.SyncBatchNorm)
    assert model[1][0].weight is weight and not model[1][0].training
    expected[1].eval()
    assert model(x).tolist() == expected(x).tolist()
    assert list(model.state_dict()) == list(expected.state_dict())
    assert nn.SyncBatchNorm(3)(tl.randn(2, 3, 4, 4, 4)).shape == (2, 3, 4, 4, 4)
    with pytest.raises(ValueError, match="2 or more dims, got 1D input"):
        nn.SyncBatchNorm(3)(tl.randn(3))


@pytest.mark.parametrize("x", [(2, 4, 3), (2, 4, 3, 5)], ids=str)
def test_batch_norm_without_statistics_is_differentiated_by_example(x):
    x = tl.randn(*x)
    model = nn.Sequential(nn.BatchNorm1d(x.shape[2]), nn.Sequential(nn.InstanceNorm1d(
        x.shape[2], affine=True, track_running_stats=True))[:x.ndim - 3])
    params = dict(model.named_parameters())

    def loss(params, x):
        return tl.func.functional_call(model, params, (x,)).square().mean()

    with pytest.raises(RuntimeError, match="differs between the examples"):
        tl.func.vmap(tl.func.grad(loss), (None, 0))(params, x)
    assert tl.func.replace_all_batch_norm_modules_(model) is model
    assert not list(model.buffers())
    found = tl.func.vmap(tl.func.grad(loss), (None, 0))(params, x)
    for i in range(2):
        for p, each in zip(params.values(), tl.autograd.grad(loss(params, x[i]), params.values())):
            name = next(name for name, q in params.items() if q is p)
            assert_close(found[name][i], each, rtol=1e-4, atol=1e-6)


# ---- what modules written for PyTorch import -----------------------------------------------------

def test_tuples_for_each_dim():
    assert _single(3) == (3,) and _pair(3) == (3, 3) and _triple([1, 2, 3]) == (1, 2, 3)
    assert _pair.__name__ == "_pair" and _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)


def test_kernels_of_attention_are_chosen_in_vain():
    q = tl.randn(1, 2, 3, 4)
    expected = nn.functional.scaled_dot_product_attention(q, q, q)
    for backends in (SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        with sdpa_kernel(backends, set_priority=True):
            assert nn.functional.scaled_dot_product_attention(
                q, q, q).tolist() == expected.tolist()
    with pytest.raises(TypeError, match="expected SDPBackend"), sdpa_kernel(["math"]):
        pass
