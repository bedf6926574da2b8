"""Descriptions of guards, for `explain` and for logs."""

from typing import Any

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import (
    CellGuard, DictGuard, FunctionGuard, Guard, KindGuard, ListGuard, TypeGuard, ValueGuard,
)
from tensorlib.program.guards.own_names import guard as guard_of_builtins
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.reads.known import LARGEST, contents_of_array

MOSTLY_RERUN = ("most of its replays had to run all operations again, for gradients with "
                "create_graph=True or between results")


def describe(guard: Any) -> str:
    """What a guard compares, in words, with the line that read it."""
    if not isinstance(guard, Guard):
        return "hooks of modules"
    return f"{subject_of(guard)}, {guard.line}"


def subject_of(guard: Guard) -> str:
    """What a guard compares, in words: if something has changed, that alone."""
    x = guard.holder
    kind = type(x).__name__
    if isinstance(guard, DictGuard):
        changed = [name for name, before in guard.read.items()
                   if dict.get(x, name, MISSING) is not before]
        names = ", ".join(map(repr, changed or guard.read))
        return f"{names} of a {kind}" if names else f"a {kind} of {len(x)} entries"
    if isinstance(guard, TypeGuard):
        read = {name: before for name, before in guard.read.items() if name}
        changed = [name for name, before in read.items() if in_class(x, name) is not before]
        names = changed or [*[x for x in read if not x.startswith("__")],
                            *["special methods"] * any(x.startswith("__") for x in read),
                            *["all names"] * (None in guard.read)]
        return f"{', '.join(names)} of the class {x.__qualname__}"
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
    if isinstance(x, np.ndarray) and contents_of_array(x) != contents_of_array(x):
        return (f"an array of {x.nbytes:,} bytes of {x.dtype}, or may, as objects and over "
                f"{LARGEST:,} bytes are not compared")
    return f"a {kind}"


def why_not(way: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why an earlier capture is not replayed for a call, in words."""
    tensors = way.kind.tensors_of(args, kwargs)
    if tensors is None:
        return way.kind.why(args, kwargs)
    broken = way.conditions.why()
    if broken is not None:
        return broken if isinstance(broken, str) else f"changed: {describe(broken)}"
    if way.overlaps is not None and not way.overlaps.hold(tensors):
        return "arguments share memory in another way"
    return "nothing differs any more"


def report_lines(name: str, ways: list[Any], reasons: list[str], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> list[str]:
    """The lines that `explain` prints for a compiled function and one of its calls.

    ways: its captures. reasons: why there was each of them after the first.
    """
    way = next((x for x in ways if x.kind.tensors_of(args, kwargs) is not None
                and not x.conditions.why()), None)
    count = f"{len(ways)} kind{'s' * (len(ways) != 1)} of calls {'is' if len(ways) == 1 else 'are'}"
    if way is None:
        lines = [f"{name}: captured in each call; {count} captured"]
    elif not way.is_replayed():
        lines = [f"{name}: runs eagerly: {way.why or MOSTLY_RERUN}"]
    else:
        lines = [f"{name}: replayed; {count} captured", "guarded beside the arguments:",
                 *dict.fromkeys(f"  {describe(x)}" for x in way.conditions.guards.all
                                if x is not guard_of_builtins)]
        if way.conditions.values:
            lines.append("read in each call: " + ", ".join(
                f"a tensor of shape {tuple(x.shape)}" for x in way.conditions.values))
    return lines + [f"captured again, since {x}" for x in reasons]


def guard_of_gradient(x: Tensor) -> Guard:
    """A guard that a tensor has a gradient."""
    return ValueGuard(x, has_gradient, None, True, "")


def has_gradient(x: Tensor, _: Any) -> bool:
    """Whether a tensor has a gradient."""
    return x.grad is not None
