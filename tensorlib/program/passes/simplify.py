"""Algebra that keeps the bits: calls that give one of their operands, and views of views.

`x * 1`, `x / 1` and `x - 0` are `x`, also for -0.0 and NaN; `x + 0` is not, since -0.0 + 0 is 0.0,
but `x + -0.0` is. Two transposes that undo each other are none. A reshape of a reshape is one. All
of it where the layout is known to be the same, since sums in another order have other bits: of an
input of the program it is not.
"""

from collections.abc import Iterable
from typing import Any

from tensorlib.program.call_types import form_of_call
from tensorlib.program.model import OpCall, Variable
from tensorlib.program.passes.facts import (
    PRODUCTS, alike, is_elementwise, lasting, may_write, pinned, with_inputs, writes_its_own,
)

ONCE = ("abs", "relu", "floor", "ceil", "trunc", "round", "sign")   # twice is the same as once
VIEWS = ("t", "transpose", "permute", "reshape")
TWICE = ("neg", "logical_not", "bitwise_not", "t")                  # twice is nothing


def simplified(calls: Iterable[OpCall], wanted: Iterable[Variable],
               given: Iterable[Variable]) -> list[OpCall]:
    """The calls without those that give what was there, bit by bit and in the same layout."""
    found, given = list(calls), list(given)
    if writes_its_own(found, given):
        return found
    stay, last = pinned(found, wanted), lasting(found, given)
    writes = any(map(may_write, found))
    work = Simplifier()
    replaced: dict[Variable, Variable] = {}
    kept = []
    for call in found:
        call = with_inputs(call, replaced)
        y = call.outputs[0] if len(call.outputs) == 1 else None
        if y is not None:
            call = work.shorter(call)
            x = work.operand(call, y)
            if x is not None and y not in stay and alike(x, y) and not (writes and x in last) and (
                    call.type in VIEWS or x in work.dense):
                replaced[y] = x
                continue
            work.note(call, y)
        kept.append(call)
    return kept


class Simplifier:
    """What is known of the values so far."""

    def __init__(self) -> None:
        self.made: dict[Variable, OpCall] = {}       # the one call that writes a variable
        self.packed: set[Variable] = set()           # that lie row by row, without gaps
        self.dense: set[Variable] = set()            # laid out as an element-wise result of them

    def operand(self, call: OpCall, y: Variable) -> Variable | None:
        """The variable whose value a call gives again, as `y`; None where it gives another one."""
        x = call.inputs.get("input")
        if type(x) is not Variable:
            x = next(iter(call.inputs.values()), None)
        if type(x) is not Variable:
            return self.product_of_one(call)
        if call.type in ("mul", "div", "sub", "add"):
            return self.product_of_one(call)
        before = self.made.get(x)
        if call.type == "to":
            same = set(call.attributes) == {"dtype"} and call.attributes["dtype"] is x.dtype
            return x if same else None
        if call.type == "clone":
            return x if x in self.packed and not call.attributes else None
        if call.type == "reshape":
            return x if x in self.packed and y.shape == x.shape else None
        if before is None or before.type != call.type:
            return None
        if call.type in ONCE and not call.attributes and not before.attributes:
            return x
        inner = next(iter(before.inputs.values()))
        if type(inner) is Variable and undoes(call, before):
            return inner
        return None

    def product_of_one(self, call: OpCall) -> Variable | None:
        """The variable that is multiplied or divided by one, or that zero is taken from."""
        if call.attributes or len(call.inputs) != 2:
            return None
        a, b = call.inputs.values()
        if type(a) is Variable and is_neutral(call.type, b, a):
            return a
        if type(b) is Variable and call.type in ("mul", "add") and is_neutral(call.type, a, b):
            return b
        return None

    def shorter(self, call: OpCall) -> OpCall:
        """A reshape of a reshape as one, where the memory lies row by row."""
        if call.type != "reshape":
            return call
        x = call.inputs.get("input")
        before = self.made.get(x) if type(x) is Variable else None
        if before is None or before.type != "reshape":
            return call
        inner = before.inputs["input"]
        if inner not in self.packed or -1 in call.attributes.get("shape", ()):
            return call
        return OpCall("reshape", {"input": inner}, call.outputs, call.attributes, call.line)

    def note(self, call: OpCall, y: Variable) -> None:
        """Notes what is known of the result of a call."""
        self.made[y] = call
        operands = [x for x in call.inputs.values() if type(x) is Variable]
        if call.type in PRODUCTS and len(y.shape) == 2 or (
                call.type == "reshape" and operands[0] in self.packed) or (
                is_elementwise(call) and operands and None not in y.shape and all(
                    x in self.packed and x.shape == y.shape for x in operands)):
            self.packed.add(y)
        if y in self.packed or is_elementwise(call):
            self.dense.add(y)


def is_neutral(type_: str, number: Any, x: Variable) -> bool:
    """Whether an operation with this number gives its other operand, bit by bit."""
    if type(number) not in (int, float):
        return False
    if type_ in ("mul", "div"):
        return number == 1
    if number != 0:
        return False
    if not x.dtype.is_floating_point:
        return True
    # -0.0 + 0 is 0.0, and -0.0 - -0.0 is too
    return (repr(number) == "-0.0") == (type_ == "add")


def undoes(call: OpCall, before: OpCall) -> bool:
    """Whether a call undoes the one of the same type before it."""
    if call.type in TWICE:
        return not call.attributes and not before.attributes
    first, second = given(before), given(call)
    if call.type == "transpose":
        return sorted(first.values()) == sorted(second.values())
    if call.type == "permute":
        dims, again = first.get("dims"), second.get("dims")
        return type(dims) is type(again) is tuple and len(dims) == len(again) and all(
            dims[again[i]] % len(dims) == i for i in range(len(dims)))
    return False


def given(call: OpCall) -> dict[str, Any]:
    """The attributes of a call, also those that are as by default."""
    op = form_of_call(call).op
    assert op is not None
    return {**dict(zip(op.attributes, op.defaults)), **call.attributes}
