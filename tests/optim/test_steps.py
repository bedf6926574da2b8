"""What a step respects: versions, shared memory, rates; no state that users make does harm."""

import threading

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from optim_cases import OPTIONS, results

import tensorlib as tl
from tensorlib import optim
from tensorlib.testing import assert_close


def stepped(kind=optim.Adam, **options):
    p = tl.tensor([1.0, 2.0], requires_grad=True)
    p.grad = tl.ones(2)
    optimizer = kind([p], lr=0.1, **options)
    optimizer.step()
    return p, optimizer


def test_versions_are_counted():
    p = tl.tensor([1.0, 2.0], requires_grad=True)
    loss = (p * p).sum()
    p.grad = tl.ones(2)
    before = p._version
    optimizer = optim.Adam([p])
    optimizer.step()
    assert p._version == before + 1
    assert optimizer.state[p]["exp_avg"]._version >= 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation|in place|in-place"):
        loss.backward()


def test_parameters_without_a_gradient_stay():
    p, q = (tl.ones(2, requires_grad=True) for _ in range(2))
    p.grad = tl.ones(2)
    optimizer = optim.Adam([p, q])
    optimizer.step()
    assert q not in optimizer.state and q.tolist() == [1, 1] and p.tolist() != [1, 1]


def test_the_gradient_is_left_as_it_was():
    for kind, options in OPTIONS:
        p = tl.tensor([1.0, 2.0], requires_grad=True)
        p.grad = g = tl.tensor([0.5, -3.0])
        kind([p], **options).step()
        assert p.grad is g and g.tolist() == [0.5, -3.0], kind


def test_views_show_the_new_values():
    x = tl.arange(6.0).reshape(2, 3)
    p = x[1].detach().requires_grad_()
    p.grad = tl.ones(3)
    optim.SGD([p], lr=1.0).step()
    assert x.tolist() == [[0, 1, 2], [2, 3, 4]]


def test_a_gradient_in_the_memory_of_the_parameter():
    for kind, options in OPTIONS:
        apart, shared = (tl.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
        apart.grad, shared.grad = apart.detach().clone(), shared.detach()
        for p in (apart, shared):
            kind([p], **options).step()
        assert apart.tolist() == shared.tolist(), kind


def test_a_gradient_that_overlaps_the_parameter():
    room = tl.arange(100000.0)
    p = room[:90000].detach().requires_grad_()
    p.grad = room[5:90005].detach()
    expected = np.arange(90000.0) - (np.arange(90000.0) + 5)
    optim.SGD([p], lr=1.0).step()
    np.testing.assert_array_equal(p.detach().numpy(), expected)


def test_an_expanded_gradient():
    p = tl.zeros(3, 4, requires_grad=True)
    p.grad = tl.tensor([[1.0], [2.0], [3.0]]).expand(3, 4)
    optim.SGD([p], lr=1.0).step()
    assert p[:, 3].tolist() == [-1, -2, -3]


def test_a_parameter_given_twice_is_updated_twice():
    p = tl.zeros(1, requires_grad=True)
    p.grad = tl.ones(1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([p, p], lr=1.0)
    optimizer.step()
    assert p.item() == -2


def test_rates_may_be_tensors():
    for kind in (optim.SGD, optim.Adam, optim.RMSprop, optim.NAdam, optim.ASGD, optim.Rprop):
        values = []
        for lr in (0.25, tl.tensor(0.25), tl.tensor([0.25])):
            p = tl.tensor([1.0, 2.0], requires_grad=True)
            p.grad = tl.ones(2)
            kind([p], lr=lr).step()
            values.append(p.tolist())
        assert values[0] == values[1] == values[2], kind


def test_a_step_that_is_differentiated():
    """With `differentiable=True` a step is recorded, so a rate can be learnt."""
    for kind in (optim.SGD, optim.Adam, optim.RMSprop, optim.Adagrad):
        lr = tl.tensor(0.1, dtype=tl.float64, requires_grad=True)

        def moved(lr):
            p = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True).clone()
            p.grad = tl.tensor([3.0, 4.0], dtype=tl.float64)
            kind([p], lr=lr, differentiable=True).step()
            return p.sum()

        moved(lr).backward()
        with tl.no_grad():
            slope = (moved(tl.tensor(0.1001, dtype=tl.float64)) - moved(
                tl.tensor(0.0999, dtype=tl.float64))) / 2e-4
        assert_close(lr.grad.numpy(), slope.numpy(), rtol=1e-6, atol=1e-8)


def test_two_threads_step_at_once():
    params = [tl.ones(100000, requires_grad=True) for _ in range(2)]
    optimizers = [optim.Adam([p], lr=0.01) for p in params]
    for p in params:
        p.grad = tl.ones(100000)

    def run(optimizer):
        for _ in range(5):
            optimizer.step()

    threads = [threading.Thread(target=run, args=(thread,)) for thread in optimizers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run(alone := optim.Adam([p := tl.ones(100000, requires_grad=True)], lr=0.01))
    p.grad = tl.ones(100000)
    run(alone)
    for param in params:
        np.testing.assert_array_equal(param.detach().numpy(), p.detach().numpy())


# ---- what does not fit ---------------------------------------------------------------------------

NOT_STATES = [
    None, 3.0, "text", [1.0, 2.0], tl.ones(3), tl.ones(2, 1), tl.ones(()), tl.ones(2).double(),
    tl.ones(2).half(), tl.ones(2).long(), tl.ones(2).bool(), tl.zeros(1).expand(2), np.ones(2),
]


@pytest.mark.parametrize("name", ["exp_avg", "exp_avg_sq", "step"])
def test_a_state_that_does_not_fit_is_refused(name):
    for value in NOT_STATES:
        if value is None or (name == "step" and value is NOT_STATES[6]):
            continue
        p, optimizer = stepped()
        optimizer.state[p][name] = value
        before = p.tolist()
        with pytest.raises((TypeError, RuntimeError), match="Adam"):
            optimizer.step()
        assert p.tolist() == before


def test_what_is_missing_in_a_state_is_made_anew():
    p, optimizer = stepped()
    optimizer.state[p]["exp_avg"] = None
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 2 and optimizer.state[p]["exp_avg"].shape == (2,)


def test_states_that_share_memory_are_refused():
    p, optimizer = stepped()
    optimizer.state[p]["exp_avg_sq"] = optimizer.state[p]["exp_avg"]
    with pytest.raises(RuntimeError, match="shares memory"):
        optimizer.step()
    p, optimizer = stepped()
    optimizer.state[p]["exp_avg"] = p.detach()
    with pytest.raises(RuntimeError, match="shares memory"):
        optimizer.step()


def test_an_error_leaves_all_parameters_as_they_were():
    params = [tl.ones(2, requires_grad=True) for _ in range(3)]
    for p in params:
        p.grad = tl.ones(2)
    optimizer = optim.Adam(params)
    optimizer.step()
    before = [x.tolist() for x in results(optimizer)]
    optimizer.state[params[2]]["exp_avg"] = tl.ones(5)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()
    optimizer.state[params[2]]["exp_avg"] = tl.tensor([0.1, 0.1])
    assert [x.tolist() for x in results(optimizer)[:8]] == before[:8]


def test_what_can_not_be_written_is_refused():
    frozen = np.ones(2, dtype="float32")
    frozen.flags.writeable = False
    p = tl.from_numpy(frozen).requires_grad_()
    p.grad = tl.ones(2)
    with pytest.raises(RuntimeError, match="read-only"):
        optim.SGD([p]).step()
    p = tl.zeros(1).expand(3).detach().requires_grad_()
    p.grad = tl.ones(3)
    with pytest.raises(RuntimeError, match="expanded"):
        optim.SGD([p]).step()
    with tl.inference_mode():
        p = tl.ones(2)
        p.grad = tl.ones(2)
    with pytest.raises(RuntimeError, match="inference"):
        optim.SGD([p]).step()


def test_integers_are_no_parameters():
    p = tl.tensor([1, 2])
    p.grad = tl.tensor([1, 2])
    with pytest.raises(TypeError, match="floating-point"):
        optim.SGD([p]).step()


def test_changes_while_a_step_is_prepared():
    """Rates whose conversion runs code that gives the parameter other memory."""
    p = tl.ones(1000, requires_grad=True)
    p.grad = tl.ones(1000)

    class Rate:
        def __float__(self):
            p.data = tl.zeros(3)
            return 0.5

    optimizer = optim.SGD([p], lr=0.1)
    optimizer.param_groups[0]["lr"] = Rate()
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()


@each("lr", ["fast", None, [0.1], object()])
def test_rates_that_are_no_numbers(lr):
    p, optimizer = stepped(optim.SGD)
    optimizer.param_groups[0]["lr"] = lr
    before = p.tolist()
    with pytest.raises(TypeError):
        optimizer.step()
    assert p.tolist() == before


@pytest.mark.parametrize("kind", [optim.NAdam, optim.ASGD])
def test_numbers_that_a_state_lacks_begin_again(kind):
    p, other = (tl.ones(2, requires_grad=True) for _ in range(2))
    p.grad = other.grad = tl.ones(2)
    optimizer, fresh = kind([p]), kind([other])
    optimizer.step()
    fresh.step()
    for name in kind.scalars:
        del optimizer.state[p][name]
    optimizer.step()
    assert {*optimizer.state[p]} == {*fresh.state[other]}
    assert p.isfinite().all()


PARTS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from(["float16", "bfloat16", "float32", "float64", "int64", "bool"]).flatmap(
        lambda dtype: st.lists(st.integers(0, 4), max_size=3).map(
            lambda shape: tl.ones(shape, dtype=getattr(tl, dtype)))))


@given(st.dictionaries(
    st.sampled_from(["step", "exp_avg", "exp_avg_sq", "momentum_buffer", "mu_product"]), PARTS),
       st.sampled_from([optim.Adam, optim.SGD, optim.NAdam]))
def test_any_state_is_taken_or_refused(state, kind):
    p = tl.ones(2, requires_grad=True)
    p.grad = tl.ones(2)
    optimizer = kind([p], **({"momentum": 0.9} if kind is optim.SGD else {}))
    optimizer.state[p] = dict(state)
    try:
        optimizer.step()
    except (TypeError, RuntimeError, ValueError, ZeroDivisionError, OverflowError):
        pass
    assert p.shape == (2,)
