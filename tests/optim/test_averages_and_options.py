"""Averages of models, rare options of schedules and optimisers, and the states of both."""

import math
from types import SimpleNamespace

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn, optim
from tensorlib.optim import lr_scheduler, swa_utils


def descent(lr=1.0, count=1, **options):
    """An optimiser with groups of one parameter each."""
    return optim.SGD([{"params": [tl.zeros(1, requires_grad=True)]} for _ in range(count)], lr=lr,
                     **options)


def rates(optimizer, schedule, steps, name="lr", group=0):
    """An option of a group before each of some steps."""
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[group][name])
        optimizer.step()
        schedule.step()
    return pytest.approx(found)


# ---- averages ------------------------------------------------------------------------------------

def averaged(values, use_buffers=False, **options):
    """The average of a model's weight, of its running mean and its count, after these were set."""
    model = nn.BatchNorm1d(1)
    average = swa_utils.AveragedModel(model, use_buffers=use_buffers, **options)
    for value in values:
        with tl.no_grad():
            model.weight.fill_(value)
            model.running_mean.fill_(-value)
            model.num_batches_tracked.fill_(int(value))
        average.update_parameters(model)
    assert average.n_averaged == len(values)
    module = average.module
    return [module.weight.item(), module.running_mean.item(), module.num_batches_tracked.item()]


@pytest.mark.parametrize("several", [False, True])
def test_a_running_mean_has_the_weight_that_it_is_given(several):
    way = "get_ema_multi_avg_fn" if several else "get_ema_avg_fn"
    options = {"multi_avg_fn" if several else "avg_fn": getattr(swa_utils, way)(0.75)}
    assert averaged([8.0], **options) == [8.0, -8.0, 8]
    assert averaged([8.0, 4.0], **options) == [7.0, -4.0, 4]
    assert averaged([8.0, 4.0, 16.0], **options) == [9.25, -16.0, 16]
    assert averaged([8.0, 4.0], use_buffers=True, **options) == [7.0, -7.0, 7]


@pytest.mark.parametrize("options", [{}, {"avg_fn": swa_utils.get_swa_avg_fn()},
                                     {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}])
def test_a_mean_of_all_has_equal_weights(options):
    assert averaged([8.0, 4.0, 15.0], **options) == [9.0, -15.0, 15]
    assert averaged([8.0, 4.0, 15.0], use_buffers=True, **options) == [9.0, -9.0, 9]


def test_the_usual_running_mean_keeps_almost_all():
    for options in ({"avg_fn": swa_utils.get_ema_avg_fn()},
                    {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn()}):
        assert averaged([0.0, 1000.0], **options)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("decay", [-0.01, 1.01, math.nan])
def test_a_decay_is_a_share(decay):
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=f"Invalid decay value {decay} provided"):
            make(decay)
    assert callable(swa_utils.get_ema_avg_fn(0)) and callable(swa_utils.get_ema_multi_avg_fn(1))


def test_an_averaged_model_is_a_copy_where_it_is_told():
    model = nn.Linear(2, 1)
    average = swa_utils.AveragedModel(model, "meta")
    assert average.module.weight.is_meta and not model.weight.is_meta
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(model, avg_fn=max, multi_avg_fn=max)


def test_statistics_are_computed_anew_with_equal_weights():
    model = nn.Sequential(nn.BatchNorm1d(1, momentum=0.5), nn.Dropout(0.5)).eval()
    model[1].train()
    model[0].running_mean.fill_(99.0)
    batches = [tl.tensor([[1.0], [3.0]]), (tl.tensor([[4.0], [4.0]]), "a label"),
               [tl.tensor([[6.0], [8.0]])]]
    swa_utils.update_bn(batches, model, device="cpu")
    assert model[0].running_mean.item() == pytest.approx(13 / 3)
    assert model[0].running_var.item() == pytest.approx(4 / 3)
    assert (model[0].momentum, model[0].num_batches_tracked.item()) == (0.5, 3)
    assert not (model.training or model[0].training)


def test_a_model_without_statistics_is_not_run():
    def batches():
        raise AssertionError("asked for")
        yield

    model = nn.Linear(1, 1)
    assert swa_utils.update_bn(batches(), model) is None and model.training


SWA = [
    ({"anneal_epochs": 4, "anneal_strategy": "linear"}, [1.0, 0.875, 0.75, 0.625, 0.5, 0.5, 0.5]),
    ({"anneal_epochs": 2}, [1.0, 0.75, 0.5, 0.5]),
    ({"anneal_epochs": 3}, [1.0, 0.875, 0.625, 0.5, 0.5]),
    ({"anneal_epochs": 0}, [0.5, 0.5, 0.5]),
    ({"anneal_epochs": 1, "anneal_strategy": "linear"}, [1.0, 0.5, 0.5]),
]


@each("options, wanted", SWA, ids=str)
def test_rates_of_averaging(options, wanted):
    optimizer = descent()
    schedule = swa_utils.SWALR(optimizer, 0.5, **options)
    assert rates(optimizer, schedule, len(wanted)) == wanted


def test_rates_of_averaging_for_each_group():
    optimizer = descent(count=2)
    schedule = swa_utils.SWALR(optimizer, [0.5, 0.0], 2, "linear")
    assert rates(optimizer, schedule, 3, group=1) == [1.0, 0.5, 0.0]
    with pytest.raises(ValueError, match="swa_lr has 3 values, param_groups has 2"):
        swa_utils.SWALR(optimizer, [0.5, 0.0, 1.0])


@pytest.mark.parametrize("options, words", [
    ({"anneal_strategy": "sine"}, "must be one of 'cos' or 'linear', instead got sine"),
    ({"anneal_epochs": -1}, "anneal_epochs must be equal or greater than 0, got -1"),
    ({"anneal_epochs": 2.0}, "anneal_epochs must be equal or greater than 0, got 2.0")])
def test_averaging_that_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        swa_utils.SWALR(descent(), 0.5, **options)


# ---- schedules -----------------------------------------------------------------------------------

def test_cycles_of_falling_height():
    def cyclic(**options):
        optimizer = descent()
        schedule = lr_scheduler.CyclicLR(optimizer, 1.0, 9.0, 2, cycle_momentum=False, **options)
        return rates(optimizer, schedule, 9)

    assert cyclic() == [1, 5, 9, 5, 1, 5, 9, 5, 1]
    assert cyclic(mode="triangular2") == [1, 5, 9, 5, 1, 3, 5, 3, 1]
    assert cyclic(mode="exp_range", gamma=0.5) == [
        1, 3, 3, 1.5, 1, 1 + 4 / 32, 1 + 8 / 64, 1 + 4 / 128, 1]
    assert cyclic(scale_fn=lambda x: 1 / (2 * x)) == [1, 3, 5, 3, 1, 2, 3, 2, 1]
    assert cyclic(scale_fn=lambda x: x / 4, scale_mode="iterations") == [
        1, 2, 5, 4, 1, 6, 13, 8, 1]


class Height:
    """A scale with an attribute, which the state of the schedule keeps."""

    def __init__(self, share):
        self.share = share

    def __call__(self, cycle):
        return self.share


def test_the_attributes_of_a_scale_are_states():
    def cyclic(share):
        optimizer = descent()
        return optimizer, lr_scheduler.CyclicLR(optimizer, 1.0, 9.0, 2, cycle_momentum=False,
                                                scale_fn=Height(share))

    optimizer, schedule = cyclic(0.25)
    schedule.load_state_dict(cyclic(0.5)[1].state_dict())
    assert rates(optimizer, schedule, 3) == [1, 3, 5]


def test_one_cycle_of_three_phases():
    optimizer = descent(momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(
        optimizer, 8.0, total_steps=10, pct_start=0.4, anneal_strategy="linear", three_phase=True,
        div_factor=4.0, final_div_factor=2.0, base_momentum=0.5, max_momentum=0.8)
    both = [(group["lr"], group["momentum"]) for group in optimizer.param_groups]
    for _ in range(9):
        optimizer.step()
        schedule.step()
        both += [(group["lr"], group["momentum"]) for group in optimizer.param_groups]
    assert [lr for lr, _ in both] == pytest.approx(
        [2, 4, 6, 8, 6, 4, 2, 5 / 3, 4 / 3, 1])
    assert [momentum for _, momentum in both] == pytest.approx(
        [0.8, 0.7, 0.6, 0.5, 0.6, 0.7, 0.8, 0.8, 0.8, 0.8])


def test_a_cosine_that_is_taken_up_again_begins_where_it_was():
    optimizer = descent(0.3)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, 4, 0.2, last_epoch=0)
    assert schedule.get_last_lr() == [0.3]
    with pytest.warns(UserWarning, match="get_last_lr"):
        found = schedule.get_lr()
    assert found == pytest.approx([0.2 + 0.4 * (1 + math.cos(math.pi / 4))])


def test_options_of_schedules_that_are_refused():
    with pytest.raises(ValueError, match="Expected float or int eta_min, but got no of type"):
        lr_scheduler.CosineAnnealingWarmRestarts(descent(), 2, eta_min="no")
    for kind in (lr_scheduler.SequentialLR, lr_scheduler.ChainedScheduler):
        optimizer = descent()
        schedules = [lr_scheduler.StepLR(optimizer, 1), object()]
        with pytest.raises(TypeError, match=f"{kind.__name__} at index 1 should have `optimizer`"):
            kind(schedules) if kind is lr_scheduler.ChainedScheduler else kind(
                optimizer, schedules, [1])


def test_a_schedule_says_its_rates():
    class Silent(lr_scheduler.LRScheduler):
        pass

    with pytest.raises(NotImplementedError):
        Silent(descent())


def chained(optimizer):
    return lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(optimizer, 0.5),
                                          lr_scheduler.StepLR(optimizer, 2, 0.5)])


def sequential(optimizer):
    return lr_scheduler.SequentialLR(optimizer, [lr_scheduler.ConstantLR(optimizer, 0.5, 9),
                                                 lr_scheduler.ExponentialLR(optimizer, 0.5)], [2])


@each("make, wanted", [
    (chained, [1.0, 0.5, 0.125, 0.0625, 0.015625]), (sequential, [0.5, 0.5, 1.0, 0.5, 0.25])])
@each("done", [0, 1, 2, 3])
def test_schedules_of_schedules_go_on_from_a_state(make, wanted, done):
    first = descent()
    schedule = make(first)
    assert rates(first, schedule, done) == wanted[:done]
    second = descent()
    resumed = make(second)
    second.load_state_dict(first.state_dict())
    state = schedule.state_dict()
    assert len(state["_schedulers"]) == 2 and "optimizer" not in state
    resumed.load_state_dict(state)
    assert "_schedulers" in state                               # the caller's is left as it was
    assert rates(second, resumed, 5 - done) == wanted[done:]


def test_a_plateau_goes_on_from_a_state():
    def plateau(**options):
        optimizer = descent()
        return optimizer, lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5,
                                                         **options)

    _, first = plateau(mode="max")
    first.step(3.0)
    first.step(2.0)
    optimizer, second = plateau(mode="min")
    state = first.state_dict()
    del state["mode_worse"]                                     # it follows from the mode
    second.load_state_dict(state)
    assert (second.mode, second.mode_worse, second.best, second.num_bad_epochs) == (
        "max", -math.inf, 3.0, 1)
    second.step(2.5)
    assert optimizer.param_groups[0]["lr"] == 0.5
    with pytest.warns(UserWarning, match="epoch parameter"):
        second.step(4.0, 9)
    assert (second.last_epoch, second.best) == (9, 4.0)


def test_a_plateau_with_groups_added_later():
    added = {"params": [tl.zeros(1, requires_grad=True)], "lr": 8.0}
    for least, wanted in ((2.0, [2.0, 4.0]), ([2.0], None)):
        optimizer = descent(2.5)
        schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, min_lr=least)
        optimizer.add_param_group(dict(added))
        schedule.step(1.0)
        if wanted is None:
            with pytest.raises(RuntimeError, match=r"optimizer` \(2\) differs .*initialized \(1\)"):
                schedule.step(1.0)
        else:
            schedule.step(1.0)
            assert [group["lr"] for group in optimizer.param_groups] == wanted


# ---- optimisers ----------------------------------------------------------------------------------

def test_matrices_of_muon():
    def moved(shape, **options):
        p = tl.zeros(shape, requires_grad=True)
        p.grad = tl.ones(shape)
        optim.Muon([p], lr=1.0, weight_decay=0.0, **options).step()
        return p.detach()

    for shape, factor in (((9, 4), 1.5), ((4, 9), 1.0)):
        plain, alike = moved(shape), moved(shape, adjust_lr_fn="match_rms_adamw")
        assert moved(shape, adjust_lr_fn="original").tolist() == plain.tolist()
        assert (alike / plain).mean().item() == pytest.approx(0.2 * 3 / factor)
    with pytest.raises(ValueError, match="Number of steps must be less than 100"):
        moved((2, 2), ns_steps=100)
    with pytest.raises(ValueError, match="Coefficients must be a tuple of exactly 3 values"):
        moved((2, 2), ns_coefficients=(1.0, 2.0))
    assert moved((2, 2), ns_steps=99).shape == (2, 2)


def test_names_that_a_state_does_not_have_stay():
    def named():
        return optim.SGD([("weight", tl.zeros(1, requires_grad=True))], lr=1.0)

    state = optim.SGD([tl.zeros(1, requires_grad=True)], lr=0.5).state_dict()
    optimizer = named()
    optimizer.load_state_dict(state)
    group, = optimizer.param_groups
    assert (group["param_names"], group["lr"]) == (["weight"], 0.5)
    assert "param_names" not in state["param_groups"][0]


def test_defaults_are_a_dict():
    with pytest.raises(TypeError, match="optimizer: defaults must be a dict, got list"):
        optim.Optimizer([tl.zeros(1, requires_grad=True)], [1.0])
    assert repr(optim.optimizer.required) == "<required parameter>"


def point(t, loss, slope):
    return SimpleNamespace(t=t, loss=loss, slope=slope)


@each("a, b, wanted", [
    (point(1.0, 0.0, -1.0), point(1.0, 0.0, 1.0), 3.0),         # one place: the middle
    (point(0.0, 0.0, -4.0), point(2.0, 0.0, 4.0), 2.0),         # 2 (t - 1)**2, but within bounds
    (point(0.0, 0.0, -16.0), point(4.0, 0.0, 16.0), 2.0), (
        point(0.0, 0.0, -32.0), point(8.0, 0.0, 32.0), 4.0),
    (point(8.0, 0.0, 32.0), point(0.0, 0.0, -32.0), 4.0),       # in the other order
    (point(0.0, 0.0, 1.0), point(1.0, 1.0, 1.0), 3.0),          # a line has no lowest place
    (point(0.0, 0.0, 4.0), point(2.0, 5.0, 4.0), 3.0),          # the roots are not real
    (point(0.0, 0.0, math.nan), point(1.0, 1.0, 1.0), 3.0)])
def test_the_lowest_place_of_a_cubic(a, b, wanted):
    assert optim.line_search.interpolated(a, b, 2.0, 4.0) == wanted


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.Adagrad])
def test_a_recorded_step_leaves_parameters_without_gradients(kind):
    leaves = [tl.ones(2, requires_grad=True) for _ in range(3)]
    params = [x * 1 for x in leaves]
    optimizer = kind(params, lr=0.5, differentiable=True)
    params[0].grad, params[2].grad = tl.ones(2), -tl.ones(2)
    optimizer.step()
    assert [p.tolist() for p in params] == [
        pytest.approx([0.5, 0.5]), [1.0, 1.0], pytest.approx([1.5, 1.5])]
    assert tl.autograd.grad(params[2].sum(), leaves[2])[0].tolist() == [1.0, 1.0]
