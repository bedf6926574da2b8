"""Tensors that PyTorch's compiler stands in for others, which are not here: `is_fake` says no."""

from typing import Any

from tensorlib._core.base.importing import parts_of

__all__ = ["is_fake"]

parts_of(__name__, "fake_tensor")


def is_fake(x: Any) -> bool:
    """False: what a function is captured with are tensors, on `meta` or not."""
    return False
