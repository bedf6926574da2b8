"""What scripts ask of Apple's GPUs, answered as PyTorch does on a machine without one."""

from .backends.absent import device_count, is_available, manual_seed, needs_device

synchronize = needs_device(
    "synchronize", "mps.synchronize: tensorlib is not compiled with MPS enabled", __name__)
empty_cache = needs_device(
    "empty_cache", "mps.empty_cache: Cannot execute emptyCache() without MPS backend.", __name__)

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
