"""`tensorlib.utils.checkpoint.checkpoint` and the like, where PyTorch has them."""

from tensorlib.autograd.recompute import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
)

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn"]
