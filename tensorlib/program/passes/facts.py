"""Facts about calls that passes need: whether one may be removed, moved, or done once for all runs.

A variable *lasts* if its memory exists before a run, or may: it is an input or a persistable
variable, or may be a view of one. Writes may change its value.
"""

from collections.abc import Container, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from tensorlib.program.ir.call_types import (
    WRITERS, form_of, form_of_call, is_sum_of_parts, operation, record_of, registered,
)
from tensorlib.program.ir.model import OpCall, Variable, variables_in
from tensorlib.program.ir.nested import mapped


CONTROL = ("cond", "while_loop", "scan")        # their results have memory of their own


class Traits(NamedTuple):
    """What holds for all calls of a type that have no blocks.

    effect: it does, or may do, more than compute its results: it writes, or draws random numbers.
    writes: to existing values. checks: it fails for some elements. keeps: it does not write to
    tensors among its attributes. pure: the same values always give the same bits. elementwise: it
    is an element-wise operation of the registry. packs: its result, a matrix, is new and row-major,
    whatever the layout of its operands.
    """

    effect: bool
    writes: bool
    checks: bool
    keeps: bool
    pure: bool
    elementwise: bool
    packs: bool


@cache
def traits_of(type: str) -> Traits:
    """The traits of the calls of a type. Raises: UnknownType."""
    form, own, base = form_of(type), registered(type), record_of(type)
    over = type.endswith("_") or type in WRITERS
    if over or base is None:              # a write, or a type that only programs have
        return Traits(effect=over or form.effect, writes=over or form.writes, checks=False,
                      keeps=False, pure=form.pure, elementwise=False, packs=False)
    known = base.pure            # otherwise it may do anything
    return Traits(effect=not known or own is not None and own.random, writes=not known,
                  checks=own is not None and own.checks_values, keeps=bool(base.key),
                  pure=base.pure and not base.random,
                  elementwise=own is not None and own.elementwise,
                  packs=own is not None and own.packs)


def has_effect(call: OpCall) -> bool:
    """Whether a call does more than compute its results: it writes, also to an argument, it draws
    random numbers, or it fails for some elements."""
    if call.attributes and (blocks := call.blocks()):
        return any(has_effect(inner) for block in blocks for inner in block.ops)
    traits = traits_of(call.type)
    return traits.effect or bool(call.attributes.get("statistics")) or (
        traits.checks and may_refuse(call))


def changes(call: OpCall) -> bool:
    """Whether a call changes existing values, or draws random numbers."""
    if blocks := call.blocks():
        return any(changes(inner) for block in blocks for inner in block.ops)
    return call.type != "check" and traits_of(call.type).effect


def may_refuse(call: OpCall) -> bool:
    """Whether a call that checks elements may fail: for integers if it is element-wise, and for the
    tensors in its index expression if it has one."""
    traits = traits_of(call.type)
    if traits.elementwise:
        return not any(x is not None and x.dtype.is_floating_point for x in call.outputs)
    return not traits.keeps or has_tensors(call)


def may_fail(call: OpCall) -> bool:
    """Whether a call may fail for some elements, or has unknown effects."""
    if blocks := call.blocks():
        return any(may_fail(inner) for block in blocks for inner in block.ops)
    if call.type in WRITERS:
        return has_tensors(call)
    if call.in_place:
        base = operation(call.type[:-1])
        return base is None or base.checks_values and not (
            base.elementwise and call.outputs[0].dtype.is_floating_point) and (
                not base.key or has_tensors(call))
    traits = traits_of(call.type)
    return call.type in ("check", "function") or traits.checks and may_refuse(call) or (
        traits.writes and record_of(call.type) is not None)


def fails_before_it_changes(call: OpCall) -> bool:
    """Whether a call that fails has changed nothing: one operation of the library."""
    return not call.blocks() and (call.in_place or registered(call.type) is not None
                                  and not traits_of(call.type).writes)


def undone_at_failure(calls: list[OpCall], asked: Container[int] = ()) -> list[OpCall]:
    """The calls that change something before a later one may fail; those `asked` before can't
    fail."""
    last = max((i for i, call in enumerate(calls) if may_fail(call) and id(call) not in asked),
               default=-1)
    if last < 0:
        return []
    before = calls[:last] if fails_before_it_changes(calls[last]) else calls[:last + 1]
    return [call for call in before if changes(call)]


def may_write(call: OpCall) -> bool:
    """Whether a call may write to existing values."""
    traits = traits_of(call.type)
    return traits.writes or bool(call.attributes) and (
        bool(call.blocks()) or not traits.keeps and has_tensors(call))


def has_tensors(call: OpCall) -> bool:
    """Whether a call has tensors among its attributes, such as the statistics of a norm."""
    attributes = call.attributes
    if len(attributes) == 1 and "likes" in attributes:
        return False
    return bool(variables_in([x for name, x in attributes.items() if name != "likes"]))


def is_pure(call: OpCall) -> bool:
    """Whether a call has no effect, and the same values always give the same bits."""
    traits = traits_of(call.type)
    return traits.pure and not traits.effect and not may_write(call)


def is_elementwise(call: OpCall) -> bool:
    """Whether a call is of an element-wise operation of the registry: its result is new."""
    return traits_of(call.type).elementwise


def writes_its_own(calls: Iterable[OpCall], given: Iterable[Variable]) -> bool:
    """Whether a call writes to a value that the program made. Then no two values may be merged."""
    known = set(given)
    return any(x not in known for call in calls
               if call.in_place or call.type in WRITERS for x in call.writes())


def pinned(calls: Iterable[OpCall], wanted: Iterable[Variable]) -> set[Variable]:
    """The variables that must not be replaced: wanted ones, those that become a `.grad`, and those
    that blocks read."""
    found = set(wanted)
    for call in calls:
        if call.attributes and call.blocks() or form_of_call(call).effect:
            found.update(call.reads())
    return found


def lasting(calls: Iterable[OpCall], given: Iterable[Variable]) -> set[Variable]:
    """The variables that last: the inputs, others that have a value, and views of these."""
    found = set(given)
    for read, written in sharing(calls):
        if any(x in found or x.persistable for x in read):
            found.update(written)
    return found


def sources(calls: Iterable[OpCall], given: Iterable[Variable]) -> dict[Variable, set[Variable]]:
    """Of which of the given variables each variable may be a view, or is one of them; without those
    that are of none."""
    found = {x: {x} for x in given}
    for read, written in sharing(calls):
        if known := [found[x] for x in read if x in found]:
            for x in written:
                found[x] = found.get(x, set()).union(*known)
    return found


def sharing(calls: Iterable[OpCall]) -> Iterator[tuple[list[Variable], list[Variable]]]:
    """What each call reads and what it makes of that, where these may share memory."""
    for call in calls:
        traits = traits_of(call.type)
        if not (traits.elementwise or traits.packs or call.type in CONTROL or (
                is_sum_of_parts(call) and len(call.inputs["parts"]) > 1)):
            read = call.reads()
            yield read, call.writes() if not call.in_place else [
                x for x in call.writes() if x not in read]             # else as it was


def is_view(call: OpCall) -> bool:
    """Whether the result of a call may share the memory of its first input."""
    if call.in_place or call.blocks() or len(call.outputs) != 1:
        return False
    op = form_of_call(call).op
    return op is not None and op.may_view


def alike(x: Variable, y: Variable) -> bool:
    """Whether two variables are alike except for their values."""
    return (x.dtype is y.dtype and x.shape == y.shape and x.stack == y.stack
            and x.stop_gradient == y.stop_gradient)


def values_read(call: OpCall) -> list[Variable]:
    """The variables whose values, and not only shapes, a call needs."""
    blocks = call.blocks()
    if "likes" not in call.attributes and not blocks:
        return call.reads()
    found = variables_in((call.inputs, {
        name: x for name, x in call.attributes.items() if name != "likes"}))
    for block in blocks:
        found += [x for inner in block.ops for x in values_read(inner)
                  if x.block is None or not x.block.is_in(block)]
        found += [x for x in block.outputs if x is not None and not (
            x.block is None or x.block.is_in(block))]
    return found


def with_inputs(call: OpCall, replaced: dict[Variable, Variable]) -> OpCall:
    """A call with some of its variables replaced by others."""
    if not replaced or replaced.keys().isdisjoint(call.reads()) or call.blocks():
        return call

    def change(x: Variable) -> Variable:
        return replaced.get(x, x)

    return OpCall(call.type, mapped(call.inputs, change), call.outputs,
                  mapped(call.attributes, change), call.line)
