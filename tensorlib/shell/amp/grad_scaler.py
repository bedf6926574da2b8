"""`GradScaler`: losses scaled up, so that small gradients of half precision do not underflow."""

from collections.abc import Iterable
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib._core.base.device import device as device_type
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import no_grad
from tensorlib.ops.declare import FUNCTIONS

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scales a loss before its backward, and the gradients back before a step.

    A step whose gradients have infinities or NaN is left out, and the scale falls by
    `backoff_factor`; after `growth_interval` steps without any it grows by `growth_factor`.
    For a device that does not exist it warns, and does nothing, as with `enabled=False`.
    Raises: ValueError for factors that would not let it grow and fall.

    >>> scaler = tensorlib.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(tensorlib.tensor(0.5))
    tensor(4.)
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        self._device = device_type(device).type
        self._enabled = bool(enabled)
        if self._enabled and self._device != "cpu":
            warn_of(f"GradScaler is enabled, but {self._device!r} is not available. "
                    "Disabling.", level=2)
            self._enabled = False
        if self._enabled and not (growth_factor > 1.0 and 0.0 < backoff_factor < 1.0):
            raise ValueError("GradScaler: growth_factor must be above 1 and backoff_factor between "
                             f"0 and 1, got {growth_factor} and {backoff_factor}")
        self._scale = float(init_scale)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        # a tensor, so that a captured function which reads the scale is captured once
        self._growth_tracker = FUNCTIONS["zeros"]((), dtype=BY_NAME["int64"])
        self._stages: dict[int, str] = {}             # of optimizers, since the last update
        self._found_inf: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of some in a container, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = [self.scale(output) for output in outputs]
            return tuple(scaled) if isinstance(outputs, tuple) else scaled
        raise ValueError("GradScaler.scale: expected a Tensor or an iterable of Tensors, got "
                         f"{type_name(outputs)}")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale: to clip them, say.

        Raises: RuntimeError where that was done already, or the step was.
        """
        if not self._enabled:
            return
        stage = self._stages.get(id(optimizer), READY)
        if stage != READY:
            raise RuntimeError("GradScaler.unscale_: "
                               + ("unscale_() has already been called on this optimizer since the "
                                  "last update()" if stage == UNSCALED else
                                  "it comes before step(), which has been called"))
        found_inf = False
        with no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        param.grad /= self._scale
                        found_inf = found_inf or not bool(
                            FUNCTIONS["isfinite"](param.grad).all())
        self._found_inf[id(optimizer)] = found_inf
        self._stages[id(optimizer)] = UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer's step gives; None where it was left out.

        Raises: RuntimeError for a second step before `update`, and for one with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("GradScaler.step: takes no closure")
        if self._stages.get(id(optimizer)) == STEPPED:
            raise RuntimeError("GradScaler.step: step() has already been called since the last "
                               "update()")
        if self._stages.get(id(optimizer), READY) == READY:
            self.unscale_(optimizer)
        self._stages[id(optimizer)] = STEPPED
        return None if self._found_inf[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Ends an iteration: the scale grows or falls, or becomes `new_scale`.

        Raises: RuntimeError where no gradients were checked.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found_inf:
            raise RuntimeError("GradScaler.update: no step() or unscale_() came before it")
        elif any(self._found_inf.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker.zero_()
        else:
            self._growth_tracker.add_(1)
            if int(self._growth_tracker) >= self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker.zero_()
        self._stages.clear()
        self._found_inf.clear()

    def get_scale(self) -> float:
        """The scale; 1 where it is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale falls by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale falls by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes; empty where it is not enabled."""
        return {} if not self._enabled else {
            "scale": self._scale, "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
            "_growth_tracker": int(self._growth_tracker)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on as another did. Raises: RuntimeError for the state of one not enabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler.load_state_dict: the state is empty, perhaps that of a "
                               "scaler that was not enabled")
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker.fill_(state_dict["_growth_tracker"])
