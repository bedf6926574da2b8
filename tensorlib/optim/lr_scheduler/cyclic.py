"""Schedules that raise and lower the rates, and the momentum against them."""

from collections.abc import Callable
from math import cos, floor, pi
from typing import Any

from tensorlib.optim.lr_scheduler.base import (
    LRScheduler,
    attributes_of,
    check_optimizer,
    for_groups,
    set_value,
)
from tensorlib.optim.optimizer import Optimizer


class MomentumScheduler(LRScheduler):
    """A schedule that sets the momentum too, or the first of the betas."""

    def _begin_momentum(self, optimizer, base, most, last_epoch):
        """Sets the bounds of each group's momentum. Raises: ValueError if it has none."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` "
                             "option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        least = for_groups("base_momentum", optimizer, base)
        most = for_groups("max_momentum", optimizer, most)
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, least, most):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return least, most

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(MomentumScheduler):
    """Moves learning rates from base_lr to max_lr in step_size_up steps, back in step_size_down.

    The height stays with mode="triangular", halves after each cycle with "triangular2", and is
    multiplied by gamma**step with "exp_range"; or by scale_fn, a function of the cycle or, with
    scale_mode="iterations", of the step. The momentum goes the other way. It belongs after each
    batch.
    Raises: ValueError for other modes, and for an optimiser without momentum. Source: L. Smith,
    "Cyclical learning rates for training neural networks", 2017.

    >>> x = tensorlib.zeros(1, requires_grad=True)
    >>> optimizer = tensorlib.optim.SGD([x], lr=1.0, momentum=0.9)
    >>> schedule = tensorlib.optim.lr_scheduler.CyclicLR(optimizer, 0.5, 1.0, step_size_up=2)
    >>> for step in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.75]
    [1.0]
    [0.75]
    """

    _not_in_state = ("optimizer", "_scale_fn_custom")

    def __init__(self, optimizer: Optimizer, base_lr: float | list[float],
                 max_lr: float | list[float], step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: float | list[float] = 0.8,
                 max_momentum: float | list[float] = 0.9, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("CyclicLR: mode must be triangular, triangular2 or exp_range, or a "
                             f"scale_fn be given, got {mode!r}")
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_value(group, "lr", lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(
                optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """By what the height is multiplied, for a cycle or a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """The learning rate of each group for the step `last_epoch`; sets the momentum."""
        self._warn_outside_step()
        done = self.last_epoch / self.total_size
        cycle = floor(1 + done)
        x = 1 + done - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums,
                                        self.max_momentums, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """What the schedule knows; of `scale_fn`, the attributes of a callable object."""
        function = self._scale_fn_custom
        return {**super().state_dict(),
                "_scale_fn_custom": None if function is None else attributes_of(function)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` of a schedule of the same kind gave."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)
        super().load_state_dict(state)


class OneCycleLR(MomentumScheduler):
    """Raises learning rates to max_lr and lowers them far below, and moves momentum against them.

    They begin at max_lr / div_factor, reach max_lr after pct_start of the steps, and end at the
    first ones / final_div_factor; three_phase goes back to the first ones in between. The steps in
    all are total_steps, or epochs * steps_per_epoch. It belongs after each batch.
    Raises: ValueError for numbers out of range, for steps beyond the last, and for an optimiser
    without momentum. Source: L. Smith & N. Topin, "Super-convergence: very fast training of neural
    networks using large learning rates", 2019.

    >>> x = tensorlib.zeros(1, requires_grad=True)
    >>> optimizer = tensorlib.optim.SGD([x], lr=1.0, momentum=0.9)
    >>> schedule = tensorlib.optim.lr_scheduler.OneCycleLR(
    ...     optimizer, max_lr=1.0, total_steps=10, anneal_strategy="linear")
    >>> for step in range(3):
    ...     print([round(lr, 2) for lr in schedule.get_last_lr()])
    ...     optimizer.step()
    ...     schedule.step()
    [0.04]
    [0.52]
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | list[float],
                 total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True,
                 base_momentum: float | list[float] = 0.85,
                 max_momentum: float | list[float] = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.total_steps = counted_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError("anneal_strategy must be one of 'cos' or 'linear', instead got "
                             f"{anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = phases(pct_start * self.total_steps, self.total_steps, three_phase)
        for group, lr in zip(optimizer.param_groups, for_groups("max_lr", optimizer, max_lr)):
            if last_epoch == -1:
                first = lr / div_factor
                group.update(initial_lr=first, max_lr=lr, min_lr=first / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rate of each group for the step `last_epoch`; sets the momentum."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is "
                             f"{self.total_steps}")
        begin = 0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        done = (step - begin) / (phase["end_step"] - begin)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, self._between(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], done))
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], done)
                for group in self.optimizer.param_groups]

    def _between(self, start, end, done):
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2 * (1 + cos(pi * done))
        return (end - start) * done + start


def counted_steps(total_steps, epochs, steps_per_epoch):
    """The number of steps in all. Raises: ValueError unless it is given, and positive."""
    if total_steps is not None:
        given = {"total_steps": total_steps}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise ValueError("OneCycleLR: You must define either total_steps OR (epochs AND "
                         "steps_per_epoch)")
    product = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        product *= value
    return product


def phases(rise, total, three):
    """The parts of one cycle: the step at which each ends, and the options between which it goes.
    """
    ways = [(rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
    if three:
        ways.append((2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        ways.append((total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        ways.append((total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(names, way)) for way in ways]
