"""What scripts ask of accelerators, answered as PyTorch does on a machine without one."""

from collections.abc import Callable
from typing import Any

from tensorlib._core.base.device import NoSuchDevice


def is_available() -> bool:
    """False: there is no accelerator."""
    return False


def device_count() -> int:
    """0: there is no accelerator."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator."""
    return None


def _needs_one(name: str) -> Callable[..., Any]:
    """The function of this name, which can only raise."""
    def function(*args: object, **kwargs: object) -> Any:
        raise NoSuchDevice(f"accelerator.{name}: Cannot access accelerator device when none is "
                           "available.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Needs an accelerator. Raises: RuntimeError."
    return function


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
