"""Queries of captures about optimisers, modules and blocks."""

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from tensorlib._core.graph import owners
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.guards.values import in_class
from tensorlib.program.ir.call_types import registered
from tensorlib.program.ir.model import OpCall
from tensorlib.program.passes.facts import lasting

# The methods by which an operation may ask an object of the user's what it is.
ASKED = tuple(f"__{x}__" for x in "index int float complex len getitem iter array".split())


def is_asked(x: Any) -> bool:
    """Whether an operation may run code of the user's to know what an object is."""
    return is_written_in_python(type(x)) and any(
        type(in_class(type(x), name)) is FunctionType for name in ASKED)


def rates_of(optimizer: Any) -> list[dict[str, Any]]:
    """The options of an optimiser's groups."""
    return [{key: x for key, x in group.items() if isinstance(x, (int, float, str, tuple))}
            for group in optimizer.param_groups]


def writes_outside(block: Any) -> bool:
    """Whether a block, or one in it, writes over what it did not make, or was given."""
    outside = lasting(block.ops, [*block.inputs, *block.reads()])
    return any(not outside.isdisjoint(call.writes()) if call.in_place
               else any(map(writes_outside, call.blocks())) for call in block.ops)


def record_hooks(module: Any, reads: Any) -> None:
    """Records the hooks before and after the `forward` of a module, which are part of its call."""
    found = vars(module).get("_hooks")
    for hooks in () if found is None else (found.forward_pre, found.forward):
        if hooks:
            reads.try_record(reads.record_container, hooks)
            reads.try_record(reads.record_reachable, hooks.values())


def are_hooked() -> bool:
    """Whether hooks of a user are called before or after the `forward` of all modules."""
    hooks = owners.modules.hooks_of_all
    return any(not str(getattr(hook, "__module__", "")).startswith("tensorlib.")
               for hook in (*hooks.forward.values(), *hooks.forward_pre.values()))


def have_formulas(calls: Iterable[OpCall]) -> bool:
    """Whether the library has the formulas for the gradients of all calls that have some."""
    return all(registered(call.type) is not None and "." not in call.type and not call.blocks()
               for call in calls if not all(x.stop_gradient for x in call.writes()))
