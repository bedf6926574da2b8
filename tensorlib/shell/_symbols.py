"""`sym_int` and the like: functions of numbers that may be symbols in PyTorch's compiler.

Here sizes are ints and numbers floats, also where functions are captured.
"""

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt",
           "sym_sum"]


def sym_float(a: Any) -> float:
    """`float(a)`."""
    return float(a)


def sym_int(a: Any) -> int:
    """A number without its fraction: `int(a)`."""
    return int(a)


def sym_not(a: Any) -> bool:
    """`not a`."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t if b else f`. Raises: TypeError for values of two types."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise TypeError("sym_ite: takes a bool and two values of one type, got "
                        f"{', '.join(type(x).__name__ for x in (b, t, f))}")
    return t if b else f


def _of_one_type(chosen: Any, *numbers: Any) -> Any:
    return float(chosen) if any(isinstance(x, float) for x in numbers) else chosen


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers: a float where one of them is.

    >>> tensorlib.sym_max(3, 2.5)
    3.0
    """
    return _of_one_type(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers: a float where one of them is."""
    return _of_one_type(min(a, b), a, b)


def sym_sqrt(a: Any) -> float:
    """`math.sqrt(a)`."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """`sum(args)`."""
    return sum(args)
