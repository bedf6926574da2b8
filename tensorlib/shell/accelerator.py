"""What scripts ask of accelerators, answered as PyTorch does on a machine without one."""

from importlib import import_module
from typing import Any

from tensorlib._core.base.device import device as device_type

from .backends.absent import device_count, is_available, needs_device


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator."""
    return None


def _needs_one(name: str) -> Any:
    return needs_device(name, f"accelerator.{name}: Cannot access accelerator device when none is "
                        "available.", __name__)


current_device_index = _needs_one("current_device_index")
current_device_idx = current_device_index
current_stream = _needs_one("current_stream")
set_device_index = _needs_one("set_device_index")
set_device_idx = set_device_index
set_stream = _needs_one("set_stream")
synchronize = _needs_one("synchronize")

MODULES = ("cpu", "cuda", "mps", "xpu")


def get_device_module(device: Any = None) -> Any:
    """The module of functions for a device, or its name: `tensorlib.cpu` by default.

    Raises: RuntimeError for one that has no module.
    """
    if device is not None and not isinstance(device, (str, device_type)):
        raise RuntimeError(f"get_device_module: device must be a device, a str or None, got "
                           f"{device!r}")
    kind = "cpu" if device is None else device_type(device).type
    if kind not in MODULES:
        raise RuntimeError(f"get_device_module: there is no module for devices of type {kind!r}")
    return import_module(f"tensorlib.{kind}")


__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream",
           "device_count", "get_device_module", "is_available", "set_device_idx",
           "set_device_index", "set_stream", "synchronize"]
