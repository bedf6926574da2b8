"""What scripts ask of Intel's GPUs, answered as PyTorch does on a machine without one."""

from tensorlib._core.base.device import NoSuchDevice
from .backends.absent import is_available


def device_count() -> int:
    """0: there is no such GPU."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: `tensorlib.manual_seed` seeds the generator of the CPU."""


def manual_seed_all(seed: int) -> None:
    """Does nothing, as `manual_seed`."""


def empty_cache() -> None:
    """Does nothing: there is no memory of such a GPU."""


def synchronize(device: object = None) -> None:
    """Needs such a GPU. Raises: RuntimeError."""
    raise NoSuchDevice("xpu.synchronize: tensorlib is not compiled with XPU enabled")


__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all",
           "synchronize"]
