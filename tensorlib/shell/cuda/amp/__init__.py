"""The older names of `tensorlib.amp`, for CUDA: with no GPU they do nothing, and say so."""

from typing import Any

from tensorlib._core.base.warned import warn_of

from ... import amp
from ...amp import autocast_mode as autocast_mode
from ...amp import custom_bwd, custom_fwd
from ...amp import grad_scaler as grad_scaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _warn_of_age(name: str) -> None:
    warn_of(f"`tensorlib.cuda.amp.{name}(args...)` is deprecated. Please use "
            f"`tensorlib.amp.{name}('cuda', args...)` instead.", FutureWarning, level=3)


class autocast(amp.autocast):
    """`tensorlib.amp.autocast("cuda")`: without a GPU it changes nothing, and warns."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _warn_of_age("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`tensorlib.amp.GradScaler("cuda")`: without a GPU it scales nothing, and warns."""

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        _warn_of_age("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)
