"""The older names of `tensorlib.amp`, for CUDA: with no GPU they do nothing, and say so."""

from ...amp import autocast_mode as autocast_mode
from ...amp import custom_bwd, custom_fwd
from ...amp import grad_scaler as grad_scaler
from ...amp.by_device import AutocastOfDevice, GradScalerOfDevice

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(AutocastOfDevice):
    """`tensorlib.amp.autocast("cuda")`: without a GPU it changes nothing, and warns."""

    device_of_module = "cuda"


class GradScaler(GradScalerOfDevice):
    """`tensorlib.amp.GradScaler("cuda")`: without a GPU it scales nothing, and warns."""

    device_of_module = "cuda"
