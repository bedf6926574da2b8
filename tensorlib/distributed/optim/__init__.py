"""Optimisers whose states are sharded among ranks."""

from tensorlib.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
