"""PyTorch's fake tensors, which are not supported: `is_fake` returns False."""

from contextlib import nullcontext
from typing import Any

from tensorlib._core.base.importing import parts_of

__all__ = ["is_fake"]

parts_of(__name__, "fake_tensor")


def is_fake(x: Any) -> bool:
    """False: what a function is captured with are tensors, on `meta` or not."""
    return False


unset_fake_temporarily = nullcontext        # a context in which fake tensors are not made
