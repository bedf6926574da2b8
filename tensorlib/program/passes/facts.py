"""What passes ask of calls: whether one may be left out, moved or done once for all.

A variable *lasts* if its memory may be that of what is fed or of what is there from run to run: it
is given, or may be a view of such. What it holds changes where a call writes.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib.program.forms import DRAWS, INDEXED, WRITERS, form_of_call, registered
from tensorlib.program.model import Block, OpCall, Variable, mapped, variables_in

EFFECTS = ("set_grad", "optimizer_step")
# What only programs have, and that does no more than to give its result.
OWN_PURE = ("sum", "zeros_like", "placeholder")
# Operations whose result is new and lies row by row, whatever the layout of their operands.
PRODUCTS = ("matmul", "mm", "linear_with_bias")


def has_effect(call: OpCall) -> bool:
    """Whether a call does more than to give its results: it writes, or it draws numbers."""
    return (call.in_place or call.type in WRITERS or call.type in EFFECTS or call.type in DRAWS
            or any(map(block_has_effect, call.blocks())))


def block_has_effect(block: Block) -> bool:
    """Whether a call of a block does more than to give its results."""
    return any(map(has_effect, block.ops))


def may_write(call: OpCall) -> bool:
    """Whether a call may write into what was there before it."""
    return (call.in_place or call.type in WRITERS or call.type == "optimizer_step"
            or call.type.startswith("function") or bool(call.blocks()) or writes_attribute(call))


def writes_attribute(call: OpCall) -> bool:
    """Whether a call may write into a tensor among its attributes, as a norm its statistics."""
    return call.type.removesuffix("_gradient") not in INDEXED and any(
        True for name, x in call.attributes.items() if name != "likes" for _ in variables_in(x))


def is_pure(call: OpCall) -> bool:
    """Whether a call gives the same bits whenever it runs on the same values, and does no more."""
    if has_effect(call) or may_write(call):
        return False
    op = form_of_call(call).op
    if op is None:
        return call.type in OWN_PURE
    base = registered(call.type.replace("_gradient", ""))
    return not (op.random or base is not None and base.random)


def is_elementwise(call: OpCall) -> bool:
    """Whether a call is of an element-wise operation of the registry: its result is new."""
    op = registered(call.type)
    return op is not None and op.elementwise


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
        if call.type in EFFECTS or call.blocks():
            found.update(call.reads())
    return found


def lasting(calls: Iterable[OpCall], given: Iterable[Variable]) -> set[Variable]:
    """The variables that last."""
    found = set(given)
    for call in calls:
        if not (is_elementwise(call) or call.type in PRODUCTS) and any(
                x in found or x.persistable for x in call.reads()):
            found.update(call.writes())
    return found


def alike(x: Variable, y: Variable) -> bool:
    """Whether two variables are alike in all but their values."""
    return (x.dtype is y.dtype and x.shape == y.shape and x.stack == y.stack
            and x.stop_gradient == y.stop_gradient)


def with_inputs(call: OpCall, replaced: dict[Variable, Variable]) -> OpCall:
    """A call that reads other variables in the place of some."""
    if call.blocks() or not any(x in replaced for x in call.reads()):
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


def frozen(x: Any) -> Any:
    """A key that two arguments share if they are the same, bit by bit.

    Raises: TypeError for what has none.
    """
    if type(x) is Variable:
        return "variable", id(x)
    if x is None or x is ... or type(x) in (bool, int, float, str):
        return type(x).__name__, repr(x)
    if isinstance(x, DType):
        return "dtype", x.name
    if isinstance(x, (tuple, list)):
        return type(x).__name__, tuple(map(frozen, x))
    if type(x) is dict:
        return "dict", tuple((key, frozen(x[key])) for key in sorted(x))
    if type(x) is slice:
        return "slice", tuple(map(frozen, (x.start, x.stop, x.step)))
    raise TypeError(f"no key for {type(x).__name__}")
