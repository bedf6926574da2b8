"""`optim` beside PyTorch's: trajectories, rates, states in both directions, and types of errors."""

import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each
from peer import tensor

import tensorlib as tl
import tensorlib.optim.swa_utils
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")

BOTH = (tl, torch)

# Options of each optimiser, all its branches among them.
OPTIONS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.3}, {"weight_decay": 0.1},
            {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}],
    "Adam": [{}, {"amsgrad": True}, {"weight_decay": 0.1}, {"betas": (0.5, 0.7), "eps": 1e-3},
             {"maximize": True, "weight_decay": 0.1, "amsgrad": True},
             {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "AdamW": [{}, {"weight_decay": 0.3, "amsgrad": True}, {"weight_decay": 0}],
    "NAdam": [{}, {"weight_decay": 0.1, "momentum_decay": 0.1},
              {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}],
    "RAdam": [{}, {"weight_decay": 0.1}, {"betas": (0.8, 0.9)},
              {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}],
    "Adamax": [{}, {"weight_decay": 0.1, "maximize": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
                {"maximize": True}],
    "Adadelta": [{}, {"rho": 0.5, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}],
    "RMSprop": [{}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"centered": True},
                {"centered": True, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}],
    "Rprop": [{}, {"etas": (0.4, 1.3), "step_sizes": (1e-3, 0.02), "maximize": True}],
    "ASGD": [{}, {"t0": 3, "lambd": 0.01, "alpha": 0.5, "weight_decay": 0.1, "maximize": True}],
    "Adafactor": [{}, {"weight_decay": 0.1, "d": 2.0, "eps": (1e-4, 0.1), "maximize": True}],
    "Muon": [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
             {"ns_steps": 3, "momentum": 0.5}],
    "LBFGS": [{}, {"line_search_fn": "strong_wolfe"},
              {"history_size": 2, "max_iter": 7, "lr": 0.3}],
}
EVERY = pytest.mark.parametrize("name", OPTIONS)
CASES = [(name, options) for name, each in OPTIONS.items() for options in each]


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def problem(L, name, dtype="float64"):
    """Parameters, and what computes a loss that is not quadratic and its gradients."""
    shapes = [(4, 5), (7, 3)] if name == "Muon" else [(4, 5), (3,), (), (2, 3, 4)]
    params = [tensor(L, numbers(*shape), dtype, requires_grad=True) for shape in shapes]
    targets = [tensor(L, numbers(*shape) * 0.3 + 0.1, dtype) for shape in shapes]

    def loss():
        found = sum(((p - t) ** 2).sum() + (p * t).sin().sum() for p, t in zip(params, targets))
        found.backward()
        return found

    return params, loss


def train(optimizer, loss, steps=8):
    def closure():
        optimizer.zero_grad()
        return loss()
    for _ in range(steps):
        optimizer.step(closure)


def assert_agree(params, others, name, dtype="float64"):
    # PyTorch makes Muon's matrices orthogonal in bfloat16
    tolerance = {"rtol": 0, "atol": 2e-4} if name == "Muon" else {
        "float64": {"rtol": 1e-10, "atol": 1e-12}, "float32": {"rtol": 1e-4, "atol": 1e-5}}[dtype]
    for mine, theirs in zip(params, others, strict=True):
        assert_close(mine.detach().numpy(), theirs.detach().numpy(), **tolerance)


@each("dtype", ["float64", "float32"])
@each("name, options", CASES, ids=str)
def test_trajectories(name, options, dtype):
    found = []
    for L in BOTH:
        params, loss = problem(L, name, dtype)
        train(getattr(L.optim, name)(params, **options), loss)
        found.append(params)
    assert_agree(*found, name, dtype)


@EVERY
def test_a_gradient_that_is_nan_comes_through_as_it_does_there(name):
    found = []
    for L in BOTH:
        p = tensor(L, [[1.0, 2.0], [3.0, -1.0]], "float64", requires_grad=True)
        optimizer = getattr(L.optim, name)([p])

        def closure():
            p.grad = tensor(L, [[np.nan, 1.0], [0.5, -1.0]], "float64")
            return (p * 0).sum()
        optimizer.step(closure)
        found.append(np.isnan(p.detach().numpy()))
    assert (found[0] == found[1]).all() and found[0].any() == (name != "Rprop")


@EVERY
def test_signatures_and_defaults(name):
    mine, theirs = (inspect.signature(getattr(L.optim, name)).parameters for L in BOTH)
    assert list(mine) == list(theirs)
    assert [(p.default, p.kind) for p in mine.values()] == [
        (p.default, p.kind) for p in theirs.values()]
    one, other = (getattr(L.optim, name)(problem(L, name)[0]) for L in BOTH)
    assert list(one.param_groups[0]) == list(other.param_groups[0])
    assert one.defaults == other.defaults


# ---- states --------------------------------------------------------------------------------------

def moved(state, L):
    """A state with the tensors of another library, by way of NumPy."""
    if isinstance(state, (tl.Tensor, torch.Tensor)):
        return L.tensor(state.numpy())
    if isinstance(state, dict):
        return {key: moved(value, L) for key, value in state.items()}
    return [moved(value, L) for value in state] if isinstance(state, list) else state


@each("name, options", CASES, ids=str)
@each("source, target", [(tl, torch), (torch, tl)], ids=["to", "from"])
def test_states_are_interchangeable(name, options, source, target):
    """Training goes on in the other library from where it was."""
    params, loss = problem(source, name)
    optimizer = getattr(source.optim, name)(params, **options)
    train(optimizer, loss, 4)
    others, other_loss = problem(target, name)
    with target.no_grad():
        for p, value in zip(others, params):
            p.copy_(target.tensor(value.detach().numpy()))
    resumed = getattr(target.optim, name)(others)
    resumed.load_state_dict(moved(optimizer.state_dict(), target))
    train(optimizer, loss, 4)
    train(resumed, other_loss, 4)
    assert_agree(params, others, name)
    mine, theirs = optimizer.state_dict(), resumed.state_dict()
    assert set(mine["state"]) == set(theirs["state"])
    for i, state in mine["state"].items():
        assert set(state) - {"al"} == set(theirs["state"][i]) - {"al"}   # room for weights in LBFGS


@EVERY
def test_states_have_the_same_types_and_shapes(name):
    found = []
    for L in BOTH:
        params, loss = problem(L, name, "float32")
        optimizer = getattr(L.optim, name)(params)
        train(optimizer, loss, 1)
        found.append({(i, key): (str(x.dtype).rpartition(".")[2], tuple(x.shape))
                      for i, state in optimizer.state_dict()["state"].items()
                      for key, x in state.items() if isinstance(x, (tl.Tensor, torch.Tensor))})
    assert found[0] == found[1] or name == "LBFGS"


# ---- rates ---------------------------------------------------------------------------------------

RATES = {
    "LambdaLR": [{"lr_lambda": lambda epoch: 0.9**epoch}],
    "MultiplicativeLR": [{"lr_lambda": lambda epoch: 0.95}],
    "StepLR": [{"step_size": 7, "gamma": 0.5}], "MultiStepLR": [{"milestones": [3, 8, 8, 20]}],
    "ConstantLR": [{}, {"factor": 0.5, "total_iters": 9}],
    "LinearLR": [{}, {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 20}],
    "ExponentialLR": [{"gamma": 0.9}], "PolynomialLR": [{}, {"total_iters": 30, "power": 2.0}],
    "CosineAnnealingLR": [{"T_max": 10}, {"T_max": 7, "eta_min": 0.01}],
    "CosineAnnealingWarmRestarts": [{"T_0": 5}, {"T_0": 4, "T_mult": 2, "eta_min": 0.001}],
    "CyclicLR": [{"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 5},
                 {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "step_size_down": 6,
                  "mode": "triangular2"},
                 {"base_lr": [0.01, 0.02], "max_lr": 0.1, "step_size_up": 4, "mode": "exp_range",
                  "gamma": 0.9, "cycle_momentum": False},
                 {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 5, "scale_fn": lambda x: 0.5**x,
                  "scale_mode": "iterations"}],
    "OneCycleLR": [{"max_lr": 0.1, "total_steps": 60},
                   {"max_lr": [0.1, 0.2], "epochs": 6, "steps_per_epoch": 10, "three_phase": True,
                    "anneal_strategy": "linear"},
                   {"max_lr": 0.1, "total_steps": 55, "pct_start": 0.4, "cycle_momentum": False}],
}


def two_groups(L, name="SGD"):
    params = [L.zeros(2, requires_grad=True), L.ones(3, requires_grad=True)]
    more = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(L.optim, name)(
        [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.1, **more)


def rates(optimizer, schedule, epochs=50):
    """The rates and momenta of all groups in each epoch."""
    found = []
    for _ in range(epochs):
        optimizer.step()
        schedule.step()
        for group, lr in zip(optimizer.param_groups, schedule.get_last_lr()):
            found.append([float(lr), group["lr"], *group.get("betas", [group.get("momentum")])])
    return np.array(found)


@each("kind", ["SGD", "Adam"])
@each(
    "name, options", [(name, options) for name, each in RATES.items() for options in each])
def test_rates_of_schedules(name, options, kind):
    found, states = [], []
    for L in BOTH:
        optimizer = two_groups(L, kind)
        schedule = getattr(L.optim.lr_scheduler, name)(optimizer, **options)
        found.append(rates(optimizer, schedule))
        states.append(schedule.state_dict())
    np.testing.assert_allclose(*found, rtol=1e-13, atol=1e-16)
    assert set(states[0]) == set(states[1])
    mine, theirs = (inspect.signature(getattr(L.optim.lr_scheduler, name)).parameters for L in BOTH)
    assert [(p.name, p.default) for p in mine.values()] == [
        (p.name, p.default) for p in theirs.values()]


def one_after_another(L, optimizer):
    kinds = L.optim.lr_scheduler
    return kinds.SequentialLR(optimizer, [
        kinds.ConstantLR(optimizer, factor=0.1, total_iters=3),
        kinds.LinearLR(optimizer, total_iters=10),
        kinds.CosineAnnealingLR(optimizer, 10)], milestones=[5, 16])


def all_at_once(L, optimizer):
    kinds = L.optim.lr_scheduler
    return kinds.ChainedScheduler([
        kinds.ConstantLR(optimizer, factor=0.1, total_iters=3),
        kinds.ExponentialLR(optimizer, 0.9), kinds.CosineAnnealingLR(optimizer, 10)])


def nested(L, optimizer):
    kinds = L.optim.lr_scheduler
    return kinds.SequentialLR(optimizer, [
        kinds.SequentialLR(optimizer, [kinds.ConstantLR(optimizer), kinds.StepLR(optimizer, 2)],
                           milestones=[4]),
        kinds.ExponentialLR(optimizer, 0.9)], milestones=[10])


def averaging(L, optimizer):
    return L.optim.swa_utils.SWALR(optimizer, [0.01, 0.02], anneal_epochs=7)


def averaging_at_once(L, optimizer):
    return L.optim.swa_utils.SWALR(optimizer, 0.01, anneal_epochs=0, anneal_strategy="linear")


@each(
    "make", [one_after_another, all_at_once, nested, averaging, averaging_at_once])
def test_rates_of_schedules_of_schedules(make):
    found, states = [], []
    for L in BOTH:
        optimizer = two_groups(L)
        optimizer.step()
        schedule = make(L, optimizer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # schedules in schedules count their own steps
            found.append(rates(optimizer, schedule))
        states.append(schedule.state_dict())
    np.testing.assert_allclose(*found, rtol=1e-13, atol=1e-16)
    assert set(states[0]) == set(states[1])


@each("options", [
    {"patience": 2, "cooldown": 3},
    {"mode": "max", "threshold_mode": "abs", "patience": 1, "min_lr": [0.01, 0.02], "factor": 0.3},
    {"mode": "max", "threshold": 0.1, "patience": 0}, {"threshold_mode": "abs", "eps": 0.01}])
def test_plateaus(options):
    found, states = [], []
    for L in BOTH:
        optimizer = two_groups(L)
        schedule = L.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rng, found_here = np.random.default_rng(0), []
        for epoch in range(50):
            schedule.step(L.tensor(rng.random() / (1 + epoch)))
            found_here.append(schedule.get_last_lr())
        found.append(found_here)
        states.append(schedule.state_dict())
    np.testing.assert_allclose(*found, rtol=1e-13)
    assert set(states[0]) == set(states[1])


@each("name", RATES)
def test_a_schedule_goes_on_from_the_others_state(name):
    options = RATES[name][-1]
    found = []
    for source, target in ((tl, torch), (torch, tl)):
        optimizers = [two_groups(L) for L in (source, target)]
        schedule, resumed = (getattr(L.optim.lr_scheduler, name)(optimizer, **options)
                             for L, optimizer in zip((source, target), optimizers))
        rates(optimizers[0], schedule, 11)
        resumed.load_state_dict(schedule.state_dict())
        for group, other in zip(*(x.param_groups for x in optimizers)):
            other.update({key: value for key, value in group.items() if key != "params"})
        found.append(rates(optimizers[1], resumed, 20))
    np.testing.assert_allclose(*found, rtol=1e-13, atol=1e-16)


# ---- averages ------------------------------------------------------------------------------------

@each("options", [
    {}, {"avg_fn": ("get_ema_avg_fn", 0.9)}, {"avg_fn": ("get_swa_avg_fn",)},
    {"multi_avg_fn": ("get_ema_multi_avg_fn", 0.9), "use_buffers": True},
    {"multi_avg_fn": ("get_swa_multi_avg_fn",)}], ids=str)
def test_averaged_models(options):
    found = []
    for L in BOTH:
        kinds = L.optim.swa_utils
        model = L.nn.Sequential(L.nn.Linear(3, 4), L.nn.BatchNorm1d(4), L.nn.Linear(4, 1)).double()
        with L.no_grad():
            for p in model.parameters():
                p.copy_(tensor(L, numbers(*p.shape), "float64"))
        averaged = kinds.AveragedModel(model, **{
            key: getattr(kinds, value[0])(*value[1:]) if isinstance(value, tuple) else value
            for key, value in options.items()})
        optimizer = L.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        x = tensor(L, numbers(8, 3, seed=1), "float64")
        for _ in range(6):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
            averaged.update_parameters(model)
        kinds.update_bn([(x, 1), (x * 2, 2)], averaged)
        found.append({**{key: value.numpy() for key, value in averaged.state_dict().items()},
                      "out": averaged(x).detach().numpy()})
    assert list(found[0]) == list(found[1])
    for key, value in found[0].items():
        # PyTorch has the weights of some averages in float32
        assert_close(value, found[1][key], rtol=1e-6, atol=1e-7)


# ---- errors --------------------------------------------------------------------------------------

def assert_both_refuse(call):
    """Both libraries refuse a call, with errors of which one type is the other's."""
    errors = []
    for L in BOTH:
        with pytest.raises(Exception) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(L)
        errors.append(caught.type)
    assert issubclass(*errors) or issubclass(*errors[::-1]), errors


@each("params", [
    lambda L: [], lambda L: L.ones(2), lambda L: [3], lambda L: [L.ones(2, requires_grad=True) * 2],
    lambda L: [{"params": {L.ones(2)}}], lambda L: [("a", L.ones(2)), L.ones(2)], lambda L: [{}],
    lambda L: 3, lambda L: None])
def test_parameters_that_are_refused(params):
    assert_both_refuse(lambda L: L.optim.Adam(params(L)))


@each("name, options", [
    ("SGD", {"lr": -1}), ("SGD", {"nesterov": True}), ("Adam", {"betas": (1.0, 0.9)}),
    ("Adam", {"eps": -1.0}), ("RMSprop", {"alpha": -1}), ("Rprop", {"etas": (2, 3)}),
    ("Adadelta", {"rho": 2}), ("Adafactor", {"d": 0}), ("Muon", {"momentum": -1}),
    ("Adam", {"lr": "fast"}), ("Adam", {"momentum": 0.9})])
def test_options_that_are_refused(name, options):
    assert_both_refuse(lambda L: getattr(L.optim, name)([L.ones(2, 2, requires_grad=True)],
                                                        **options))


# ---- whole scripts, in the manner of tutorials ---------------------------------------------------

def polynomial_fit(torch):
    """A polynomial of the third degree for one wave of the sine."""
    x = torch.linspace(-3.14159265, 3.14159265, 200)
    y = torch.sin(x)
    powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.1)
    loss_fn = torch.nn.MSELoss(reduction="sum")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(200):
        loss = loss_fn(model(powers), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def time_sequence(torch):
    """A recurrence that learns to go on with sine waves, by L-BFGS."""
    time = torch.arange(0, 40).double()
    waves = torch.stack([torch.sin((time + shift) / 3.0) for shift in range(4)])
    features = 6
    weights = [tensor(torch, numbers(*shape, seed=5) * 0.3, "float64", requires_grad=True)
               for shape in ((features, features), (1, features), (features,), (features, 1), (1,))]
    recurrent, inward, bias, outward, shift = weights
    optimizer = torch.optim.LBFGS(weights, lr=0.8, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        hidden, guesses = torch.zeros(4, features).double(), []
        for step in range(waves.shape[1] - 1):
            hidden = torch.tanh(hidden @ recurrent + waves[:, step:step + 1] @ inward + bias)
            guesses.append(hidden @ outward + shift)
        loss = torch.nn.functional.mse_loss(torch.cat(guesses, dim=1), waves[:, 1:])
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return losses


def actor_critic(torch):
    """Policy gradient with a baseline, on a walk along a line whose end is worth something."""
    model = torch.nn.ModuleDict({"body": torch.nn.Linear(5, 16), "action": torch.nn.Linear(16, 2),
                                 "value": torch.nn.Linear(16, 1)})
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(tensor(torch, numbers(*p.shape, seed=3) * 0.3, "float32"))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    rng, losses = np.random.default_rng(0), []
    for _ in range(30):
        place, saved, rewards = 2, [], []
        for _ in range(12):
            state = torch.nn.functional.one_hot(torch.tensor(place), 5).float()
            hidden = torch.nn.functional.relu(model["body"](state))
            probabilities = torch.nn.functional.softmax(model["action"](hidden), dim=-1)
            action = int(rng.random() < float(probabilities.detach()[1]))
            place = max(0, min(4, place + 2 * action - 1))
            saved.append(SimpleNamespace(log_prob=torch.log(probabilities[action]),
                                         value=model["value"](hidden)))
            rewards.append(1.0 if place == 4 else -0.1)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        losses_here = []
        for step, worth in zip(saved, returns):
            advantage = worth - step.value.item()
            losses_here.append(-step.log_prob * advantage + torch.nn.functional.smooth_l1_loss(
                step.value, worth.reshape(1)).sum())
        optimizer.zero_grad()
        loss = torch.stack(losses_here).sum()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@each("script", [polynomial_fit, time_sequence, actor_critic])
def test_scripts_reach_the_same_losses(script):
    mine, theirs = script(tl), script(torch)
    assert min(mine) < mine[0]
    np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=1e-4)
