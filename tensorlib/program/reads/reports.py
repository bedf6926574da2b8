"""What guards watch, in words."""

from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guarded import (
    MISSING,
    CellGuard,
    DictGuard,
    FunctionGuard,
    Guard,
    KindGuard,
    ListGuard,
    TypeGuard,
    ValueGuard,
    in_class,
)


def described(guard: Any) -> str:
    """What a guard watches, and the line that read it."""
    if not isinstance(guard, Guard):
        return "hooks of modules"
    return f"{what(guard)}, {guard.line}"


def what(guard: Guard) -> str:
    """What a guard watches: of what has changed the names alone, if anything has."""
    x = guard.holder
    kind = type(x).__name__
    if isinstance(guard, DictGuard):
        changed = [name for name, before in guard.read.items()
                   if dict.get(x, name, MISSING) is not before]
        names = ", ".join(map(repr, changed or guard.read))
        return f"{names} of a {kind}" if names else f"a {kind} of {len(x)} entries"
    if isinstance(guard, TypeGuard):
        changed = [name for name, before in guard.read.items() if in_class(x, name) is not before]
        return f"{', '.join(changed or guard.read)} of the class {x.__qualname__}"
    if isinstance(guard, ListGuard):
        places = ", ".join(map(str, guard.read))
        return f"a {kind}" + (f" at {places}" if guard.whole is None else "")
    if isinstance(guard, CellGuard):
        return "a variable of a function around it"
    if isinstance(guard, FunctionGuard):
        return f"the function {x.__qualname__}"
    if isinstance(guard, KindGuard):
        return f"the class of a {kind}"
    if isinstance(guard, ValueGuard) and isinstance(guard.key, str):
        return f"{guard.key} of a {kind}"
    return f"a {kind}"


def guard_of_gradient(x: Tensor) -> Guard:
    """A guard that a tensor has a gradient."""
    return ValueGuard(x, has_gradient, None, True, "")


def has_gradient(x: Tensor, _: Any) -> bool:
    """Whether a tensor has a gradient."""
    return x.grad is not None
