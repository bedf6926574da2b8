"""Schedules: where they are chained, resumed or misused; their rates stand beside PyTorch's in
test_differential_optim.py."""

import copy
import pickle
import warnings

import pytest
from cases import each

import tensorlib as tl
from tensorlib import optim
from tensorlib.optim import lr_scheduler


def descent(lr=1.0, **options):
    return optim.SGD([tl.zeros(1, requires_grad=True)], lr=lr, **options)


SCHEDULES = {
    "LambdaLR": {"lr_lambda": lambda epoch: 0.9**epoch},
    "MultiplicativeLR": {"lr_lambda": lambda epoch: 0.9},
    "StepLR": {"step_size": 3}, "MultiStepLR": {"milestones": [2, 5, 5]},
    "ConstantLR": {"total_iters": 4}, "LinearLR": {"total_iters": 4},
    "ExponentialLR": {"gamma": 0.9},
    "PolynomialLR": {"total_iters": 9, "power": 2.0}, "CosineAnnealingLR": {"T_max": 4},
    "CosineAnnealingWarmRestarts": {"T_0": 2, "T_mult": 2},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3},
    "OneCycleLR": {"max_lr": 1.0, "total_steps": 12},
}
EVERY = pytest.mark.parametrize("name", SCHEDULES)


def made(name, optimizer, **more):
    return getattr(lr_scheduler, name)(optimizer, **{**SCHEDULES[name], **more})


def go_on(optimizer, schedule, epochs):
    rates = []
    for _ in range(epochs):
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    return rates


@EVERY
def test_going_on_from_a_state(name):
    optimizer = descent(momentum=0.9)
    schedule = made(name, optimizer)
    go_on(optimizer, schedule, 4)
    saved = pickle.loads(pickle.dumps([optimizer.state_dict(), schedule.state_dict()]))
    resumed = descent(momentum=0.9)
    again = made(name, resumed)
    resumed.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    assert go_on(resumed, again, 5) == go_on(optimizer, schedule, 5)


@EVERY
def test_a_tensor_as_rate_is_written(name):
    lr = tl.tensor(1.0, dtype=tl.float64)
    optimizer, plain = descent(lr, momentum=0.9), descent(1.0, momentum=0.9)
    rates = go_on(optimizer, made(name, optimizer), 6)
    assert optimizer.param_groups[0]["lr"] is lr
    expected = go_on(plain, made(name, plain), 6)
    assert [float(rate) for rate in rates] == pytest.approx(expected, rel=1e-12)


@EVERY
def test_closed_forms_agree(name):
    chained, jumping = descent(momentum=0.9), descent(momentum=0.9)
    schedule, other = made(name, chained), made(name, jumping)
    if not hasattr(schedule, "_get_closed_form_lr"):
        assert name in ("LambdaLR", "MultiplicativeLR", "CosineAnnealingWarmRestarts", "CyclicLR",
                        "OneCycleLR")
        return
    for epoch, rate in enumerate(go_on(chained, schedule, 8), 1):
        jumping.step()
        with pytest.warns(UserWarning, match="epoch parameter"):
            other.step(epoch)
        assert other.get_last_lr()[0] == pytest.approx(rate, abs=1e-12)


def test_epochs_since_a_restart_are_whole_numbers_as_they_are_saved():
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(descent(), 2, 2)
    schedule.step()
    assert repr(schedule.state_dict()["T_cur"]) == "1"


def test_fractions_of_epochs():
    optimizer = descent()
    schedule = made("CosineAnnealingWarmRestarts", optimizer)
    whole = go_on(optimizer, schedule, 6)
    other = made("CosineAnnealingWarmRestarts", descent())
    for epoch, rate in enumerate(whole, 1):
        other.step(epoch - 0.5)
        other.step(float(epoch))
        assert other.get_last_lr()[0] == pytest.approx(rate)
    with pytest.raises(ValueError, match="non-negative"):
        other.step(-1)


# ---- misuse --------------------------------------------------------------------------------------

def test_a_schedule_before_the_step_warns_once():
    optimizer = descent()
    schedule = made("StepLR", optimizer)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_a_schedule_after_the_step_does_not_warn():
    optimizer = descent()
    schedule = made("StepLR", optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        go_on(optimizer, schedule, 3)


def test_a_step_that_was_replaced_warns():
    optimizer = descent()
    schedule = made("StepLR", optimizer)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="overridden"):
        schedule.step()


def test_asking_for_rates_outside_of_a_step_warns():
    schedule = made("StepLR", descent())
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


@each("name, options, error, text", [
    ("LambdaLR", {"lr_lambda": [lambda e: 1, lambda e: 2]}, ValueError, "Expected 1 lr_lambdas"),
    ("MultiplicativeLR", {"lr_lambda": 3}, TypeError, "should be a function"),
    ("ConstantLR", {"factor": 2}, ValueError, "ConstantLR: .*between 0 and 1, got 2"),
    ("LinearLR", {"start_factor": 0}, ValueError, "LinearLR: Starting .*, got 0"),
    ("LinearLR", {"end_factor": 2}, ValueError, "LinearLR: Ending .*, got 2"),
    ("CosineAnnealingWarmRestarts", {"T_0": 0}, ValueError, "T_0"),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 0.5}, ValueError, "T_mult"),
    ("CyclicLR", {"mode": "square"}, ValueError, "CyclicLR: mode must .*, got 'square'"),
    ("CyclicLR", {"base_lr": [0.1, 0.2]}, ValueError, "same length"),
    ("OneCycleLR", {"total_steps": -1}, ValueError, "total_steps"),
    ("OneCycleLR", {"total_steps": None}, ValueError, "total_steps OR"),
    ("OneCycleLR", {"pct_start": 3}, ValueError, "pct_start"),
    ("OneCycleLR", {"anneal_strategy": "other"}, ValueError, "anneal_strategy")])
def test_options_that_are_refused(name, options, error, text):
    with pytest.raises(error, match=text):
        made(name, descent(momentum=0.9), **options)


@each("options, text", [
    ({"factor": 1.0}, "Factor should be < 1.0, got 1.0"), ({"mode": "best"}, "mode .* got 'best'"),
    ({"threshold_mode": "other"}, "threshold_mode .* got 'other'"),
    ({"min_lr": [0.1, 0.2]}, "expected 1 min_lrs, got 2")])
def test_options_of_a_plateau_that_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        lr_scheduler.ReduceLROnPlateau(descent(), **options)


@EVERY
def test_what_is_no_optimizer_is_refused(name):
    with pytest.raises(TypeError, match="list is not an Optimizer"):
        made(name, [tl.zeros(1)])
    with pytest.raises(KeyError, match="initial_lr"):
        made(name, descent(momentum=0.9), last_epoch=3)


def test_momentum_is_needed_to_be_cycled():
    adagrad = optim.Adagrad([tl.zeros(1, requires_grad=True)])
    for name in ("CyclicLR", "OneCycleLR"):
        with pytest.raises(ValueError, match="momentum"):
            made(name, adagrad)
        made(name, adagrad, cycle_momentum=False)


def test_the_end_of_one_cycle():
    optimizer = descent(momentum=0.9)
    schedule = made("OneCycleLR", optimizer)
    go_on(optimizer, schedule, 12)
    with pytest.raises(ValueError, match="Tried to step 13 times"):
        go_on(optimizer, schedule, 1)


def test_a_rate_of_zero_comes_back():
    optimizer = descent()
    assert go_on(optimizer, made("ConstantLR", optimizer, factor=0), 4) == [0, 0, 0, 1.0]


def test_schedules_of_several_optimizers_are_refused():
    one, other = descent(), descent()
    schedules = [made("StepLR", one), made("StepLR", other)]
    with pytest.raises(ValueError, match="same optimizer"):
        lr_scheduler.ChainedScheduler(schedules)
    with pytest.raises(ValueError, match="same optimizer"):
        lr_scheduler.SequentialLR(one, schedules, [3])
    with pytest.raises(ValueError, match="one more than"):
        lr_scheduler.SequentialLR(one, schedules[:1], [3])
    with pytest.raises(ValueError, match="at least one"):
        lr_scheduler.ChainedScheduler([])
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(one)])


def test_states_of_functions():
    class Fade:
        def __init__(self, by):
            self.by = by

        def __call__(self, epoch):
            return self.by**epoch

    schedule = lr_scheduler.LambdaLR(descent(), Fade(0.5))
    saved = copy.deepcopy(schedule.state_dict())
    assert saved["lr_lambdas"] == [{"by": 0.5}]
    other = lr_scheduler.LambdaLR(descent(), Fade(0.1))
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].by == 0.5
    assert made("LambdaLR", descent()).state_dict()["lr_lambdas"] == [None]


def test_a_plateau_of_a_tensor():
    schedule = lr_scheduler.ReduceLROnPlateau(descent(), patience=0)
    for loss in (1.0, float("nan")):
        schedule.step(tl.tensor(loss))
    assert schedule.get_last_lr() == [0.1] and not schedule.in_cooldown


@each("options, losses, rates", [
    ({"patience": 1}, [1, 1, 1, 1, 1], [1, 1, 0.5, 0.5, 0.25]),
    ({"patience": 1, "cooldown": 2}, [1] * 8, [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]),
    ({"patience": 0, "threshold": 0.5}, [4, 2.1, 1.9, 0.9], [1, 0.5, 0.5, 0.5]),
    ({"patience": 0, "threshold": 0.5, "threshold_mode": "abs"}, [4, 3.6, 3.4, 3], [1, 0.5, 0.5,
                                                                 0.25]),
    ({"patience": 0, "mode": "max"}, [1, 2, 2, 1], [1, 1, 0.5, 0.25]),
    ({"patience": 0, "min_lr": 0.3}, [1, 1, 1, 1], [1, 0.5, 0.3, 0.3]),
    ({"patience": 0, "eps": 0.2}, [1, 1, 1, 1], [1, 0.5, 0.25, 0.25]),
])
def test_when_a_plateau_lowers_the_rate(options, losses, rates):
    optimizer, found = descent(), []
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, **options)
    for loss in losses:
        schedule.step(loss)
        found += schedule.get_last_lr()
    assert found == rates and optimizer.param_groups[0]["lr"] == rates[-1]


@each("name", ["CyclicLR", "OneCycleLR"])
def test_the_first_of_the_betas_is_cycled_like_a_momentum(name):
    sgd = descent(momentum=0.5)
    adam = optim.Adam([tl.zeros(1, requires_grad=True)], betas=(0.5, 0.987))
    schedules = [made(name, optimizer) for optimizer in (sgd, adam)]
    momenta = set()
    for _ in range(8):
        for optimizer, schedule in zip((sgd, adam), schedules):
            go_on(optimizer, schedule, 1)
        momentum = sgd.param_groups[0]["momentum"]
        assert adam.param_groups[0]["betas"] == (momentum, 0.987)
        momenta.add(momentum)
    assert len(momenta) > 3 and 0.5 not in momenta


@each("name, options, rates", [
    ("StepLR", {"step_size": 1}, [0.1, 0.2]), ("ExponentialLR", {"gamma": 0.5}, [0.5, 1.0]),
    ("MultiStepLR", {"milestones": [1]}, [0.1, 0.2]), ("PolynomialLR", {}, [0.8, 1.6]),
    ("LinearLR", {}, [1.4 / 3, 2.8]), ("ConstantLR", {}, [1 / 3, 2.0]),
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.5}, None),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.5}, None),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}, None),
])
def test_a_group_that_comes_later(name, options, rates):
    """It has rates of its own, where the schedule needs nothing of each group from the start."""
    optimizer = optim.SGD([tl.zeros(1, requires_grad=True)], lr=1.0)
    schedule = getattr(lr_scheduler, name)(optimizer, **options)
    optimizer.add_param_group({"params": [tl.zeros(2, requires_grad=True)], "lr": 2.0})
    optimizer.step()
    if rates is None:
        with pytest.raises(ValueError, match="zip"):
            schedule.step()
        return
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx(rates)


def test_a_plateau_lowers_the_rates_as_a_library_says():
    """Under PyTorch's names: what is better, and how the rates fall."""
    optimizer = descent()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    fallen = []
    schedule._reduce_lr = fallen.append
    for figure in (1.0, 2.0, 0.5, 0.5):
        schedule.step(figure)
    assert fallen == [2, 4] and schedule.get_last_lr() == [1.0]
    assert schedule.is_better(0.9, 1.0) and not schedule.is_better(1.0, 1.0)
