"""Intercepted calls in canonical form: the operation, arguments by name, the user's line."""

import os
import sys
from functools import cache
from operator import getitem
from pathlib import Path
from typing import Any

from tensorlib._core.graph.op import Op
from tensorlib._core.index.keys import Index
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import resolved

HOME = str(Path(__file__).parents[2])
IMPORTING = "(import)"       # the line of code that runs while its module is imported


def drawn(op: Op, args: tuple[Any, ...],
          kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors, and the attributes by name, of a random draw."""
    tensors = dict(zip(op.arguments, args))
    given = args[len(tensors):]
    if op.draws == ("size",) and len(given) != 1:
        given = (given,)                             # sizes one by one
    attributes = {**dict(zip(op.draws, given)), **kwargs}
    if "size" in attributes:
        size = attributes["size"]
        attributes["size"] = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    return tensors, {key: x for key, x in attributes.items() if x is not None}


def canonical(op: Op, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function that does a call as it was offered, its tensors, and its attributes by name."""
    if op.linearity == "composite":
        _, tensors, given = resolved(op, args, kwargs)
        return op.function, tensors, given
    count = len(op.arguments)
    given = {**dict(zip(op.attributes, args[count:])), **kwargs} if op.attributes else kwargs
    if op.key and op.may_view:                   # `x[key]`, of a key as it is written or parsed
        parsed = len(args) == 1 or isinstance(args[1], Index)       # or by name, as rules give it
        return op.function if parsed else getitem, args[:1], given
    return getattr(op.function, "canonical", op.function), args[:count], given


def gives_number(op: Op) -> bool:
    """Whether an operation returns a bool or a number that depends on elements."""
    return op.returns is not Tensor and op.reads_values


def plain(op: Op, given: dict[str, Any], value: Any) -> dict[str, Any]:
    """The attributes that differ from their defaults, with tensors as variables."""
    if not given:
        return {}
    defaults = dict(zip(op.attributes, op.defaults))
    defaults.pop("index", None)                  # of `x[None]`, which is no default
    return {key: value(x) for key, x in given.items()
            if isinstance(x, Tensor) or not (key in defaults and same(x, defaults[key]))}


def same(x: Any, y: Any) -> bool:
    """Whether two attributes are the same value of one type."""
    return type(x) is type(y) and (
        x is y or isinstance(x, (bool, int, float, complex, str)) and x == y)


def user_line() -> str:
    """The line of the user's code that is running: "file.py:12"; "" where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = name_of(frame.f_code.co_filename)
        if name:
            return name if name == IMPORTING else f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@cache
def name_of(path: str) -> str:
    """The name of a file in `user_line`; "" for one of the library."""
    if path.startswith("<frozen importlib"):
        return IMPORTING
    # (pathlib may be what is captured, and asks for this name)
    return "" if path.startswith(HOME) else path.rpartition(os.sep)[2]

