"""Averages of models over the steps of their training, after `torch.optim.swa_utils`."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from math import cos, pi
from typing import Any

from tensorlib import Tensor, no_grad, tensor
from tensorlib._core.base.explained import explain
from tensorlib.nn import Module
from tensorlib.nn.modules.batchnorm import _BatchNorm
from tensorlib.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_groups
from tensorlib.optim.optimizer import Optimizer

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def __dir__():
    return sorted(__all__)


# ---- averages ------------------------------------------------------------------------------------

def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function for `AveragedModel(avg_fn=...)`: a running mean, in which the old has `decay`.

    Raises: ValueError for a decay outside [0, 1].
    """
    check_decay(decay)

    @no_grad()
    def ema_update(averaged, current, num_averaged):
        return decay * averaged + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function for `AveragedModel(avg_fn=...)`: the mean in which all have the same weight."""
    @no_grad()
    def swa_update(averaged, current, num_averaged):
        return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """The same as `get_ema_avg_fn` for `AveragedModel(multi_avg_fn=...)`: it writes over lists.

    Raises: ValueError for a decay outside [0, 1].
    """
    check_decay(decay)
    return over_lists(get_ema_avg_fn(decay), lambda num_averaged: 1 - decay)


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The same as `get_swa_avg_fn` for `AveragedModel(multi_avg_fn=...)`: it writes over lists."""
    return over_lists(get_swa_avg_fn(), lambda num_averaged: 1 / (float(num_averaged) + 1))


def over_lists(average, weight):
    """A function that averages tensor by tensor, in place; floating-point ones in one pass."""
    @no_grad()
    def update(averaged, current, num_averaged):
        for old, new in zip(averaged, current, strict=True):
            if old.is_floating_point() or old.is_complex():
                old.lerp_(new, weight(num_averaged))
            else:
                old.copy_(average(old, new, num_averaged))

    return update


def check_decay(decay):
    """Raises ValueError unless the decay is in [0, 1]."""
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] "
                         "range.")


class AveragedModel(Module):
    """A copy of a model whose parameters are the mean of those that the model has had.

    `update_parameters(model)` takes the present ones in: at first they are copied, then averaged by
    avg_fn(averaged, current, num_averaged), or by multi_avg_fn, which is given lists of tensors and
    writes over the first; by default all have the same weight. Buffers are copied, or averaged as
    well with use_buffers=True.
    Source: P. Izmailov, D. Podoprikhin, T. Garipov, D. Vetrov & A. Wilson, "Averaging weights leads
    to wider optima and better generalization", 2018.

    >>> model = tensorlib.nn.Linear(1, 1, bias=False)
    >>> averaged = tensorlib.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = tensorlib.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged(tensorlib.ones(1)).item()
    2.0
    """

    def __init__(self, model: Module, device: Any = None,
                 avg_fn: Callable[..., Tensor] | None = None,
                 multi_avg_fn: Callable[..., None] | None = None,
                 use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the present parameters of a model into the mean."""
        pairs = list(zip(self.module.parameters(), model.parameters()))
        buffers = list(zip(self.module.buffers(), model.buffers()))
        if self.use_buffers:
            pairs += buffers
        else:
            for own, current in buffers:
                own.copy_(current)
        if self.n_averaged == 0:
            for own, current in pairs:
                own.copy_(current)
        elif self.avg_fn is not None:
            for own, current in pairs:
                own.copy_(self.avg_fn(own.detach(), current.detach(), self.n_averaged))
        else:
            average = self.multi_avg_fn or get_swa_multi_avg_fn()
            by_dtype = {}
            for own, current in pairs:
                by_dtype.setdefault(own.dtype, []).append((own.detach(), current.detach()))
            for of_one_dtype in by_dtype.values():
                average(*map(list, zip(*of_one_dtype)), self.n_averaged)
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of a model's batch normalisation anew, over all of a loader.

    An averaged model needs it before it is used. The loader gives inputs, or tuples that begin with
    one; each batch has the same weight.

    >>> model = tensorlib.nn.BatchNorm1d(1)
    >>> tensorlib.optim.swa_utils.update_bn([tensorlib.tensor([[1.0], [2.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    layers = {layer: layer.momentum for layer in model.modules() if isinstance(layer, _BatchNorm)}
    if not layers:
        return
    was_training = model.training
    model.train()
    try:
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    finally:
        for layer, momentum in layers.items():
            layer.momentum = momentum
        model.train(was_training)


# ---- its schedule --------------------------------------------------------------------------------

class SWALR(LRScheduler):
    """Moves learning rates to swa_lr in anneal_epochs, along a cosine or a line, and keeps them.

    Raises: ValueError for another strategy, and for epochs that are not a count.

    >>> optimizer = tensorlib.optim.SGD([tensorlib.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tensorlib.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> for epoch in range(3):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [1.0]
    [0.75]
    [0.5]
    """

    _not_in_state = ("optimizer", "anneal_func")

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
                 anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError("anneal_strategy must be one of 'cos' or 'linear', instead got "
                             f"{anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError("anneal_epochs must be equal or greater than 0, got "
                             f"{anneal_epochs}")
        for group, lr in zip(optimizer.param_groups, for_groups("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = lr
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, share = self._share(step - 1), self._share(step)
        return [group["swa_lr"] * share
                + first_rate(group["lr"], group["swa_lr"], before) * (1 - share)
                for group in self.optimizer.param_groups]

    def _share(self, step):
        """How much of the way has been gone after some steps."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - cos(pi * done)) / 2 if self._anneal_strategy == "cos" else done


def first_rate(lr, swa_lr, share):
    """The rate from which the schedule came to `lr` when it had gone this share of its way."""
    return swa_lr if share == 1 else (lr - share * swa_lr) / (1 - share)

explain(vars(), __all__)
