"""Schedules that multiply the rates of all groups by one factor, or by those of functions.

`_factor` is what the rates of the epoch before are multiplied by, so schedules can be chained;
`_whole_factor` what the first rates are.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tensorlib.ops.foreign import members
from tensorlib.optim.lr_scheduler.base import (
    LRScheduler,
    attributes_of,
    check_optimizer,
    values_of,
)
from tensorlib.optim.optimizer import Optimizer


class FactorScheduler(LRScheduler):
    """A schedule with one factor for all groups."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        factor = self._factor()
        return [lr if factor == 1 else lr * factor for lr in values_of(self.optimizer)]

    def _get_closed_form_lr(self):
        factor = self._whole_factor()
        return [lr * factor for lr in self.base_lrs]


class StepLR(FactorScheduler):
    """Multiplies the learning rates by gamma every step_size epochs.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = tensorlib.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.5]
    [0.25]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1

    def _whole_factor(self):
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(FactorScheduler):
    """Multiplies the learning rates by gamma at each of some epochs, the milestones.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = tensorlib.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for epoch in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.25]
    [0.25]
    [0.125]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones = Counter(members("MultiStepLR", milestones))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma ** self.milestones[self.last_epoch]

    def _whole_factor(self):
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(FactorScheduler):
    """Multiplies the learning rates by a factor during the first total_iters epochs.

    Raises: ValueError for a factor outside [0, 1].

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = tensorlib.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> for epoch in range(3):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.25]
    [0.25]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("ConstantLR: Constant multiplicative factor expected to be between 0 "
                             f"and 1, got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.factor == 0 and self.last_epoch == self.total_iters:     # nothing leads back from 0
            return list(self.base_lrs)
        return super().get_lr()

    def _factor(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _whole_factor(self):
        return 1 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(FactorScheduler):
    """Scales the learning rates from start_factor to end_factor, linearly, in total_iters epochs.

    Raises: ValueError for factors outside [0, 1].

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> for epoch in range(3):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.75]
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("LinearLR: Starting multiplicative factor expected to be greater than "
                             f"0 and less or equal to 1, got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError("LinearLR: Ending multiplicative factor expected to be between 0 and "
                             f"1, got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return 1 + rise / before

    def _whole_factor(self):
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ExponentialLR(FactorScheduler):
    """Multiplies the learning rates by gamma after each epoch.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return 1 if self._is_initial else self.gamma

    def _whole_factor(self):
        return self.gamma**self.last_epoch


class PolynomialLR(FactorScheduler):
    """Lowers the learning rates to 0 in total_iters epochs, as (1 - epoch / total_iters)**power.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        left, before = (1 - epoch / self.total_iters
                        for epoch in (self.last_epoch, self.last_epoch - 1))
        return (left / before) ** self.power

    def _whole_factor(self):
        return (1 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


# ---- factors by functions ------------------------------------------------------------------------

class LambdaScheduler(LRScheduler):
    """A schedule with a function of the epoch for each group; plain ones are not in its state."""

    _not_in_state = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer,
                 lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        several = isinstance(lr_lambda, (list, tuple))
        if several and len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * groups
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError("lr_lambda should be a function, but got "
                                f"{type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """What the schedule knows; of its functions, the attributes of callable objects."""
        return {**super().state_dict(),
                "lr_lambdas": [attributes_of(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` of a schedule of the same kind gave."""
        state = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes is not None:
                vars(function).update(attributes)
        super().load_state_dict(state)


class LambdaLR(LambdaScheduler):
    """Sets the learning rates to the first ones times a function of the epoch.

    There is one function, or one for each group. Raises: ValueError for another number of them.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [lr * function(self.last_epoch)
                for lr, function in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaScheduler):
    """Multiplies the learning rates by a function of the epoch, or by one for each group.

    Raises: ValueError for another number of functions than of groups, TypeError for no functions.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.125]
    """

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        rates = values_of(self.optimizer)
        if self._is_initial:
            return rates
        return [lr * function(self.last_epoch)
                for lr, function in zip(rates, self.lr_lambdas, strict=True)]
