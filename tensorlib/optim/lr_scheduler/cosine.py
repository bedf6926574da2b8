"""Schedules along half a wave of the cosine."""

from math import cos, floor, log, pi
from typing import Any

from tensorlib._core.interpreters.stack import tell
from tensorlib.optim.lr_scheduler.base import LRScheduler, values_of
from tensorlib.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Lowers the learning rates along a cosine to eta_min in T_max epochs, and raises them again.

    Source: I. Loshchilov & F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017,
    without the restarts.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step()
    >>> schedule.step()
    >>> [round(lr, 6) for lr in schedule.get_last_lr()]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        rates = values_of(self.optimizer)
        if self._is_initial:
            return rates
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # from the lowest point there is no way up by a factor
            first = (1 - cos(pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * first for lr, base in zip(rates, self.base_lrs)]
        height, before = (1 + cos(pi * epoch / self.T_max)
                          for epoch in (self.last_epoch, self.last_epoch - 1))
        return [self.eta_min + height / before * (lr - self.eta_min) for lr in rates]

    def _get_closed_form_lr(self):
        height = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the learning rates along a cosine to eta_min, again and again from the first ones.

    The first time takes T_0 epochs, each next time T_mult times as many. `step` may be given a
    fraction of an epoch, to go along the cosine within epochs.
    Raises: ValueError unless T_0 and T_mult are positive integers. Source: I. Loshchilov &
    F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for epoch in range(4):
    ...     print([round(lr, 6) for lr in schedule.get_last_lr()])
    ...     optimizer.step()
    ...     schedule.step()
    [1.0]
    [0.5]
    [1.0]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type "
                             f"{type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0                       # epochs of the present time
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch              # epochs since it began
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        height = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next epoch, or to the one given, which may be a fraction.

        Raises: ValueError for a negative epoch.
        """
        tell("effect", "scheduler.step", None)
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = floor(epoch)
        with self._in_step():
            rates = self.get_lr()
        self._set_rates(rates)

    def _go_to(self, epoch):
        if self.T_mult == 1 or epoch < self.T_0:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
            return
        # after n times, T_0 * (1 + T_mult + ... + T_mult**(n - 1)) epochs are over
        n = int(log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * self.T_mult**n
