"""Sizes given as one number for all dims, or one for each."""

from collections.abc import Iterable
from typing import Any

Sizes = int | tuple[int, ...]


def for_each_dim(name: str, value: Any, ndim: int) -> tuple[Any, ...]:
    """A tuple with a number for each dim. Raises: ValueError where they are not so many."""
    if not isinstance(value, Iterable):
        return (value,) * ndim
    values = tuple(value)
    if len(values) != ndim:
        raise ValueError(f"{name} must be one number or {ndim}, got {values}")
    return values
