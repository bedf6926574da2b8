"""Gradients through calls in other processes, which there are not: `is_available` returns False."""

from typing import Any

from tensorlib._core.base.absent import absent

__all__ = ["context", "is_available"]


def is_available() -> bool:
    """False: there are no calls in other processes, nor gradients through them."""
    return False


context: Any = absent("context", "there are no calls in other processes", __name__)
