"""Optimisers whose states are shared out among ranks."""

from tensorlib.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
