"""Facts about calls that passes ask for: whether one may be removed, moved or done once for all.

A variable *lasts* if its memory may be that of what is fed or of what is there from run to run: it
is given, or may be a view of such. What it holds changes where a call writes.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from tensorlib.program.call_types import DRAWS, INDEXED, WRITERS, form_of, registered
from tensorlib.program.model import Block, OpCall, Variable, variables_in
from tensorlib.program.nested import mapped

EFFECTS = ("set_grad", "optimizer_step")
# What only programs have, and that does no more than to give its result.
OWN_PURE = ("sum", "zeros_like", "placeholder")
# Operations whose result is new and lies row by row, whatever the layout of their operands.
PRODUCTS = ("matmul", "mm", "linear_with_bias")


class Traits(NamedTuple):
    """What holds for all calls of a type that have no blocks.

    effect: it does more than to give its results: it writes, or it draws numbers. writes: into what
    was there before it. keeps: it leaves tensors among its attributes as they are. pure: it gives
    the same bits whenever it runs on the same values. elementwise: it is an element-wise operation
    of the registry, whose result is new.
    """

    effect: bool
    writes: bool
    keeps: bool
    pure: bool
    elementwise: bool


@cache
def traits_of(type: str) -> Traits:
    """What holds for the calls of a type. Raises: UnknownType."""
    over = type.endswith("_") or type in WRITERS
    effect = over or type in EFFECTS or type in DRAWS
    op, base = form_of(type).op, registered(type.replace("_gradient", ""))
    pure = type in OWN_PURE if op is None else not (op.random or base is not None and base.random)
    own = registered(type)
    return Traits(
        effect, over or type == "optimizer_step" or type.startswith("function"),
        type.removesuffix("_gradient") in INDEXED, pure, own is not None and own.elementwise)


def has_effect(call: OpCall) -> bool:
    """Whether a call does more than to give its results: it writes, or it draws numbers."""
    return traits_of(call.type).effect or any(map(block_has_effect, call.blocks()))


def block_has_effect(block: Block) -> bool:
    """Whether a call of a block does more than to give its results."""
    return any(map(has_effect, block.ops))


def may_write(call: OpCall) -> bool:
    """Whether a call may write into what was there before it."""
    traits = traits_of(call.type)
    return traits.writes or bool(call.attributes) and (
        bool(call.blocks()) or not traits.keeps and has_tensors(call))


def has_tensors(call: OpCall) -> bool:
    """Whether a call has tensors among its attributes, as a norm its statistics."""
    attributes = call.attributes
    if len(attributes) == 1 and "likes" in attributes:
        return False
    return bool(variables_in([x for name, x in attributes.items() if name != "likes"]))


def is_pure(call: OpCall) -> bool:
    """Whether a call gives the same bits whenever it runs on the same values, and does no more."""
    traits = traits_of(call.type)
    return traits.pure and not traits.effect and not may_write(call)


def is_elementwise(call: OpCall) -> bool:
    """Whether a call is of an element-wise operation of the registry: its result is new."""
    return traits_of(call.type).elementwise


def writes_its_own(calls: Iterable[OpCall], given: Iterable[Variable]) -> bool:
    """Whether a call writes in place into what the program made: then no two values are one."""
    known = set(given)
    return any(x not in known for call in calls
               if call.in_place or call.type in WRITERS for x in call.writes())


def pinned(calls: Iterable[OpCall], wanted: Iterable[Variable]) -> set[Variable]:
    """The variables that must stay as they are: what is wanted, what becomes a gradient, and what
    blocks read."""
    found = set(wanted)
    for call in calls:
        if call.type in EFFECTS or call.attributes and call.blocks():
            found.update(call.reads())
    return found


def lasting(calls: Iterable[OpCall], given: Iterable[Variable]) -> set[Variable]:
    """The variables that last."""
    found = set(given)
    for call in calls:
        if traits_of(call.type).elementwise or call.type in PRODUCTS:
            continue
        for x in call.reads():
            if x in found or x.persistable:
                found.update(call.writes())
                break
    return found


def alike(x: Variable, y: Variable) -> bool:
    """Whether two variables are alike in all but their values."""
    return (x.dtype is y.dtype and x.shape == y.shape and x.stack == y.stack
            and x.stop_gradient == y.stop_gradient)


def values_read(call: OpCall) -> list[Variable]:
    """The variables of which a call needs the values, not the shapes alone."""
    if "likes" not in call.attributes or call.blocks():
        return call.reads()
    return variables_in((call.inputs, {
        name: x for name, x in call.attributes.items() if name != "likes"}))


def with_inputs(call: OpCall, replaced: dict[Variable, Variable]) -> OpCall:
    """A call that reads other variables in the place of some."""
    if not replaced or replaced.keys().isdisjoint(call.reads()) or call.blocks():
        return call

    def change(x: Variable) -> Variable:
        return replaced.get(x, x)

    return OpCall(call.type, mapped(call.inputs, change), call.outputs,
                  mapped(call.attributes, change), call.line)


def inner_calls(block: Block) -> Iterator[OpCall]:
    """The calls of a block and of the blocks within it."""
    for call in block.ops:
        yield call
        for inner in call.blocks():
            yield from inner_calls(inner)
