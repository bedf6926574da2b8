"""A step that is like the one before is planned once: whatever happens between, it does the same.

Two optimisers go through the same events; one of them plans each step anew.
"""

import copy

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from optim_cases import EVERY, OPTIONS, numbers

import tensorlib as tl
from tensorlib import optim
from tensorlib._core.apply.optimizer_step import prepare

SHAPES = (3, 5), (), (40,), (0, 2)


class Never(dict):
    """Keeps nothing."""

    def __setitem__(self, key, value):
        pass


def twins(kind, options, dtype="float32", shapes=SHAPES):
    """An optimiser, and the same that plans each step anew."""
    found = []
    for _ in range(2):
        params = [tl.tensor(numbers(*shape), dtype=getattr(tl, dtype)).requires_grad_()
                  for shape in shapes]
        groups = [{"params": params[:2], "lr": 0.02}, {"params": params[2:]}]
        found.append(kind(groups, **{"lr": 0.05, **options}))
    found[1]._prepared = Never()
    return found


def params_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def put_gradients(optimizer, seed):
    for p in params_of(optimizer):
        p.grad = tl.tensor(numbers(*p.shape, seed=seed), dtype=p.dtype)


def versions(optimizer):
    return [p._version for p in params_of(optimizer)] + [
        x._version for state in optimizer.state.values() for x in state.values()
        if isinstance(x, tl.Tensor)]


# ---- events --------------------------------------------------------------------------------------

def rate_halved(optimizer):
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] / 2


def rate_as_tensor(optimizer):
    optimizer.param_groups[0]["lr"] = tl.tensor(float(optimizer.param_groups[0]["lr"]))


def rate_written(optimizer):
    rate = optimizer.param_groups[0]["lr"]
    if isinstance(rate, tl.Tensor):
        rate.mul_(0.5)


def option_added(optimizer):
    optimizer.param_groups[0]["note"] = "another"


def other_formula(optimizer):
    optimizer.param_groups[0]["maximize"] = not optimizer.param_groups[0].get("maximize")


def gradient_missing(optimizer):
    params_of(optimizer)[0].grad = None


def no_gradients(optimizer):
    optimizer.zero_grad()


def gradient_with_gaps(optimizer):
    p = params_of(optimizer)[0]
    p.grad = tl.tensor(numbers(3, 10, seed=8), dtype=p.dtype)[:, ::2]


def gradient_in_other_order(optimizer):
    p = params_of(optimizer)[0]
    p.grad = tl.tensor(numbers(5, 3, seed=7), dtype=p.dtype).t()


def gradient_is_a_parameter(optimizer):
    p = params_of(optimizer)[0]
    p.grad = p.detach()


def gradient_is_a_state(optimizer):
    p = params_of(optimizer)[0]
    for x in optimizer.state[p].values():
        if isinstance(x, tl.Tensor) and x.shape == p.shape:
            p.grad = x
            break


def gradient_of_an_array(optimizer):
    p = params_of(optimizer)[0]
    p.grad = tl.from_numpy(numbers(3, 5, seed=6)).to(p.dtype)


def elsewhere(optimizer):
    p = params_of(optimizer)[0]
    p.data = p.detach().clone()


def with_gaps(optimizer):
    p = params_of(optimizer)[0]
    p.data = tl.stack([p.detach(), p.detach()], dim=-1)[..., 0]


def states_forgotten(optimizer):
    optimizer.state.clear()


def state_replaced(optimizer):
    p = params_of(optimizer)[0]
    for name, x in optimizer.state[p].items():
        if isinstance(x, tl.Tensor):
            optimizer.state[p][name] = x.clone()


def counted_again(optimizer):
    for state in optimizer.state.values():
        if isinstance(state.get("step"), tl.Tensor):
            state["step"].fill_(3)
            break


def loaded(optimizer):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def parameter_added(optimizer):
    group = optimizer.param_groups[0]
    group["params"].append(tl.tensor(numbers(4), dtype=group["params"][0].dtype).requires_grad_())


def parameters_swapped(optimizer):
    group = optimizer.param_groups[0]
    group["params"] = group["params"][::-1]


def groups_swapped(optimizer):
    optimizer.param_groups.reverse()


def parameter_dropped(optimizer):
    group = optimizer.param_groups[0]
    if len(group["params"]) > 1:
        group["params"].pop()


EVENTS = [
    rate_halved, rate_as_tensor, rate_written, option_added, other_formula, gradient_missing,
    no_gradients, gradient_with_gaps, gradient_in_other_order, gradient_is_a_parameter,
    gradient_is_a_state, gradient_of_an_array, elsewhere, with_gaps, states_forgotten,
    state_replaced, counted_again, loaded, parameter_added, parameters_swapped, groups_swapped,
    parameter_dropped,
]


def stepped(optimizer, event):
    """An event and a step; the error of the step, if it had one."""
    try:
        event(optimizer)
        optimizer.step()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error), str(error)
    return None


def assert_agree(one, other):
    for mine, theirs in zip(params_of(one), params_of(other), strict=True):
        np.testing.assert_array_equal(mine.detach().double().numpy(),
                                      theirs.detach().double().numpy())
    for group, twin in zip(one.param_groups, other.param_groups, strict=True):
        for p, q in zip(group["params"], twin["params"], strict=True):
            assert one.state[p].keys() == other.state[q].keys()
            for name, x in one.state[p].items():
                assert tl.equal(x, other.state[q][name]) if isinstance(x, tl.Tensor) else (
                    x == other.state[q][name]), name


# ---- laws ----------------------------------------------------------------------------------------

@given(st.sampled_from(OPTIONS), st.sampled_from(["float32", "float64", "bfloat16"]),
       st.lists(st.sampled_from(EVENTS), max_size=5), st.integers(1, 3))
def test_steps_are_those_that_are_planned_anew(case, dtype, events, between):
    one, other = twins(*case, dtype=dtype)
    with tl.no_grad():
        for seed, event in enumerate(events, 1):
            for step in range(between):
                for each in (one, other):
                    put_gradients(each, 10 * seed + step)
                    each.step()
            assert stepped(one, event) == stepped(other, event)
            assert_agree(one, other)


@each("event", EVENTS, ids=lambda event: event.__name__)
@each("kind, options", [
    (optim.SGD, {}), (optim.SGD, {"momentum": 0.9}), (optim.Adam, {})],
    ids=["sgd", "momentum", "adam"])
def test_any_event_between_steps(kind, options, event):
    one, other = twins(kind, options)
    with tl.no_grad():
        for step in range(4):
            for each in (one, other):
                put_gradients(each, step)
            if step < 2:
                one.step()
                other.step()
            else:
                assert stepped(one, event) == stepped(other, event)
            assert_agree(one, other)
            assert versions(one) == versions(other)


@EVERY
def test_a_second_step_is_prepared_where_it_can_be(kind, options):
    one, _ = twins(kind, options)
    put_gradients(one, 0)
    one.step()
    ready = [one._prepared.get(place) for place in range(2)]
    each = bool(one.scalars)                     # of which the numbers follow from more
    fused = one._update(one.param_groups[0]).fused is not None
    assert [x is not None for x in ready] == [fused and not each] * 2
    for prepared, group in zip(ready, one.param_groups, strict=True):
        if prepared is not None:
            put_gradients(one, 1)
            before = [p.detach().clone() for p in group["params"]]
            assert prepared.run(group, one.state, one.numbers) is True
            assert not all(map(tl.equal, before, group["params"]))


# ---- what can't be prepared ----------------------------------------------------------------------

def test_what_is_written_must_be_writable():
    array = np.ones(3, "float32")
    p = tl.from_numpy(array).requires_grad_()
    optimizer = optim.SGD([p], lr=0.5)
    p.grad = tl.ones(3)
    optimizer.step()
    assert array.tolist() == [0.5] * 3
    shown = np.ones(3, "float32")
    shown.flags.writeable = False
    p.data = tl.from_numpy(shown)
    with pytest.raises(RuntimeError, match="read-only"):
        optimizer.step()
    assert shown.tolist() == [1] * 3


def test_numbers_may_run_anything():
    """Code of the user's runs before the first write; what it changes is seen."""
    class Careless(optim.SGD):
        def numbers(self, group, step, state):
            found = super().numbers(group, step, state)
            if self.change is not None:
                change, self.change = self.change, None
                change()
            return found

    p = tl.ones(3, requires_grad=True)
    optimizer = Careless([p], lr=0.5)
    optimizer.change = None
    p.grad = tl.ones(3)
    optimizer.step()
    optimizer.change = optimizer.step                          # a step in a step
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    assert p.tolist() == [0] * 3
    optimizer.change = lambda: setattr(p, "data", tl.full((3,), 5.0))
    optimizer.param_groups[0]["lr"] = 0.75
    optimizer.step()
    assert p.tolist() == [4.25] * 3
    optimizer.change = lambda: setattr(p, "grad", None)
    optimizer.param_groups[0]["lr"] = 0.125
    optimizer.step()
    assert p.tolist() == [4.25] * 3


def test_steps_that_are_never_alike_are_not_prepared_for_ever():
    p = tl.ones(4, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)
    for _ in range(8):
        p.grad = tl.ones(8)[::2]                               # which has gaps
        optimizer.step()
    assert optimizer._prepared == {0: None} and optimizer._unused == {0: 3}
    assert p.tolist() == [-3.0] * 4


def test_gradients_in_memory_of_others_are_read_where_they_are():
    array = np.ones(4, "float32")
    p = tl.ones(4, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)
    p.grad = tl.from_numpy(array)
    for _ in range(3):
        optimizer.step()
    assert optimizer._prepared[0].used and p.tolist() == [-0.5] * 4
    both = np.arange(8, dtype="float32")
    p.data, p.grad = tl.from_numpy(both[:5])[:4], tl.from_numpy(both)[2:6]
    for expected in ([-1.0, -0.5, 0.0, 0.5], [-1.0, -0.75, -2.0, -2.0]):
        optimizer.step()
        assert p.tolist() == expected, expected


def test_copies_and_pickles_prepare_for_themselves():
    one, _ = twins(optim.Adam, {})
    put_gradients(one, 0)
    one.step()
    other = copy.deepcopy(one)
    assert other._prepared == {}
    before = [p.detach().clone() for p in params_of(one)]
    put_gradients(other, 1)
    other.step()
    assert all(map(tl.equal, before, params_of(one)))


def test_prepare_refuses_what_it_cannot_keep():
    p = tl.ones(3, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)
    group = optimizer.param_groups[0]
    update = optimizer._update(group)
    assert prepare(update, group, optimizer.state) is None     # nobody has a gradient
    p.grad = tl.ones(3)
    assert prepare(update, group, optimizer.state) is not None
    for params in ((p,), [p, "text"], [p] * 1025):
        assert prepare(update, {**group, "params": params}, optimizer.state) is None
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    for rate in (tl.tensor(0.5), np.float64(0.5), [0.5], (tl.tensor(0.5),), deep):
        assert prepare(update, {**group, "lr": rate}, optimizer.state) is None
    momentum = {**group, "momentum": 0.9}
    assert prepare(optimizer._update(momentum), momentum, {p: {}}) is None
    assert prepare(optimizer._update(momentum), momentum,
                   {p: {"momentum_buffer": tl.ones(3).double()}}) is None
