"""Common subexpressions: calls with the result of an earlier call."""

from collections.abc import Iterable
from typing import Any

from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.ir.nested import frozen
from tensorlib.program.passes.facts import (
    alike, lasting, may_write, pinned, traits_of, with_inputs, writes_its_own,
)


def without_common(calls: Iterable[OpCall], wanted: Iterable[Variable],
                   given: Iterable[Variable]) -> list[OpCall]:
    """The calls without those that repeat an earlier call on the same values."""
    found, given = list(calls), list(given)
    if writes_its_own(found, given):
        return found
    stay, last = pinned(found, wanted), lasting(found, given)
    replaced: dict[Variable, Variable] = {}
    known = Known()
    kept = []
    for call in found:
        call = with_inputs(call, replaced)
        traits, first = traits_of(call.type), None
        if may_write(call):
            known.forget(last)
        elif traits.pure and not traits.effect:
            first = known.like(call)
        if first is not None and all(x not in stay and alike(x, y) for x, y in zip(
                call.writes(), first.writes())):
            replaced.update(zip(call.writes(), first.writes()))
        else:
            kept.append(call)
    return kept


class Known:
    """Calls by type and first variable. Most are the only one with theirs, so that nothing else has
    to be compared."""

    def __init__(self) -> None:
        self.calls: dict[Any, dict[Any, OpCall] | OpCall] = {}

    def like(self, call: OpCall) -> OpCall | None:
        """An earlier call with the same result, or this call, which is then recorded."""
        place = call.type, next(iter(call.reads()), None)
        others = self.calls.setdefault(place, call)
        if others is call:
            return None
        if isinstance(others, OpCall):
            others = self.calls[place] = {key_of(others): others}
        key = key_of(call)
        first = None if key is None else others.setdefault(key, call)
        return None if first is call else first

    def forget(self, last: set[Variable]) -> None:
        """Forgets calls whose inputs or results may just have been written to."""
        every = [x for y in self.calls.values() for x in (
            (y,) if isinstance(y, OpCall) else y.values())]
        self.calls = {}
        for call in every:
            if last.isdisjoint(call.outputs) and last.isdisjoint(call.reads()):
                self.like(call)


def key_of(call: OpCall) -> Any:
    """A key that is equal for calls with the same result; None for calls that can't be replaced."""
    try:
        return (call.type, frozen(call.inputs), frozen(call.attributes),
                tuple(x is None for x in call.outputs))
    except TypeError:
        return None
