"""What scripts ask of Intel's GPUs, answered as PyTorch does on a machine without one."""

from .backends.absent import (
    device_count, is_available, manual_seed, manual_seed_all, needs_device,
)


def empty_cache() -> None:
    """Does nothing: there is no memory of such a GPU."""


synchronize = needs_device(
    "synchronize", "xpu.synchronize: tensorlib is not compiled with XPU enabled", __name__)

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all",
           "synchronize"]
