"""What a capture asks of optimisers, modules and blocks."""

from typing import Any

from tensorlib._core.graph import owners
from tensorlib.program.passes.facts import lasting


def rates_of(optimizer: Any) -> list[dict[str, Any]]:
    """The options of an optimiser's groups."""
    return [{key: x for key, x in group.items() if isinstance(x, (int, float, str, tuple))}
            for group in optimizer.param_groups]


def writes_outside(block: Any) -> bool:
    """Whether a block, or one in it, writes over what it did not make, or was given."""
    outside = lasting(block.ops, [*block.inputs, *block.reads()])
    return any(not outside.isdisjoint(call.writes()) if call.in_place
               else any(map(writes_outside, call.blocks())) for call in block.ops)


def has_hooks(module: Any) -> bool:
    """Whether hooks of a user are called before or after the `forward` of a module."""
    return any(
        not str(getattr(hook, "__module__", "")).startswith("tensorlib.")
        for hooks in (owners.modules.hooks_of_all, vars(module).get("_hooks")) if hooks is not None
        for hook in (*hooks.forward.values(), *hooks.forward_pre.values()))
