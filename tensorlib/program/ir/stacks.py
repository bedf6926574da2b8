"""Stacks: the values of a variable at each step of a loop, possibly nested."""

from collections.abc import Iterator
from typing import Any


class Stack(list[Any]):
    """The values of a variable at each step of a loop."""


def flattened(value: Any, found: list[Any]) -> Any:
    """The nesting of a value: None for a tensor, which is added to `found`."""
    if type(value) is Stack:
        return [flattened(x, found) for x in value]
    found.append(value)
    return None


def restored(nesting: Any, tensors: Iterator[Any]) -> Any:
    """The value with this nesting, made of tensors."""
    return next(tensors) if nesting is None else Stack([restored(x, tensors) for x in nesting])


def count(nesting: Any) -> int:
    """The number of tensors in a value with this nesting."""
    return 1 if nesting is None else sum(map(count, nesting))
