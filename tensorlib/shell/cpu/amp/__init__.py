"""The older names of `tensorlib.amp`, for the CPU."""

from ...amp import autocast_mode as autocast_mode
from ...amp import grad_scaler as grad_scaler
from ...amp.by_device import AutocastOfDevice, GradScalerOfDevice

__all__ = ["GradScaler", "autocast"]


class autocast(AutocastOfDevice):
    """`tensorlib.amp.autocast("cpu")`, with a warning.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"), autocast():
    ...     (tensorlib.ones(2, 2) @ tensorlib.ones(2, 2)).dtype
    tensorlib.bfloat16
    """

    device_of_module = "cpu"


class GradScaler(GradScalerOfDevice):
    """`tensorlib.amp.GradScaler("cpu")`, with a warning."""

    device_of_module = "cpu"
