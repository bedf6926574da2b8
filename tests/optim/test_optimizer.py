"""What all optimisers share: groups, states as dicts, hooks, copies; and what is refused."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import optim
from tensorlib.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)

KINDS = [kind for kind in vars(optim).values() if isinstance(kind, type) and kind
         is not optim.Optimizer]
EVERY = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def parameters(n=2):
    rng = np.random.default_rng(0)
    return [tl.tensor(rng.normal(size=(2, 3)), dtype=tl.float32).requires_grad_()
            for _ in range(n)]


def give_rows(optimizer):
    """SparseAdam takes sparse gradients alone."""
    if type(optimizer) is optim.SparseAdam:
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = p.grad.to_sparse(1)


def train(optimizer, steps=3):
    """Steps towards one; the same from the same state."""
    def closure():
        optimizer.zero_grad()
        loss = sum((p * p * p - 3 * p).square().sum() for group in optimizer.param_groups
                   for p in group["params"])
        loss.backward()
        give_rows(optimizer)
        return loss
    return [optimizer.step(closure).item() for _ in range(steps)]


def values(optimizer):
    return [p.tolist() for group in optimizer.param_groups for p in group["params"]]


# ---- making one ----------------------------------------------------------------------------------

@EVERY
def test_a_gradient_that_is_nan_is_not_hidden(kind):
    p = tl.ones(2, 2, requires_grad=True)

    optimizer = kind([p])

    def closure():
        p.grad = tl.full((2, 2), float("nan"))
        give_rows(optimizer)
        return (p * 0).sum()

    optimizer.step(closure)
    assert p.isnan().all() or kind is optim.Rprop        # which goes by signs: NaN has none


@EVERY
def test_parameters_that_are_refused(kind):
    p = tl.ones(2, 2, requires_grad=True)
    for params, error, text in [
            ([], ValueError, "empty parameter list"),
            (iter([]), ValueError, "empty parameter list"),
            (p, TypeError, "should be an iterable of Tensors or dicts"),
            ([p * 2], ValueError, "non-leaf"),
            ([p, 3], TypeError, "can only optimize Tensors, but one of the params is int"),
            ([{"params": {p}}], TypeError, "ordered collections"),
            ([("a", p), p], ValueError, "with/without names"),
            ([p, ("a", p)], ValueError, "with/without names"),
            ([{"lr": 1.0}], KeyError, "params"),
            (3, TypeError, "should be an iterable of Tensors or dicts, but got int"),
            (None, TypeError, "should be an iterable of Tensors or dicts, but got NoneType")]:
        with pytest.raises(error, match=text):
            kind(params)


@EVERY
@each("lr", [-1.0, float("nan"), tl.tensor(-1.0), tl.tensor([1.0, 2.0])])
def test_rates_that_are_refused(kind, lr):
    with pytest.raises(ValueError, match="[Ll]earning rate|1-element"):
        kind(parameters(), lr=lr)


@EVERY
@each("lr", ["fast", None, [0.1]])
def test_rates_that_are_no_numbers(kind, lr):
    with pytest.raises(TypeError, match="lr must be a number"):
        kind(parameters(), lr=lr)


@each("kind, options, text", [
    (optim.SGD, {"momentum": -1}, "momentum"), (optim.SGD, {"weight_decay": -1}, "weight_decay"),
    (optim.SGD, {"nesterov": True}, "Nesterov"),
    (optim.SGD, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "Nesterov"),
    *[(kind, {"betas": betas}, f"index {i}") for kind in (
        optim.Adam, optim.AdamW, optim.NAdam, optim.RAdam, optim.Adamax)
      for betas, i in (((1.0, 0.9), 0), ((0.9, -0.1), 1))],
    *[(kind, {"eps": -1}, "eps") for kind in (optim.Adam, optim.Adagrad, optim.RMSprop)],
    (optim.Adam, {"betas": (0.9,)}, "two numbers, got 1"),
    (optim.Adadelta, {"rho": 1.5}, "rho"), (optim.RMSprop, {"alpha": -1}, "alpha"),
    (optim.Rprop, {"etas": (0.5, 0.9)}, "eta"), (optim.Adafactor, {"d": 0.5}, "d should"),
    (optim.Adafactor, {"beta2_decay": 0.5}, "beta2_decay"),
    (optim.Muon, {"adjust_lr_fn": "other"}, "not supported"),
    (optim.NAdam, {"momentum_decay": -1}, "momentum_decay"),
    (optim.Adagrad, {"lr_decay": -1}, "lr_decay")])
def test_options_that_are_refused(kind, options, text):
    with pytest.raises(ValueError, match=text):
        kind(parameters(), **options)


def test_what_else_is_refused():
    for options in ({"fused": True, "foreach": True}, {"fused": True, "differentiable": True}):
        with pytest.raises(RuntimeError, match="`fused`"):
            optim.Adam(parameters(), **options)
    optim.Adam(parameters(), fused=True, capturable=True)
    with pytest.raises(TypeError, match="betas must be two numbers, not float"):
        optim.Adam(parameters(), betas=0.9)
    with pytest.raises(ValueError, match="2D"):
        optim.Muon([tl.ones(3, requires_grad=True)])
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": parameters()}, {"params": parameters()}])
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        train(optim.LBFGS(parameters(), line_search_fn="other"))
    with pytest.raises(NotImplementedError):
        optim.Optimizer(parameters(), {}).step()


# ---- groups --------------------------------------------------------------------------------------

def test_groups_have_their_own_options():
    p, q = parameters()
    optimizer = optim.SGD([{"params": [p], "lr": 1.0}, {"params": q}], lr=0.5)
    before = values(optimizer)
    p.grad = q.grad = tl.ones(2, 3)
    optimizer.step()
    np.testing.assert_allclose(np.array(before) - np.array(values(optimizer)),
                               np.array([1.0, 0.5])[:, None, None] * np.ones((2, 2, 3)), rtol=1e-6)
    assert optimizer.defaults["lr"] == 0.5


def test_groups_are_added_and_checked():
    p, q = parameters()
    optimizer = optim.Adam([p])
    optimizer.add_param_group({"params": q, "lr": 0.3})
    assert optimizer.param_groups[1]["betas"] == (0.9, 0.999)
    for group, error, text in [
            ({"params": [p]}, ValueError, "more than one parameter group"),
            ([q], TypeError, "must be a dict"),
            ({"params": [("name", tl.ones(1, requires_grad=True))]}, ValueError, "names")]:
        with pytest.raises(error, match=text):
            optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 2
    train(optimizer)


def test_named_parameters_keep_their_names():
    p, q = parameters()
    optimizer = optim.SGD([("first", p), ("second", q)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["first", "second"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    assert optimizer.param_groups[0]["params"][0] is p


def test_a_required_option():
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        optim.Optimizer(parameters(), {"lr": required})


def test_gradients_are_cleared():
    p, q = parameters()
    optimizer = optim.SGD([p, q])
    p.grad = tl.ones(2, 3)
    kept = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is kept and kept.tolist() == tl.zeros(2, 3).tolist() and q.grad is None
    p.grad = (q * 2).sum() * tl.ones(2, 3)       # a gradient with a graph is parted from it
    optimizer.zero_grad(set_to_none=False)
    assert not p.grad.requires_grad and not p.grad.any()
    optimizer.zero_grad()
    assert p.grad is None


def test_the_text_of_an_optimizer():
    text = repr(optim.SGD(parameters(), lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text
    text = repr(optim.SGD([{"params": [x]} for x in parameters()], lr=0.5))
    assert "\n\nParameter Group 1\n" in text and "\n\nParameter Group 0" not in text


# ---- states --------------------------------------------------------------------------------------

@EVERY
def test_going_on_from_a_state_gives_the_same_bits(kind):
    params = parameters()
    optimizer = kind(params)
    train(optimizer)
    resumed = kind([p.detach().clone().requires_grad_() for p in params])
    buffer = io.BytesIO()
    pickle.dump(optimizer.state_dict(), buffer)
    buffer.seek(0)
    resumed.load_state_dict(pickle.load(buffer))
    assert train(resumed) == train(optimizer)
    assert values(resumed) == values(optimizer)


@EVERY
@each("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
      ids=["deepcopy", "pickle"])
def test_copies_go_on_alike_and_apart(kind, way):
    optimizer = kind(parameters())
    train(optimizer)
    copied = way(optimizer)
    assert copied.param_groups[0]["params"][0] is not optimizer.param_groups[0]["params"][0]
    before = values(optimizer)
    losses = train(copied)
    assert values(optimizer) == before
    assert train(optimizer) == losses and values(copied) == values(optimizer)


def test_a_loaded_state_is_a_copy():
    one, other = (optim.Adam(parameters()) for _ in range(2))
    train(one)
    other.load_state_dict(one.state_dict())
    before = [x.tolist() for x in one.state[one.param_groups[0]["params"][0]].values()]
    train(other)
    assert [x.tolist() for x in one.state[one.param_groups[0]["params"][0]].values()] == before


def test_a_state_takes_on_the_type_of_its_parameter():
    single = optim.Adam(parameters())
    train(single)
    double = optim.Adam([p.detach().double().requires_grad_() for p in parameters()])
    double.load_state_dict(single.state_dict())
    state = double.state[double.param_groups[0]["params"][0]]
    assert state["exp_avg"].dtype is tl.float64 and state["step"].dtype is tl.float32
    train(double)


def test_counts_of_old_checkpoints_are_numbers():
    optimizer = optim.Adam(parameters())
    train(optimizer, 2)
    saved = optimizer.state_dict()
    saved["state"] = {i: {**state, "step": 2} for i, state in saved["state"].items()}
    del saved["param_groups"][0]["maximize"]
    resumed = optim.Adam([p.detach().clone().requires_grad_()
                          for p in optimizer.param_groups[0]["params"]])
    resumed.load_state_dict(saved)
    assert train(resumed) == train(optimizer)


def test_states_that_do_not_fit_are_refused():
    optimizer = optim.Adam(parameters())
    train(optimizer)
    before = optimizer.state_dict()
    two = optim.Adam([{"params": parameters(1)}, {"params": parameters(1)}]).state_dict()
    for saved, error, text in [
            (two, ValueError, "different number of parameter groups"),
            (optim.Adam(parameters(3)).state_dict(), ValueError, "group 0 has 3 parameters"),
            ({"state": {}}, KeyError, "param_groups"), (3, TypeError, "expected a dict"),
            ({"param_groups": before["param_groups"]}, KeyError, "state")]:
        with pytest.raises(error, match=text):
            optimizer.load_state_dict(saved)
    assert str(optimizer.state_dict()) == str(before)


def test_an_optimizer_of_another_kind_can_be_loaded_from_and_does_not_crash():
    optimizer = optim.SGD(parameters(), momentum=0.9)
    train(optimizer)
    other = optim.RMSprop(parameters(), momentum=0.9)
    other.load_state_dict(optimizer.state_dict())
    other.param_groups[0].update(alpha=0.9, eps=1e-8, centered=False)
    params = other.param_groups[0]["params"]
    before = [p.detach().clone() for p in params]
    train(other)
    assert all(p.isfinite().all() and not tl.equal(p, old) for p, old in zip(params, before))


# ---- hooks ---------------------------------------------------------------------------------------

def test_hooks_of_steps():
    p, q = parameters()
    optimizer = optim.SGD([p, q], lr=0.1)
    called = []
    handles = [
        optimizer.register_step_pre_hook(lambda opt, args, kwargs: called.append(("before", opt))),
        optimizer.register_step_post_hook(lambda opt, args, kwargs: called.append(("after", opt))),
        register_optimizer_step_pre_hook(lambda opt, args, kwargs: called.append(("all", opt))),
        register_optimizer_step_post_hook(lambda opt, args, kwargs: called.append(("end", opt)))]
    optimizer.step()
    assert [name for name, _ in called] == ["all", "before", "after", "end"]
    assert all(opt is optimizer for _, opt in called)
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(called) == 4


def test_a_hook_may_change_the_arguments():
    optimizer = optim.SGD(parameters(), lr=0.1)
    given = []
    optimizer.register_step_post_hook(lambda opt, args, kwargs: given.append((args, kwargs)))
    with optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((*args, lambda: 7), {})):
        assert optimizer.step() == 7
    optimizer.step(closure=None)
    assert given[0][0][0] is optimizer and given[0][0][1]() == 7
    assert given[1] == ((optimizer,), {"closure": None})
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_run_once_where_a_step_calls_another():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    optimizer = Twice(parameters(), lr=0.1)
    called = []
    optimizer.register_step_post_hook(lambda *args: called.append(1))
    optimizer.step()
    assert called == [1]


def test_hooks_of_states():
    optimizer = optim.SGD(parameters(), lr=0.1)
    called = []
    optimizer.register_state_dict_pre_hook(lambda opt: called.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: called.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, found: {**found, "more": 1})
    saved = optimizer.state_dict()
    assert called == ["first", "second"] and saved["more"] == 1

    def changed(opt, given):
        given["param_groups"][0]["lr"] = 0.7
        return given

    optimizer.register_load_state_dict_pre_hook(changed)
    optimizer.register_load_state_dict_post_hook(lambda opt: called.append("loaded"))
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.7 and called[-1] == "loaded"


# ---- by users ------------------------------------------------------------------------------------

def test_an_optimizer_written_for_pytorch():
    class Lookahead(optim.Optimizer):
        def __init__(self, params, lr=required, decay=0.5):
            super().__init__(params, dict(lr=lr, decay=decay))

        @tl.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with tl.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["slow"] = tl.clone(p.data)
                    p.data.add_(p.grad.data, alpha=-group["lr"])
                    state["slow"].lerp_(p.data, group["decay"])
            return loss

    optimizer = Lookahead(parameters(), lr=0.01)
    losses = train(optimizer, 20)
    assert losses[-1] < losses[0]
    resumed = Lookahead(parameters(), lr=0.5)
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.param_groups[0]["lr"] == 0.01


def test_names_where_scripts_look_for_them():
    for module, name in [("adam", "Adam"), ("adamw", "AdamW"), ("sgd", "SGD"), ("lbfgs", "LBFGS"),
                         ("rmsprop", "RMSprop"), ("optimizer", "Optimizer"), ("nadam", "NAdam"),
                         ("radam", "RAdam"), ("adamax", "Adamax"), ("adagrad", "Adagrad"),
                         ("adadelta", "Adadelta"), ("rprop", "Rprop"), ("asgd", "ASGD")]:
        assert getattr(getattr(optim, module), name) is getattr(optim, name)
    assert issubclass(optim.lr_scheduler._LRScheduler, optim.lr_scheduler.LRScheduler)


@EVERY
def test_training_gets_somewhere(kind):
    """Each of them comes down a bowl."""
    rates = {"Adadelta": 1.0, "LBFGS": 1.0, "ASGD": 0.01, "SGD": 0.01, "Muon": 0.05}
    p = tl.full((4, 4), 0.4, requires_grad=True)
    optimizer = kind([p], lr=rates.get(kind.__name__, 0.05))

    def closure():
        optimizer.zero_grad()
        loss = (p - 0.6).square().sum() * 10
        loss.backward()
        give_rows(optimizer)
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = [optimizer.step(closure).item() for _ in range(60)]
    assert losses[-1] < losses[0] * 0.9


def test_adagrads_rate_falls_from_the_second_step_on():
    """By 1 + lr_decay for each step before."""
    p = tl.zeros(1, requires_grad=True)
    optimizer, lengths = optim.Adagrad([p], lr=1.0, lr_decay=0.5, eps=0), []
    for _ in range(4):
        before, p.grad = p.item(), tl.ones(1)
        optimizer.step()
        lengths.append(before - p.item())
    assert lengths == pytest.approx([1 / (n**0.5 * (1 + 0.5 * (n - 1))) for n in range(1, 5)])


@each("size", [1, 3])
def test_lbfgs_keeps_as_many_changes_as_it_is_told(size):
    params = parameters(1)
    optimizer = optim.LBFGS(params, lr=0.1, max_iter=4, history_size=size)
    train(optimizer)
    state = optimizer.state[params[0]]
    assert [len(state[name]) for name in ("old_dirs", "old_stps", "ro")] == [size] * 3


@each("use_buffers", [False, True])
def test_an_averaged_model_has_the_last_buffers_or_their_mean(use_buffers):
    model = tl.nn.BatchNorm1d(2)
    averaged = optim.swa_utils.AveragedModel(model, use_buffers=use_buffers)
    for value in (1.0, 3.0, 8.0):
        model.running_mean.fill_(value)
        with tl.no_grad():
            model.weight.fill_(value)
        averaged.update_parameters(model)
    assert averaged.module.weight.tolist() == [4, 4] and averaged.n_averaged == 3
    assert averaged.module.running_mean.tolist() == ([4, 4] if use_buffers else [8, 8])
    assert model.running_mean.tolist() == [8, 8]


@each("state", [[1], 3, None, {0: 3}, {0: [1]}, {0: None}])
def test_a_state_that_is_no_dict_of_dicts_is_refused(state):
    """By a TypeError, before anything has changed."""
    for make in (tl.optim.Adam, tl.optim.LBFGS, tl.optim.Adagrad):
        optimizer = make([tl.ones(2, requires_grad=True)], lr=0.1)
        before = str(optimizer.state_dict())
        with pytest.raises(TypeError, match="load_state_dict: "):
            optimizer.load_state_dict({"state": state, "param_groups": [{"params": [0]}]})
        assert str(optimizer.state_dict()) == before


def test_one_around_another_needs_no_start_of_its_own():
    class Every(tl.optim.Optimizer):
        def __init__(self, inner):
            self.inner, self.param_groups = inner, inner.param_groups

        def step(self, closure=None):
            return self.inner.step(closure)

    x = tl.tensor([1.0], requires_grad=True)
    x.grad = tl.tensor([2.0])
    seen = []
    handle = register_optimizer_step_post_hook(lambda optimizer, *args: seen.append(optimizer))
    try:
        outer = Every(tl.optim.SGD([x], lr=0.5))
        outer.step()
    finally:
        handle.remove()
    assert x.item() == 0.0 and seen == [outer.inner, outer]
