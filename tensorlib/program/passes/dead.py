"""Dead code: calls whose results nobody reads."""

from collections.abc import Iterable

from tensorlib.program.forms import DRAWS, WRITERS
from tensorlib.program.model import Block, OpCall, Variable

EFFECTS = ("set_grad", "optimizer_step")


def has_effect(call: OpCall) -> bool:
    """Whether a call does more than to give its results: it writes, or it draws numbers."""
    return (call.in_place or call.type in WRITERS or call.type in EFFECTS or call.type in DRAWS
            or any(map(block_has_effect, call.blocks())))


def block_has_effect(block: Block) -> bool:
    """Whether a call of a block does more than to give its results."""
    return any(map(has_effect, block.ops))


def without_dead(calls: Iterable[OpCall], wanted: Iterable[Variable],
                 given: Iterable[Variable]) -> list[OpCall]:
    """The calls without those of which nothing that is wanted depends."""
    needed = set(wanted)
    kept = []
    for call in reversed(list(calls)):
        if has_effect(call) or any(x in needed for x in call.writes()):
            kept.append(call)
            needed.update(call.reads())
            for block in call.blocks():
                needed.update(x for inner in inner_calls(block) for x in inner.reads())
    return kept[::-1]


def inner_calls(block: Block) -> Iterable[OpCall]:
    """The calls of a block and of the blocks within it."""
    for call in block.ops:
        yield call
        for inner in call.blocks():
            yield from inner_calls(inner)
