"""Stacks: the values of a variable at each step of a loop, possibly nested."""

from collections.abc import Iterator
from typing import Any


class Stack(list[Any]):
    """The values of a variable at each step of a loop."""


def flattened(value: Any, found: list[Any]) -> Any:
    """How a value is nested: None for a tensor, which is added to those found."""
    if type(value) is Stack:
        return [flattened(x, found) for x in value]
    found.append(value)
    return None


def restored(nesting: Any, tensors: Iterator[Any]) -> Any:
    """The value that is nested so, made of tensors."""
    return next(tensors) if nesting is None else Stack([restored(x, tensors) for x in nesting])


def count(nesting: Any) -> int:
    """The number of tensors in a value that is nested so."""
    return 1 if nesting is None else sum(map(count, nesting))
