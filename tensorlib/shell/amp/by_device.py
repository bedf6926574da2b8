"""The older names of `autocast` and `GradScaler`, in modules of devices: `cuda.amp`, `cpu.amp`."""

from typing import Any

from tensorlib._core.base.warned import warn_of

from .autocast_mode import autocast
from .grad_scaler import GradScaler


def _warn_of_age(device: str, name: str) -> None:
    warn_of(f"`tensorlib.{device}.amp.{name}(args...)` is deprecated. Please use "
            f"`tensorlib.amp.{name}({device!r}, args...)` instead.", FutureWarning, level=3)


class AutocastOfDevice(autocast):
    """`autocast` for the device of the module, with a warning."""

    device_of_module: str

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _warn_of_age(self.device_of_module, "autocast")
        super().__init__(self.device_of_module, dtype, enabled, cache_enabled)


class GradScalerOfDevice(GradScaler):
    """`GradScaler` for the device of the module, with a warning."""

    device_of_module: str

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        _warn_of_age(self.device_of_module, "GradScaler")
        super().__init__(self.device_of_module, init_scale, growth_factor, backoff_factor,
                         growth_interval, enabled)
