"""Checks before writes: calls that may fail run before anything is changed, if possible.

A replay that fails after a write has to restore what was there, and so keeps a copy of it. Without
this pass, a cache of keys and values that is written at a position would be copied at each call,
since the position may be out of range.
"""

from typing import Any

from tensorlib.ops.lazy import operations
from tensorlib.program.ir.call_types import operation
from tensorlib.program.ir.model import OpCall, Variable, variables_in
from tensorlib.program.passes.facts import changes, is_pure, is_view, may_fail


def checks_first(calls: list[OpCall], given: dict[Variable, Any]) -> tuple[list[OpCall], set[int]]:
    """The calls in a new order: those that may fail, and what they need, come before the first one
    with an effect, unless they depend on it. Also the ids of calls whose positions are checked
    there, so that they can't fail.

    given: the places of the inputs in memory.
    """
    begin = next((i for i, call in enumerate(calls) if changes(call)), len(calls))
    later = calls[begin:]
    if not any(map(may_fail, later[1:])):
        return calls, set()
    changed = memory_of_writes(calls, given)
    makers: dict[Variable, OpCall] = {}
    for call in later:
        if (is_pure(call) or call.type == "check") and changed.isdisjoint(call.reads()):
            makers.update((x, call) for x in call.writes())
        else:
            changed.update(call.writes())
    first: dict[int, OpCall] = {}
    asked: set[int] = set()

    def needs(x: Variable) -> None:
        call = makers.get(x)
        if call is not None and id(call) not in first:
            move(call)

    def move(call: OpCall) -> None:
        for x in call.reads():
            needs(x)
        first[id(call)] = call

    probes = []
    there = {*given, *(x for call in calls[:begin] for x in call.writes())}
    for call in filter(may_fail, later):
        places = variables_in(call.attributes)
        if any(makers.get(x) is call for x in call.writes()) or call.type == "check" and (
                changed.isdisjoint(call.reads())):
            move(call)
        elif is_at_places(call) and call.inputs["input"] in there and (
                changed.isdisjoint(places)) and call is not later[0]:
            for x in places:
                needs(x)
            probes.append(probe_of(call))
            asked.add(id(call))
    rest = [call for call in later if id(call) not in first]
    return [*calls[:begin], *first.values(), *probes, *rest], asked


def memory_of_writes(calls: list[OpCall], given: dict[Variable, Any]) -> set[Variable]:
    """The variables that may share memory with something that calls write to."""
    found = {x for call in calls if changes(call)
             for x in set(call.outputs).intersection(call.reads())}
    views = [{next(iter(call.inputs.values())), *call.writes()} for call in calls if is_view(call)]
    count = -1
    while count != len(found):
        count = len(found)
        places = {given[x] for x in found if x in given}
        found.update(x for x, place in given.items() if place in places)
        for view in views:
            if not found.isdisjoint(view):
                found |= view
    return found


def is_at_places(call: OpCall) -> bool:
    """Whether a call reads or writes its input at an index expression."""
    op = operation(call.type.removesuffix("_"))
    return op is not None and bool(op.key) and op.arguments[0] == "input" and (
        "shape" not in op.attributes)


def probe_of(call: OpCall) -> OpCall:
    """A call that reads at the same index expression, and so fails for the same positions."""
    x = next(iter(call.inputs.values()))
    made = x.block.new_variable("asked", (None,), x.dtype, stop_gradient=True)
    return OpCall(operations.getitem.name, {"input": x}, (made,),
                  {"index": call.attributes["index"]}, call.line)
