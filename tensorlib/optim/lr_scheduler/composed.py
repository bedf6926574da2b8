"""`SequentialLR` and `ChainedScheduler`: schedules made of others."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tensorlib._core.interpreters.stack import tell
from tensorlib.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    set_value,
    values_of,
)
from tensorlib.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tensorlib.optim.optimizer import Optimizer


class CompositeScheduler(LRScheduler):
    """A schedule whose state is that of others too."""

    _not_in_state = ("optimizer", "_schedulers")

    def _check(self, schedulers, optimizer):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for i, each in enumerate(schedulers):
            if not hasattr(each, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(each, ReduceLROnPlateau):
                raise ValueError(f"{name} does not support `ReduceLROnPlateau` scheduler as it "
                                 "requires additional kwargs to be specified when calling `step`, "
                                 f"but got one at index {i} in the given schedulers sequence.")
            wanted = schedulers[0].optimizer if optimizer is None else optimizer
            if each.optimizer is not wanted:
                raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, "
                                 f"but got scheduler {type(each).__name__} at index {i} with "
                                 "another one.")
        return wanted

    def state_dict(self) -> dict[str, Any]:
        """What the schedule and those that it is made of know."""
        return {**super().state_dict(),
                "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` of a schedule of the same kind gave."""
        state = dict(state_dict)
        for each, own_state in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            each.load_state_dict(own_state)
        super().load_state_dict(state)


class SequentialLR(CompositeScheduler):
    """One schedule after another: the next one begins at each of the milestones.

    Raises: ValueError for schedules of several optimisers, and for a number of milestones that is
    not one less than theirs; TypeError.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> rise = tensorlib.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> fall = tensorlib.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = tensorlib.optim.lr_scheduler.SequentialLR(
    ...     optimizer, [rise, fall], milestones=[2])
    >>> for epoch in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.75]
    [1.0]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler],
                 milestones: list[int], last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}")
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:         # each of them has made its first step
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        self._schedulers[bisect_right(milestones, 0)]._initial_step()
        self._last_lr = values_of(optimizer)

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Takes back the first step of all schedules that this one, or `sched`, is made of."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for each in sched._schedulers:
                self.recursive_undo(each)
        else:
            sched.last_epoch -= 1

    def step(self) -> None:
        """Goes on to the next epoch of the schedule whose turn it is."""
        tell("effect", "scheduler.step", None)
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(CompositeScheduler):
    """All schedules at once: each goes on from the learning rates that the one before it has set.

    Raises: ValueError for schedules of several optimisers, TypeError.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.ChainedScheduler([
    ...     tensorlib.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2),
    ...     tensorlib.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)])
    >>> for epoch in range(3):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.25]
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler],
                 optimizer: Optimizer | None = None) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self._last_lr = values_of(self.optimizer)

    def step(self) -> None:
        """Goes on to the next epoch of all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer)
