"""Checkpoints: functions that are run again in the backward sweep."""

import contextlib
import gc
import weakref
from functools import partial

import pytest
from tensors import leaf

import tensorlib as tl
from tensorlib.autograd import checkpoint
from tensorlib.testing import assert_close
from tensorlib.utils.checkpoint import (
    CheckpointPolicy, checkpoint_sequential, create_selective_checkpoint_contexts,
)


def layered(x, w):
    return ((x * w).tanh() * w).sin()


def test_a_checkpoint_gives_the_same_gradients():
    x, w = leaf(0.5, -1.0), leaf(2.0, 3.0)
    expected = tl.autograd.grad(layered(x, w).sum(), [x, w])
    checkpoint(layered, x, w, use_reentrant=False).sum().backward()
    assert_close([x.grad, w.grad], list(expected))
    checkpoint(lambda x: layered(x, w), x).sum().backward()      # w from the closure
    assert_close(w.grad, 2 * expected[1])


def test_a_checkpoint_keeps_no_values_and_runs_twice():
    runs, values = [], []

    def function(x):
        runs.append(1)
        hidden = x.exp()
        values.append(weakref.ref(hidden))
        return hidden.sin().cos()

    x = leaf(1.0)
    y = checkpoint(function, x)
    assert values[0]() is None
    y.sum().backward()
    assert len(runs) == 2


def test_a_checkpoint_repeats_its_random_numbers():
    def noisy(x):
        return x * tl.rand(100, dtype=tl.float64)

    x = tl.ones(100, dtype=tl.float64, requires_grad=True)
    tl.manual_seed(5)
    y = checkpoint(noisy, x)
    after = tl.rand(3)
    y.sum().backward()
    assert_close(x.grad, y.detach())
    following = tl.rand(3)
    tl.manual_seed(5)
    tl.rand(100, dtype=tl.float64)
    assert_close([after, following], [tl.rand(3), tl.rand(3)])     # the second run left no trace


def test_checkpoints_nest():
    runs = []

    def inner(x):
        runs.append("inner")
        return x.exp().sin()

    def outer(x):
        runs.append("outer")
        return checkpoint(inner, x.tanh()).cos() * checkpoint(inner, x)

    x = leaf(0.5, 1.0)
    (expected,) = tl.autograd.grad((x.tanh().exp().sin().cos() * x.exp().sin()).sum(), x)
    checkpoint(outer, x).sum().backward()
    assert_close(x.grad, expected)
    assert runs.count("outer") == 2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_checkpoints_are_differentiated_to_any_order(order):
    x, w = leaf(0.5), leaf(2.0)
    plain, kept = layered(x, w).sum(), checkpoint(layered, x, w).sum()
    for _ in range(order):
        (plain,) = tl.autograd.grad(plain, x, create_graph=True)
        (kept,) = tl.autograd.grad(kept, x, create_graph=True)
        assert_close(kept, plain)
        plain, kept = plain.sum(), kept.sum()


def test_a_checkpoint_kept_for_a_second_sweep():
    x = leaf(0.5)
    y = checkpoint(lambda x: x.exp().sin(), x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_close(x.grad, 2 * tl.autograd.grad(x.exp().sin().sum(), x)[0])


def test_a_checkpoint_of_another_second_run_is_refused():
    runs = []

    def longer(x):
        runs.append(1)
        return x.exp().sin() if len(runs) > 1 else x.exp()

    def other(x):
        runs.append(1)
        return x.float().exp() if len(runs) > 1 else x.exp()

    for function in (longer, other):
        runs.clear()
        y = checkpoint(function, leaf(1.0))
        with pytest.raises(RuntimeError, match="checkpoint: .*(different|metadata)"):
            y.sum().backward()


def test_pytorchs_options_of_checkpoints_change_nothing():
    x = leaf(1.0)
    checkpoint(lambda x: x.exp(), x, determinism_check="none", debug=True,
               early_stop=False).sum().backward()
    assert_close(x.grad, x.detach().exp())
    with pytest.raises(ValueError, match="determinism_check is 'default' or 'none', got 'some'"):
        checkpoint(lambda x: x.exp(), x, determinism_check="some")


def test_the_runs_of_a_checkpoint_are_in_the_contexts_that_it_is_given():
    told = []

    @contextlib.contextmanager
    def context(name):
        told.append(name)
        yield
        told.append(f"after {name}")

    y = checkpoint(lambda x: x.exp(), leaf(1.0), context_fn=lambda: (context("1"), context("2")))
    assert told == ["1", "after 1"]
    y.sum().backward()
    assert told[2:] == ["2", "after 2"]
    with pytest.raises(ValueError, match="context_fn needs use_reentrant=False"):
        checkpoint(lambda x: x, leaf(1.0), use_reentrant=True, context_fn=tuple)


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_functions_in_a_row_are_checkpointed_in_parts(segments):
    runs = []

    def counted(function):
        return lambda x: (runs.append(1), function(x))[1]

    functions = [tl.sin, tl.exp, tl.tanh, tl.cos, tl.sigmoid]
    x = leaf(0.5, -1.0)
    (expected,) = tl.autograd.grad(tl.sigmoid(x.sin().exp().tanh().cos()).sum(), x)
    y = checkpoint_sequential(map(counted, functions), segments, x, use_reentrant=False)
    (found,) = tl.autograd.grad(y.sum(), x)
    assert_close(found, expected)
    assert len(runs) == 5 + 5 // segments * (segments - 1)


def test_functions_that_cannot_be_cut_into_parts():
    for parts in (0, -1, 3):
        with pytest.raises(ValueError, match=f"2 functions can't be cut into {parts} parts"):
            checkpoint_sequential([tl.sin, tl.cos], parts, leaf(1.0))
    with pytest.raises(TypeError, match="expects functions in a row, got int"):
        checkpoint_sequential(3, 1, leaf(1.0))


def test_an_exception_in_a_checkpoint_leaves_the_modes_as_they_were():
    def fail(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        checkpoint(fail, leaf(1.0))
    x = leaf(1.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()                           # values are saved in the ordinary way again


def test_checkpoint_is_where_pytorch_has_it():
    assert tl.utils.checkpoint.checkpoint is checkpoint
    assert tl.utils.checkpoint.checkpoint_sequential is checkpoint_sequential


def test_functions_by_which_libraries_compute_again_themselves():
    module = tl.utils.checkpoint
    x, kept = leaf(1.0), tl.ones(1)
    devices, states = module.get_device_states(x, 3)
    assert devices == states == [] and module.set_device_states(devices, states) is None
    with pytest.raises(RuntimeError, match="no devices but the CPU"):
        module.set_device_states([0], [tl.get_rng_state()])
    inside, plain, number = module.detach_variable((x * 2, kept, 3))
    assert inside.is_leaf and inside.requires_grad and not plain.requires_grad and number == 3
    with pytest.raises(RuntimeError, match="expected a tuple, got list"):
        module.detach_variable([x])
    module.check_backward_validity([x, kept, 3])
    with pytest.warns(UserWarning, match="Gradients will be None"):
        module.check_backward_validity([kept])


def test_a_checkpoint_is_freed_with_its_graph():
    x = leaf(1.0)
    held = tl.ones(1, dtype=tl.float64)
    dead = weakref.ref(held)
    y = checkpoint(lambda x, held: (x * held).exp(), x, held)
    del held, y
    gc.collect()
    assert dead() is None


@pytest.mark.parametrize("policy", [
    [tl.matmul], lambda context, op, *args: CheckpointPolicy.MUST_SAVE])
def test_all_of_a_selective_checkpoint_is_computed_again(policy):
    calls, x = [], tl.ones(2, 2, requires_grad=True)

    def f(x):
        calls.append(1)
        return (x @ x).exp()

    contexts = partial(create_selective_checkpoint_contexts, policy)
    checkpoint(f, x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert len(calls) == 2
    want = tl.ones(2, 2, requires_grad=True)
    f(want).sum().backward()
    assert tl.equal(x.grad, want.grad)
    with pytest.raises(TypeError, match="a function or a list of operations, got int"):
        create_selective_checkpoint_contexts(3)
