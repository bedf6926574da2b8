"""Common subexpressions: calls that give what one before them has given."""

from collections.abc import Iterable
from typing import Any

from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.ir.nested import frozen
from tensorlib.program.passes.facts import (
    alike, lasting, may_write, pinned, traits_of, with_inputs, writes_its_own,
)


def without_common(calls: Iterable[OpCall], wanted: Iterable[Variable],
                   given: Iterable[Variable]) -> list[OpCall]:
    """The calls without those that do once more what one before them does on the same values."""
    found, given = list(calls), list(given)
    if writes_its_own(found, given):
        return found
    stay, last = pinned(found, wanted), lasting(found, given)
    replaced: dict[Variable, Variable] = {}
    known: dict[Any, OpCall] = {}
    kept = []
    for call in found:
        call = with_inputs(call, replaced)
        key = None
        if may_write(call):
            known = {key: first for key, first in known.items() if
                     last.isdisjoint(first.outputs) and last.isdisjoint(first.reads())}
        else:
            key = key_of(call)
        first = None if key is None else known.get(key)
        if first is not None and all(x not in stay and alike(x, y) for x, y in zip(
                call.writes(), first.writes())):
            replaced.update(zip(call.writes(), first.writes()))
            continue
        if key is not None and first is None:
            known[key] = call
        kept.append(call)
    return kept


def key_of(call: OpCall) -> Any:
    """What two calls share that give the same; None for one that others can't stand for. It does
    not write."""
    traits = traits_of(call.type)
    if traits.effect or not traits.pure:
        return None
    try:
        return (call.type, frozen(call.inputs), frozen(call.attributes),
                tuple(x is None for x in call.outputs))
    except TypeError:
        return None
