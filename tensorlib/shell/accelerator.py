"""What scripts ask of accelerators, answered as PyTorch does on a machine without one."""

from typing import Any

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

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream",
           "device_count", "is_available", "set_device_idx", "set_device_index", "set_stream",
           "synchronize"]
