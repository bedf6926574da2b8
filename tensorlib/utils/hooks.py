"""The handle that registering a hook returns, under the name that PyTorch keeps for it."""

from tensorlib._core.graph.handles import RemovableHandle

__all__ = ["RemovableHandle"]
