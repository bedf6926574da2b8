"""What raises has changed nothing: all that can fail comes before the first write."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.autograd import hooks as gradient_hooks
from tensorlib.autograd.graph import saved_tensors_hooks


def inference_tensor():
    with tl.inference_mode():
        return tl.full((3,), 5.0)


def refuse(value):
    raise KeyError("pack")


def state(x):
    return x.tolist(), x._version, x.grad_fn, x.shape


WRITES = [
    lambda y, w: y.mul_(w), lambda y, w: y.div_(w), lambda y, w: y[1:].mul_(w[1:]),
    lambda y, w: y.pow_(w), lambda y, w: y.atan2_(w),
]


@each("write", WRITES)
def test_a_value_that_cannot_be_saved(write):
    x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    view = y[1:]
    before = state(y), state(view)
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        write(y, inference_tensor())
    assert (state(y), state(view)) == before
    (y.sum() + view.sum()).backward()
    assert x.grad.tolist() == [2, 4, 4]


@pytest.mark.parametrize("write", [
    lambda y: y.tanh_(), lambda y: y.mul_(y), lambda y: y.exp_(), lambda y: y[:2].sin_(),
    lambda y: y.mul_(tl.ones(3, requires_grad=True))])
def test_a_hook_that_raises_as_a_value_is_saved(write):
    x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    before = state(y)
    with saved_tensors_hooks(refuse, lambda x: x), pytest.raises(KeyError):
        write(y)
    assert state(y) == before
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@each("form", ["tanh_", "exp_", "sigmoid_", "sqrt_", "neg_", "sin_"])
@each("part", [slice(None), slice(1, None)])
def test_hooks_are_given_what_is_written(form, part):
    grads = []
    for hooks in (None, (lambda x: x.clone(), lambda x: x)):
        x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * 2
        if hooks:
            with saved_tensors_hooks(*hooks):
                getattr(y[part], form)()
        else:
            getattr(y[part], form)()
        y.sum().backward()
        grads.append((y.tolist(), x.grad.tolist()))
    assert grads[0] == grads[1]


def test_a_hook_that_changes_the_tensor_under_the_write():
    x = tl.ones(3, requires_grad=True)
    y = (x * 2).tanh()

    def pack(value):
        y.data = tl.ones(1)
        return value

    with saved_tensors_hooks(pack, lambda x: x), pytest.raises(RuntimeError, match="layout"):
        y.tanh_()


@pytest.mark.parametrize("run", [
    lambda out: tl.floor(tl.ones(3), out=out), lambda out: tl.add(tl.ones(3), tl.ones(3), out=out),
    lambda out: tl.div(tl.ones(3), 2, out=out), lambda out: tl.sum(tl.ones(3, 3), 0, out=out),
    lambda out: tl.cat([tl.ones(2), tl.ones(2)], out=out),
    lambda out: tl.floor_divide(tl.tensor([1]), tl.tensor([0]), out=out)])
def test_an_empty_out_of_a_call_that_raises_stays_empty(run):
    out = tl.empty(0, dtype=tl.bool)
    memory = out.data_ptr()
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        run(out)
    assert out.shape == (0,) and out.data_ptr() == memory


def test_several_outs_are_written_all_or_none():
    values, places = tl.zeros(2), tl.zeros(2, dtype=tl.bool)
    with pytest.raises(RuntimeError):
        tl.max(tl.rand(2, 3), 1, out=(values, places))
    assert values.tolist() == [0, 0] and places.tolist() == [False, False]


def test_an_empty_out_is_resized():
    out = tl.empty(0)
    assert tl.add(tl.ones(3), 1, out=out) is out and out.tolist() == [2, 2, 2]
    out = tl.empty(0)
    assert tl.sum(tl.ones(2, 3), 0, out=out) is out and out.tolist() == [2, 2, 2]


@pytest.mark.parametrize("write", [
    lambda y: y.mul_(2), lambda y: y.zero_(), lambda y: y.copy_(tl.ones(3)), lambda y: y.round_(),
    lambda y: y.__setitem__(0, 5.0), lambda y: y.uniform_(), lambda y: y.normal_(),
    lambda y: y.bernoulli_(), lambda y: y.random_(5), lambda y: y.unsqueeze_(0),
    lambda y: y.clamp_(0, 1), lambda y: y[1:].add_(1), lambda y: y.tril_()])
def test_no_memory_for_the_new_history(write, monkeypatch):
    """What `retain_grad` hooks to the new node is hooked before anything is written."""
    class RetainGradHook(gradient_hooks.RetainGradHook):
        armed = False

        def __getattribute__(self, name):
            if name == "x" and RetainGradHook.armed:
                raise MemoryError
            return super().__getattribute__(name)

    monkeypatch.setattr(gradient_hooks, "RetainGradHook", RetainGradHook)
    x = tl.tensor([[1.5, 2.5, 3.5]], requires_grad=True)
    y = (x * 2)[0] if write.__code__.co_names != ("tril_",) else x * 2
    y = y * 1
    y.retain_grad()
    before = state(y)
    RetainGradHook.armed = True
    with pytest.raises(MemoryError):
        write(y)
    assert state(y) == before
    RetainGradHook.armed = False
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2]] and y.grad.reshape(-1).tolist() == [1, 1, 1]
