"""Algebra that keeps the bits: calls whose result is an operand, and views of views.

`x * 1`, `x / 1` and `x - 0` are `x`, also for -0.0 and NaN; `x + 0` is not, since -0.0 + 0 is 0.0,
but `x + -0.0` is. Two transposes that undo each other are none. A reshape of a reshape is one. All
of it where the layout is known to be the same, since sums in another order have other bits: of an
input of the program it is not.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tensorlib.ops.lazy import name_of, operations
from tensorlib.program.ir.call_types import form_of_call
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.passes.facts import (
    alike, lasting, may_write, pinned, traits_of, with_inputs, writes_its_own,
)

# Given what is known so far, and a call: the variable whose value its result has, or None.
Rule = Callable[["Simplifier", OpCall, Variable], Variable | None]
RULES: dict[str, Rule] = {}            # by the names of operations
OF_VIEWS: set[str] = set()        # operations that return views, so that the layout does not matter
RESHAPE = operations.reshape.name


def simplifies(*given: Any, view: bool = False) -> Callable[[Rule], Rule]:
    """Decorates the function that finds the operand that is the result of calls of these
    operations.

    It takes what is known of the values so far, the call and its result.
    """
    def declare(rule: Rule) -> Rule:
        names = list(map(name_of, given))
        RULES.update(dict.fromkeys(names, rule))
        OF_VIEWS.update(names if view else ())
        return rule
    return declare


def simplified(calls: Iterable[OpCall], wanted: Iterable[Variable],
               given: Iterable[Variable]) -> list[OpCall]:
    """The calls without those whose result exists already, with the same bits and layout."""
    found, given = list(calls), list(given)
    if not any(map(has_rule, found)) or writes_its_own(found, given):
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
                    call.type in OF_VIEWS or x in work.dense):
                replaced[y] = x
                continue
            work.note(call, y)
        kept.append(call)
    return kept


def has_rule(call: OpCall) -> bool:
    """Whether the result of a call may exist already."""
    return call.type in RULES or beside_neutral(call) is not None


class Simplifier:
    """What is known of the values so far."""

    def __init__(self) -> None:
        self.made: dict[Variable, OpCall] = {}       # the one call that writes a variable
        self.packed: set[Variable] = set()           # row-major and without gaps
        self.dense: set[Variable] = set()            # laid out as an element-wise result of them

    def operand(self, call: OpCall, y: Variable) -> Variable | None:
        """The variable that has the value of `y`, the result of a call; or None."""
        rule = RULES.get(call.type)
        return beside_neutral(call) if rule is None else rule(self, call, y)

    def maker(self, call: OpCall, x: Variable) -> OpCall | None:
        """The call that made `x`, if it is of the same type; else None."""
        before = self.made.get(x)
        return before if before is not None and before.type == call.type else None

    def shorter(self, call: OpCall) -> OpCall:
        """A reshape of a reshape as one, if the memory is row-major."""
        if call.type != RESHAPE:
            return call
        x = call.inputs.get("input")
        before = self.made.get(x) if type(x) is Variable else None
        if before is None or before.type != RESHAPE:
            return call
        inner = before.inputs["input"]
        if inner not in self.packed or -1 in call.attributes.get("shape", ()):
            return call
        return OpCall(RESHAPE, {"input": inner}, call.outputs, call.attributes, call.line)

    def note(self, call: OpCall, y: Variable) -> None:
        """Records what is known of the result of a call."""
        self.made[y] = call
        traits = traits_of(call.type)
        operands = [x for x in call.inputs.values() if type(x) is Variable]
        if traits.packs and len(y.shape) == 2 or (
                call.type == RESHAPE and operands[0] in self.packed) or (
                traits.elementwise and operands and None not in y.shape and all(
                    x in self.packed and x.shape == y.shape for x in operands)):
            self.packed.add(y)
        if traits.elementwise or y in self.packed:
            self.dense.add(y)


# ---- neutral numbers -----------------------------------------------------------------------------

def beside_neutral(call: OpCall) -> Variable | None:
    """The variable beside a neutral number; None if there is none."""
    known = NEUTRAL.get(call.type)
    if known is None or call.attributes or len(call.inputs) != 2:
        return None
    is_neutral, either = known
    a, b = call.inputs.values()
    if type(a) is Variable and type(b) in (int, float) and is_neutral(b, a):
        return a
    if either and type(b) is Variable and type(a) in (int, float) and is_neutral(a, b):
        return b
    return None


def is_one(number: Any, x: Variable) -> bool:
    """Whether a product with this number, or a quotient, is the other operand."""
    return bool(number == 1)


def is_zero(number: Any, x: Variable) -> bool:
    """Whether a difference from this number is the other operand: -0.0 - -0.0 is 0.0."""
    return number == 0 and (not x.dtype.is_floating_point or repr(number) != "-0.0")


def is_negative_zero(number: Any, x: Variable) -> bool:
    """Whether a sum with this number is the other operand: -0.0 + 0 is 0.0."""
    return number == 0 and (not x.dtype.is_floating_point or repr(number) == "-0.0")


# Which number is neutral, and whether it may be either of the two operands or the second alone.
NEUTRAL = {name_of(operations.mul): (is_one, True), name_of(operations.div): (is_one, False),
           name_of(operations.add): (is_negative_zero, True),
           name_of(operations.sub): (is_zero, False)}


# ---- calls without an effect ---------------------------------------------------------------------

@simplifies(operations.to)
def cast(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """A cast to the same dtype."""
    x = first(call)
    same = x is not None and set(call.attributes) == {"dtype"}
    return x if same and call.attributes["dtype"] is x.dtype else None


@simplifies(operations.clone)
def copy(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """A copy of a row-major value."""
    x = first(call)
    return x if x in work.packed and not call.attributes else None


@simplifies(operations.reshape, view=True)
def reshaped(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """A reshape of a row-major value to the same sizes."""
    x = first(call)
    return x if x is not None and x in work.packed and y.shape == x.shape else None


# ---- two calls in sequence -----------------------------------------------------------------------

@simplifies(operations.abs, operations.relu, operations.floor, operations.ceil, operations.trunc,
            operations.round, operations.sign)
def idempotent(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """Twice is the same as once."""
    x = first(call)
    before = None if x is None else work.maker(call, x)
    return x if before is not None and not call.attributes and not before.attributes else None


def undone(work: Simplifier, call: OpCall,
           undoes: Callable[[dict[str, Any], dict[str, Any]], bool]) -> Variable | None:
    """The operand of the previous call of the same type, if the two cancel by their attributes."""
    x = first(call)
    before = None if x is None else work.maker(call, x)
    if before is None:
        return None
    inner = first(before)
    return inner if inner is not None and undoes(given(before), given(call)) else None


@simplifies(operations.neg, operations.logical_not, operations.bitwise_not)
def involution(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """Twice cancels."""
    return undone(work, call, lambda before, after: not before and not after)


simplifies(operations.t, view=True)(involution)


@simplifies(operations.transpose, view=True)
def transposed(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """A transposition of the same two dims cancels."""
    return undone(work, call, lambda before, after: (
        sorted(before.values()) == sorted(after.values())))


@simplifies(operations.permute, view=True)
def permuted(work: Simplifier, call: OpCall, y: Variable) -> Variable | None:
    """A permutation and its inverse cancel."""
    def undoes(before: dict[str, Any], after: dict[str, Any]) -> bool:
        dims, again = before.get("dims"), after.get("dims")
        return type(dims) is type(again) is tuple and len(dims) == len(again) and all(
            dims[again[i]] % len(dims) == i for i in range(len(dims)))
    return undone(work, call, undoes)


def first(call: OpCall) -> Variable | None:
    """The first argument of a call; None where it is a number."""
    x = next(iter(call.inputs.values()), None)
    return x if type(x) is Variable else None


def given(call: OpCall) -> dict[str, Any]:
    """The attributes of a call, including defaults."""
    op = form_of_call(call).op
    assert op is not None
    return {**dict(zip(op.attributes, op.defaults)), **call.attributes}
