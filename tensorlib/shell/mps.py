"""What scripts ask of Apple's GPUs, answered as PyTorch does on a machine without one."""

from tensorlib._core.base.device import NoSuchDevice
from .backends.absent import is_available


def device_count() -> int:
    """0: there is no such GPU."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: `tensorlib.manual_seed` seeds the generator of the CPU."""


def synchronize() -> None:
    """Needs such a GPU. Raises: RuntimeError."""
    raise NoSuchDevice("mps.synchronize: tensorlib is not compiled with MPS enabled")


def empty_cache() -> None:
    """Needs such a GPU. Raises: RuntimeError."""
    raise NoSuchDevice("mps.empty_cache: Cannot execute emptyCache() without MPS backend.")


__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
