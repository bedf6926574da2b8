"""What all schedules share: they count epochs, and set the rates of an optimiser's groups."""

from contextlib import contextmanager
from types import FunctionType
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib import Tensor
from tensorlib._core.interpreters.stack import tell
from tensorlib.optim.optimizer import Optimizer

EPOCH_GIVEN = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available.")


def values_of(optimizer, key="lr"):
    """What each group of an optimiser has under a key; copies of tensors."""
    return [own(group[key]) for group in optimizer.param_groups]


def own(value):
    """A copy of a tensor, which will be written; another value itself."""
    return value.clone() if isinstance(value, Tensor) else value


def set_value(group, key, value):
    """Sets an option of a group; a tensor that is there is written."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def for_groups(name, optimizer, value):
    """A list with one value for each group. Raises: ValueError for one of another length."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [own(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has "
                         f"{len(value)} values, param_groups has {groups}.")
    return [own(each) for each in value]


def check_optimizer(optimizer):
    """Raises TypeError unless this is an optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def attributes_of(function):
    """The attributes of a callable object, which a state keeps; None for a plain function."""
    return None if isinstance(function, FunctionType) else dict(vars(function))


class LRScheduler:
    """The base of all schedules.

    A subclass has a method `get_lr` that gives the rate of each group for the epoch `last_epoch`,
    from the rates of the epoch before (`self.optimizer.param_groups`) or from the first ones
    (`self.base_lrs`). With last_epoch = -1 the schedule begins; otherwise it goes on after that
    epoch, and the groups have an `initial_lr`.
    Raises: TypeError for what is not an optimiser, KeyError for a group without an `initial_lr`.

    >>> class Halving(tensorlib.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=0.8)
    >>> schedule = Halving(optimizer)
    >>> for epoch in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.2]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _not_in_state = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when "
                               "resuming a scheduler with last_epoch >= 0: load the state of the "
                               "optimizer first")
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """What the schedule knows, without its optimiser and without functions."""
        return {name: value for name, value in vars(self).items()
                if name not in self._not_in_state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` of a schedule of the same kind gave."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group, as it was set last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rate of each group for the epoch `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next epoch: sets the learning rates of the optimiser's groups.

        It belongs after the optimiser's own step. To name an epoch is deprecated.
        """
        tell("effect", "scheduler.step", None)
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warn_of(EPOCH_GIVEN, UserWarning, level=2)
        self._update_lr(epoch)

    def _check_order(self):
        if "step" in vars(self.optimizer):
            warn_of("Seems like `optimizer.step()` has been overridden after learning rate "
                    "scheduler initialization. Please, make sure to call `optimizer.step()` before "
                    "`lr_scheduler.step()`.", UserWarning, level=3)
        elif not self.optimizer._opt_called:
            warn_of("Detected call of `lr_scheduler.step()` before `optimizer.step()`. They should "
                    "be called in the opposite order: `optimizer.step()` before "
                    "`lr_scheduler.step()`. Otherwise the first value of the learning rate "
                    "schedule is skipped.", UserWarning, level=3)

    def _update_lr(self, epoch=None):
        closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        with self._in_step():
            rates = self._get_closed_form_lr() if closed else self.get_lr()
        self._set_rates(rates)

    def _set_rates(self, rates):
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer)

    @contextmanager
    def _in_step(self):
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self):
        """For `get_lr`, which depends on the rates of the epoch before."""
        if not self._get_lr_called_within_step:
            warn_of("To get the last learning rate computed by the scheduler, please use "
                    "`get_last_lr()`.", UserWarning, level=3)


class _LRScheduler(LRScheduler):
    """The older name of `LRScheduler`."""
