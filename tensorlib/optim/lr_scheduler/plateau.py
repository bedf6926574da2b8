"""`ReduceLROnPlateau`: a rate that falls when a metric stops improving."""

from math import inf
from typing import Any, SupportsFloat

from tensorlib._core.base.warned import warn_of
from tensorlib._core.interpreters.stack import tell
from tensorlib.optim.lr_scheduler.base import (
    EPOCH_GIVEN,
    LRScheduler,
    check_optimizer,
    set_value,
    values_of,
)
from tensorlib.optim.optimizer import Optimizer, as_number


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rates by factor when a figure has stopped getting better.

    mode: whether smaller ("min") or larger is better. A figure is better than the best so far by
    threshold, a share of it or, with threshold_mode="abs", a number. After more than patience
    epochs without one the rates fall, not below min_lr, and not by less than eps; then cooldown
    epochs do not count.
    Raises: ValueError for a factor of 1 or more, and for other modes.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1,
                 patience: int = 10, threshold: float = 1e-4, threshold_mode: str = "rel",
                 cooldown: int = 0, min_lr: float | list[float] = 0, eps: float = 1e-8) -> None:
        if not factor < 1:
            raise ValueError(f"ReduceLROnPlateau: Factor should be < 1.0, got {factor}")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer)
        self._set_mode(mode, threshold, threshold_mode)
        self._reset()

    def _set_mode(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode must be 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("ReduceLROnPlateau: threshold_mode must be 'rel' or 'abs', got "
                             f"{threshold_mode!r}")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: SupportsFloat, epoch: float | None = None) -> None:
        """Takes note of the figure of an epoch, a number or a tensor of one."""
        tell("effect", "scheduler.step", None)
        current = as_number(metrics)
        if epoch is not None:
            warn_of(EPOCH_GIVEN, UserWarning, level=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer)

    @property
    def in_cooldown(self) -> bool:
        """Whether the rates fell a short time ago."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a figure is better than the best one by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            bound = best * (1 - sign * self.threshold)
        else:
            bound = best - sign * self.threshold
        return sign * a < sign * bound

    def _reduce_lr(self, epoch):
        """Lowers the rates. Libraries put their own in its place, under PyTorch's name."""
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups.")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_value(group, "lr", new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` of a schedule of the same kind gave."""
        super().load_state_dict(state_dict)
        self._set_mode(self.mode, self.threshold, self.threshold_mode)
