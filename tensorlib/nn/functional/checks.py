"""Checks of arguments that functions of networks share."""

from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor


def check_optional(name, **tensors):
    """Raises TypeError for what is neither a Tensor nor None."""
    for what, x in tensors.items():
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(f"{name}: {what} must be a Tensor or None, not {type_name(x)}")
