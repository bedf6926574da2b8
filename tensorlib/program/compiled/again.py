"""Calls that are run again to build their graph, after tensors that they read were overwritten.

The graph of an eager call has the version of each value that it saves. If a value was overwritten
since, the sweep raises where a gradient needs it; where none does, its contents do not matter. So
the calls run on the present contents. The values that the replay's node has saved replace the
results of the calls, and a saved tensor that was overwritten is saved with its old version. If a
node would save something else that was computed from overwritten values, the graph cannot be built.
"""

from collections.abc import Callable
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import no_grad
from tensorlib.program.compiled.replay_node import number_now, resave
from tensorlib.program.guards.signatures import storage_of
from tensorlib.program.ir.call_types import registered
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.passes.facts import lasting


class Gone(Exception):
    """A value that a graph needs is no longer there."""


class Writes:
    """Where calls write into what they are given: `places` has for each of these variables the
    numbers of the calls that write into it, in place or by way of a view."""

    def __init__(self, calls: list[OpCall], given: list[Variable]):
        self.number = {id(call): i for i, call in enumerate(calls)}
        over = [(i, set(call.writes())) for i, call in enumerate(calls) if call.in_place]
        self.places: dict[Variable, list[int]] = {}
        for x in given if over else ():
            views = lasting(calls, [x], others=False)
            places = [i for i, written in over if not views.isdisjoint(written)]
            if places:
                self.places[x] = places


def run_after_writes(calls: list[OpCall], values: dict[Variable, Any], run: Callable[..., None],
                     writes: Writes, versions: dict[Variable, int],
                     saved: dict[Variable, Any]) -> None:
    """Has calls run on what is there now, and leaves the graph of then.

    run: runs calls on values. versions: of each variable that is given, its version after the
    calls ran for the first time. saved: what they gave, as far as it was kept. Raises: Gone.
    """
    given = [(x, storage_of(values[x])) for x in versions]
    after = {place: versions[x] for x, place in given}
    changed = {place for x, place in given if values[x]._version != versions[x]}
    written: dict[int, set[int]] = {}
    for x, place in given:
        written.setdefault(place, set()).update(writes.places.get(x, ()))
    wrong: set[Variable] = set()
    for call in calls:
        number, late, is_wrong = writes.number[id(call)], {}, False
        for x in call.reads():
            place = storage_of(values[x]) if isinstance(values.get(x), Tensor) else None
            is_wrong = is_wrong or x in wrong
            if place in after:
                to_come = sum(i > number for i in written[place])
                if to_come or place in changed:
                    late[place] = after[place] - to_come
        since = number_now()
        if not (late or is_wrong):
            run([call], values)
            continue
        op = registered(call.type)
        if op is None or op.linearity == "composite" or call.blocks():
            raise Gone
        try:
            run([call], values)
        except Exception:
            raise Gone from None
        for x in call.writes():
            if storage_of(values[x]) in after:                # a view, which is read later
                continue
            if x in saved:
                with no_grad():
                    values[x].data.copy_(saved[x])
            else:
                wrong.add(x)
        right = {storage_of(y) for x, y in values.items()
                 if isinstance(y, Tensor) and x not in wrong}
        right.difference_update([storage_of(values[x]) for x in wrong])
        if not resave([values[x] for x in call.writes()], since, late, right):
            raise Gone
