"""Dead code: calls whose results nobody reads."""

from collections.abc import Iterable

from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.passes.facts import has_effect


def without_dead(calls: Iterable[OpCall], wanted: Iterable[Variable],
                 given: Iterable[Variable], effects: bool = True) -> list[OpCall]:
    """The calls on which a wanted value depends.

    effects: calls with effects are kept, too.
    """
    needed = set(wanted)
    kept = []
    for call in reversed(list(calls)):
        if not needed.isdisjoint(call.outputs) or effects and has_effect(call):
            kept.append(call)
            needed.update(call.reads())
    return kept[::-1]
