"""Tensors without memory: operations on them give the shape, strides and dtype of the real result.

The registry says what operations there are. That none of them touches an element of a meta tensor
is seen in a process of its own, in which who does so ends it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.base.region import forbid_region
from tensorlib._core.tensor.meta import NoData
from tensorlib.ops import registry
from tensorlib.testing.catalogue import call, prepared, samples
from tests.ops.catalogue import for_each

ROOT = Path(__file__).resolve().parents[2]
SIDE = 2**20

sampled = [op for op in registry.values()
           if op.testing.get("samples") and any(sample.arrays for sample in samples(op))]


def on_meta(sample):
    """The sample with tensors without memory, laid out alike, in the places of its own."""
    return sample.tensors().map(lambda place, x: x.contiguous().to("meta"))


def tensors_in(result):
    return [x for x in (result if isinstance(result, (tuple, list)) else (result,))
            if isinstance(x, tl.Tensor)]


def facts(x):
    return tuple(x.shape), x.dtype, x.stride() if x.numel() else None


def whole(sample):
    return sample.tensors().map(lambda place, x: x.clone().contiguous())


@for_each(sampled)
def test_an_operation_gives_what_it_gives_but_for_the_elements(op):
    for sample in samples(op):
        if not sample.arrays:
            continue
        wanted = call(op, whole(sample))
        if op.reads_values:
            with pytest.raises(NoData, match="meta"):
                for other in samples(op):
                    call(op, on_meta(other))
            return
        got = call(op, on_meta(sample))
        if not tensors_in(wanted):
            assert got == wanted
        for real, meta in zip(tensors_in(wanted), tensors_in(got), strict=True):
            assert facts(meta) == facts(real)
            assert meta.is_meta and not real.is_meta


def gradients(op, sample):
    """The gradients of the sum of all outputs, for the floating tensors of the sample."""
    leaves = [x.requires_grad_() for x in sample.arrays if x.is_floating_point()]
    args, kwargs = prepared(op, sample)
    outs = [x for x in tensors_in(op.function(*args, **kwargs)) if x.requires_grad]
    return tl.autograd.grad(outs, leaves, [tl.ones_like(x) for x in outs], allow_unused=True)


differentiable = [op for op in sampled if op.differentiable and not op.reads_values]
GRADIENTS_NEED_ELEMENTS = {"prod", "cumprod", "index_reduce", "scatter_reduce", "scatter_reduced"}


def test_gradients_have_the_shapes_of_the_inputs():
    checked = 0
    for op in differentiable:
        for sample in samples(op):
            if not any(x.dtype.kind == "f" for x in sample.arrays):
                continue
            meta = on_meta(sample)
            try:
                found = gradients(op, meta)
            except NoData:
                assert op.name in GRADIENTS_NEED_ELEMENTS, op.name
                break
            except RuntimeError as error:          # no output of this sample has a gradient
                assert "grad" in str(error), op.name
                continue
            for x, g in zip([x for x in meta.arrays if x.requires_grad], found, strict=True):
                if g is not None:
                    assert g.is_meta and g.shape == x.shape and g.dtype is x.dtype, op.name
                    checked += 1
    assert checked > 500


def touch_nothing():
    """Runs every operation and gradient where an element that is read or written is the end."""
    forbid_region()
    for op in sampled:
        for sample in samples(op):
            print(op.name, flush=True)
            try:
                call(op, on_meta(sample))
                if op in differentiable:
                    gradients(op, on_meta(sample))
            except (NoData, RuntimeError):
                pass
    print("all")


def test_no_operation_touches_an_element():
    done = subprocess.run(
        [sys.executable, "-c", "import test_meta; test_meta.touch_nothing()"], text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": ":".join(
            map(str, (ROOT, ROOT / "tests", Path(__file__).parent)))})
    names = done.stdout.split()
    assert names[-1] == "all", f"{names[-1]} ended the process: {done.returncode}"


# ---- sizes that no machine has -------------------------------------------------------------------

def test_tensors_beyond_memory():
    before = tl.memory.stats()["in_use"]
    x = tl.empty(SIDE, SIDE, device="meta")
    w = tl.zeros((SIDE, SIDE), device="meta", requires_grad=True)
    out = tl.nn.functional.relu(x @ w.T + tl.ones(SIDE, device="meta")).softmax(-1)
    loss = (out[:, :10] * 2).sum(0, keepdim=True).std()
    loss.backward()
    assert out.shape == w.grad.shape == (SIDE, SIDE) and loss.shape == ()
    assert tl.memory.stats()["in_use"] - before < 1 << 20
    w.grad.add_(1).zero_()
    w.detach().uniform_().clamp_(0, 1)
    assert tl.cat([x, x, x]).shape == (3 * SIDE, SIDE)
    assert x.t().contiguous().stride() == (SIDE, 1)
    assert x.sort(0).indices.dtype is tl.int64


def test_too_large_for_addresses():
    with pytest.raises(MemoryError):
        tl.empty(2**56, device="meta")
    with pytest.raises(RuntimeError):
        tl.empty(2**40, 2**40, device="meta")


# ---- where a tensor is ---------------------------------------------------------------------------

def test_devices():
    x = tl.zeros(2, 3, device="meta")
    assert x.is_meta and not x.is_cpu and x.device == tl.device("meta") and str(x.device) == "meta"
    assert repr(x.device) == "device(type='meta')"
    assert tl.device("meta") != tl.device("cpu")
    real = tl.ones(2, 3)
    assert real.to("meta").is_meta and real.to(x).is_meta and not real.is_meta
    assert real.t().to("meta").stride() == real.t().stride()
    assert real.to("meta", tl.float64).dtype is tl.float64
    assert x.to("meta") is x and x.double().is_meta
    assert tl.empty_like(x, device="cpu").is_cpu and tl.empty_like(real, device="meta").is_meta
    assert tl.ones_like(x).is_meta and x.new_zeros(3).is_meta and x.new_tensor([1.0]).is_meta
    assert not x.new_zeros(3, device="cpu").is_meta


@each("make", [
    lambda **on: tl.empty(2, 3, **on), lambda **on: tl.ones(2, 3, **on),
    lambda **on: tl.full((2,), 3.0, **on), lambda **on: tl.arange(5, **on),
    lambda **on: tl.linspace(0, 1, 5, **on), lambda **on: tl.logspace(0, 1, 5, **on),
    lambda **on: tl.eye(3, **on), lambda **on: tl.randn(2, 3, **on),
    lambda **on: tl.rand(2, 3, **on), lambda **on: tl.randint(9, (2,), **on),
    lambda **on: tl.randperm(9, **on), lambda **on: tl.tensor([[1, 2]], **on),
    lambda **on: tl.as_tensor([[1.0]], **on), lambda **on: tl.asarray([1], **on),
    lambda **on: tl.scalar_tensor(2.0, **on), lambda **on: tl.tril_indices(3, 3, **on),
    lambda **on: tl.zeros(0, 3, **on)])
def test_what_makes_tensors_makes_them_on_meta(make):
    assert facts(make(device="meta")) == facts(make())
    assert make(device="meta").is_meta and not make(device="cpu").is_meta


def test_random_numbers_are_not_used_up():
    tl.manual_seed(3)
    wanted = tl.rand(3)
    tl.manual_seed(3)
    tl.rand(3, device="meta")
    tl.randn(3, device="meta").uniform_()
    assert tl.equal(tl.rand(3), wanted)


@each("read", [
    lambda x: x.item(), lambda x: float(x), lambda x: bool(x), lambda x: int(x),
    lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.cpu(), lambda x: x.to("cpu"),
    lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: tl.zeros(()).copy_(x),
    lambda x: x.unique()])
def test_elements_can_not_be_read(read):
    with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
        read(tl.zeros((), device="meta"))


def test_a_buffer_is_refused():
    with pytest.raises(BufferError, match="meta"):
        memoryview(tl.zeros(3, device="meta"))


def test_devices_do_not_mix():
    x, real = tl.zeros(2, 3, device="meta"), tl.ones(2, 3)
    for mixed in (lambda: x + real, lambda: real * x, lambda: x @ real.t(), lambda: x.add_(real),
                  lambda: real.add_(x), lambda: tl.cat([x, real]), lambda: tl.add(x, x, out=real),
                  lambda: tl.where(x > 0, x, real), lambda: tl.nn.functional.linear(x, real)):
        with pytest.raises(RuntimeError, match="same device"):
            mixed()
    assert (x + tl.tensor(2.0)).is_meta and (x * 2).is_meta
    assert tl.equal(real, tl.ones(2, 3))


def test_errors_are_those_of_the_real_call():
    for wrong in (lambda x: x @ x, lambda x: x + x[:, :2], lambda x: x.sum(5),
                  lambda x: x.reshape(7), lambda x: tl.cat([x, x.t()])):
        raised = []
        for device in ("cpu", "meta"):
            with pytest.raises((RuntimeError, IndexError)) as error:
                wrong(tl.zeros(2, 3, device=device))
            raised.append((error.type, str(error.value)))
        assert raised[0] == raised[1]


def test_a_failed_operation_leaves_real_ones_real():
    with pytest.raises(RuntimeError):
        tl.zeros(2, 3, device="meta") @ tl.zeros(2, 3, device="meta")
    assert tl.equal(tl.ones(3) + 1, tl.full((3,), 2.0))


def test_how_they_look():
    assert repr(tl.empty(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"
    x = tl.zeros(0, device="meta", dtype=tl.float64)
    assert repr(x) == "tensor(..., device='meta', size=(0,), dtype=tensorlib.float64)"


def test_numbers_that_were_first_seen_on_meta_keep_their_value():
    assert (tl.zeros(3, device="meta") * 0.7251).is_meta
    assert tl.equal(tl.ones(3) * 0.7251, tl.full((3,), 0.7251))


def test_a_tensor_like_another_is_made_on_the_device_that_is_asked_for():
    x = tl.ones(2, 3, 4, 5).to(memory_format=tl.channels_last)
    on_meta = tl.zeros_like(x, device="meta", dtype=tl.float64)
    assert on_meta.is_meta and on_meta.stride() == x.stride() and on_meta.dtype is tl.float64
    back = tl.ones_like(on_meta, device="cpu")
    assert not back.is_meta and back.shape == x.shape and (back == 1).all()
    for made in (on_meta.new_zeros(2), on_meta.new_full((2,), 3), on_meta.new_tensor([1.0, 2.0])):
        assert made.is_meta and made.shape == (2,) and made.dtype is tl.float64
    assert on_meta.new_ones(2, device="cpu").tolist() == [1, 1]


def test_no_elements_come_from_meta_by_as_tensor():
    assert tl.as_tensor(tl.ones(2), device="meta").is_meta
    assert tl.asarray([1.0, 2.0], device="meta").is_meta
    with pytest.raises(NotImplementedError, match="meta"):
        tl.as_tensor(tl.ones(2, device="meta"), device="cpu")


def test_a_value_on_meta_fills_what_is_on_meta():
    x, mask = tl.ones(3, device="meta"), tl.ones(3, device="meta").bool()
    assert x.masked_fill(mask, tl.ones((), dtype=tl.int64, device="meta")).shape == (3,)


def test_a_mask_on_meta_picks_nothing_of_what_has_elements():
    mask = tl.ones(2, 3, device="meta").bool()
    for pick in (lambda: tl.ones(2, 3)[mask], lambda: tl.ones(2, 3).masked_select(mask)):
        with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
            pick()
