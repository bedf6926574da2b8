"""`tensorlib.utils.checkpoint.checkpoint`, where PyTorch has it."""

from tensorlib.autograd.recompute import CheckpointError, checkpoint

__all__ = ["CheckpointError", "checkpoint"]
