"""The backward part: the gradients of a block's variables, as calls that are added to a program.

Calls are visited from the last to the first. Each gets its backward call, of `Op.gradient`, which
is a call like any other, so that what was appended can be differentiated again. What several calls
contribute to the gradient of one variable is summed before it is first read.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.graph.op import Op
from tensorlib.ops.calls import output_gradients
from tensorlib.program.ir.call_types import form_of, form_of_call, is_sum_of_parts
from tensorlib.program.ir.errors import ProgramError
from tensorlib.program.ir.model import Block, OpCall, Variable, variables_in
from tensorlib.program.passes.facts import is_view

Callback = Callable[[Block, OpCall], Any]


class Backward:
    """Adds the gradients of a block's calls to a block: the same one, or one of its own.

    source: the block whose calls are visited. target: where calls are added. depends: the variables
    whose gradients are wanted, and all that depend on them. control: what visits calls with blocks.
    """

    def __init__(self, source: Block, target: Block, depends: set[Variable],
                 control: Callable[..., None], callbacks: Sequence[Callback] = ()):
        self.control = control
        self.source, self.target, self.depends = source, target, depends
        self.program, self.callbacks = source.program, callbacks
        self.parts: dict[Variable, list[Variable]] = {}
        self.before: dict[Variable, Variable] = {}     # the gradients of leaves so far
        self.again: dict[Variable, Variable] = {}      # recomputed values, by the original ones
        self.asked: set[Variable] = set()             # variables that get a gradient, wanted or not
        self.sure: set[Variable] = set()     # those that get one whatever branch or loop runs
        self.is_sure = True                  # whether that holds for the call that is visited
        self.must_run: list[OpCall] = []     # loops that are assumed to run at least once
        self.updated: set[Variable] = set()  # parameters that an optimiser changed after the call

    def begin_with(self, before: dict[Variable, Variable]) -> None:
        """Makes the gradients of leaves be added to those that the sweep has brought there
        already."""
        self.before.update(before)
        self.parts.update((x, [g]) for x, g in before.items())
        self.sure.update(before)

    def gradients(self, calls: Iterable[OpCall], starts: Iterable[tuple[Variable, Variable | None]],
                  wanted: Iterable[Variable]) -> list[Variable | None]:
        """The wanted gradients, after propagating those of `starts` back through the calls.

        Raises: ProgramError.
        """
        for x, g in starts:
            self.add(x, g)
        self.visit(calls)
        return [self.certain_total(x) for x in wanted]

    # ---- calls

    def append(self, call: OpCall) -> OpCall:
        """Adds a call to the target."""
        self.target.ops.append(call)
        for callback in self.callbacks:
            callback(self.target, call)
        return call

    def visit(self, calls: Iterable[OpCall]) -> None:
        """Adds the backward calls of `calls`, which are in the order in which they run."""
        calls = list(calls)
        views = {call.outputs[0]: next(iter(call.inputs.values())) for call in calls
                 if is_view(call)} if any(call.in_place for call in calls) else {}
        for call in reversed(calls):
            if call.in_place:
                self.check_write(call, views)
            if call.type == "optimizer_step":
                self.updated.update(call.inputs["params"])
            if not self.depends.isdisjoint(call.outputs):
                self.visit_call(call)

    def check_write(self, call: OpCall, views: dict[Any, Any]) -> None:
        """Raises: ProgramError for a write of a value with a gradient to memory that is read later.
        """
        written, *sources = call.inputs.values()

        def base(x: Any) -> Any:
            while x in views:
                x = views[x]
            return x

        whole = base(written)               # a parameter is written by no_grad alone, as in eager
        changes = any(x in self.depends and not (x is whole and x.persistable)
                      for x in (whole, *sources) if type(x) is Variable)
        if changes and whole in {base(x) for x in self.asked}:
            raise written_over(call)

    def visit_call(self, call: OpCall) -> None:
        """Adds the backward call of a call, if its outputs have a gradient and its inputs want
        one."""
        if call.in_place:
            for x in call.writes():
                if any(g is not self.before.get(x) for g in self.parts.get(x, ())):
                    raise written_over(call)
            return
        if self.parts.keys().isdisjoint(call.outputs):
            return
        self.is_sure = not self.sure.isdisjoint(call.outputs)
        grads = [None if x is None else self.total(x) for x in call.outputs]
        if all(g is None for g in grads):
            return
        self.asked.update(call.reads())
        if is_sum_of_parts(call):
            for x in call.inputs["parts"]:
                self.add(x, grads[0])
        elif call.type == "function":
            self.visit_function(call, grads)
        elif call.type == "function_gradient":
            raise ProgramError("append_backward: the gradient of an autograd.Function can't be "
                               f"differentiated in a program{at(call)}")
        elif call.blocks():
            self.check_updated(call, call.reads())
            self.control(self, call, grads)
        else:
            self.visit_operation(call, grads)

    def visit_operation(self, call: OpCall, grads: list[Variable | None]) -> None:
        """Adds the backward call of an operation of the registry."""
        form = form_of_call(call)
        if form.op is None or form.op.gradient is None:
            return
        for name, value in call.attributes.items():
            if name != "likes" and any(map(self.wants, variables_in(value))):
                raise ProgramError(f"append_backward: {call.type} has no gradient of "
                                   f"{name!r}{at(call)}")
        gradient = form.op.gradient
        names = output_gradients(form.op)
        # a backward operation's outputs may have names that its inputs have, which it keeps
        known: dict[str, Any] = dict(zip(form.op.outputs, call.outputs))
        known.update(zip(names, grads))
        if len(names) < len(grads):                            # the parts of a tensor
            known[names[0]] = tuple(grads)
        known.update(call.inputs)
        places = flat_inputs(call, form.arguments)
        outputs = [self.new_gradient(x) if self.wants(x) else None for x in places]
        if all(x is None for x in outputs):
            return
        left_out = not_needed(form.op, tuple([x is not None for x in outputs]))
        inputs = {name: None if name in left_out else self.present(known[name])
                  for name in gradient.arguments}
        attributes = {key: x for key, x in call.attributes.items() if key != "wanted"}
        if self.updated:
            self.check_updated(call, variables_in(inputs))
        if "likes" in gradient.attributes and "likes" not in form.attributes:
            attributes["likes"] = self.present(tuple(
                call.inputs[name] for name in form.arguments))
        self.append(OpCall(f"{call.type}_gradient", inputs, tuple(outputs), attributes, call.line))
        for x, g in zip(places, outputs):
            if g is not None:
                self.add(x, g)

    def check_updated(self, call: OpCall, needed: list[Variable]) -> None:
        """Raises: ProgramError where a backward call needs a value that an optimiser changed."""
        for x in needed:
            if x in self.updated:
                raise ProgramError(
                    f"append_backward: the gradient of {call.type}{at(call)} needs {x.name} as it "
                    "was before an optimiser's step: append all gradients before the first step")

    def visit_function(self, call: OpCall, grads: list[Variable | None]) -> None:
        """Adds the backward call of an autograd.Function."""
        args = call.inputs["args"]
        self.check_updated(call, variables_in(args))
        outputs = [self.new_gradient(x) if self.wants(x) else None for x in args]
        self.append(OpCall(
            "function_gradient", {"args": self.present(args), "grads": tuple(grads)},
            tuple(outputs), {**call.attributes,
                             "wanted": tuple(x is not None for x in outputs)}, call.line))
        for x, g in zip(args, outputs):
            self.add(x, g)

    # ---- gradients

    def wants(self, x: Any) -> bool:
        """Whether the gradient of an input is wanted."""
        return type(x) is Variable and x in self.depends and has_gradients(x.dtype)

    def present(self, value: Any) -> Any:
        """A value with recomputed variables in place of the original ones."""
        if type(value) is Variable:
            return self.again.get(value, value)
        if type(value) is tuple:
            return tuple(map(self.present, value))
        return value

    def new_gradient(self, x: Variable) -> Variable:
        """A new variable for a part of the gradient of `x`."""
        g = self.target.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
        g.stack = x.stack
        return g

    def add(self, x: Any, g: Variable | None) -> None:
        """Records a part of the gradient of `x`, if that is wanted."""
        if g is not None and type(x) is Variable:
            self.asked.add(x)
        if g is not None and self.wants(x):
            self.parts.setdefault(x, []).append(g)
            if self.is_sure:
                self.sure.add(x)

    def total(self, x: Variable) -> Variable | None:
        """The gradient of `x`: its one part, or the sum of its parts; None if there are none."""
        parts = self.parts.get(x)
        if not parts:
            return None
        if len(parts) > 1:
            for i, part in enumerate(parts):
                if part.name.startswith(f"{x.name}@GRAD") and "@RENAME@" not in part.name:
                    self.program.rename(part, f"{x.name}@GRAD@RENAME@{i}")
            whole = self.new_gradient(x)
            self.append(OpCall("sum", {"parts": tuple(parts)}, (whole,)))
            self.parts[x] = [whole]
        return self.parts[x][0]

    def certain_total(self, x: Variable) -> Variable | None:
        """The gradient of `x`. Raises: ProgramError if it depends on values whether it has one."""
        if self.parts.get(x) and x not in self.sure:
            raise ProgramError(f"whether {x.name} has a gradient depends on which branch is taken, "
                               "or on whether a loop runs")
        return self.total(x)

    def zeros(self, x: Variable) -> Variable:
        """Zeros, as the gradient of `x` where it has none."""
        g = self.new_gradient(x)
        if x.stack or None in x.shape:
            self.append(OpCall("zeros_like", {"input": self.present(x)}, (g,)))
        else:                                    # of which nothing has to be kept
            self.append(OpCall("placeholder", {}, (g,), {"shape": x.shape, "dtype": x.dtype}))
        return g

    def total_or_zeros(self, x: Variable) -> Variable:
        """The gradient of `x`, or zeros."""
        g = self.total(x)
        return self.zeros(x) if g is None else g


def at(call: OpCall) -> str:
    """Where a call came from, for a message."""
    return f" ({call.line})" if call.line else ""


@cache
def not_needed(op: Op, are_wanted: tuple[bool, ...]) -> set[str]:
    """The inputs and outputs of an operation that only unwanted gradients need."""
    if op.linearity == "composite" or op.variadic or op.rules[0] is not None and op.rules[0].joint:
        return set()
    needed = {name for rule, is_wanted in zip(op.rules, are_wanted) if rule is not None
              and is_wanted for name in rule.names}
    return {*op.arguments, *op.outputs} - needed


def flat_inputs(call: OpCall, names: Iterable[str]) -> list[Any]:
    """The inputs of a call as a flat list."""
    found: list[Any] = []
    for name in names:
        x = call.inputs.get(name)
        found += x if type(x) is tuple else [x]
    return found


def dependents(calls: Iterable[OpCall], wanted: Iterable[Variable],
               no_grad: Iterable[Variable] = ()) -> set[Variable]:
    """The wanted variables and all that depend on them through calls with a gradient."""
    found, none = set(wanted), set(no_grad)
    for call in calls:
        if found.isdisjoint(call.reads()) or not (
                passes_gradients(call.type) or not call.in_place and call.blocks()):
            continue
        for x in call.outputs:
            if x is not None and not x.stop_gradient and x not in none and (
                    has_gradients(x.dtype)):
                found.add(x)
    return found


def written_over(call: OpCall) -> ProgramError:
    """An error about a write in place."""
    return ProgramError(
        f"append_backward: {call!r} writes over a value in place{at(call)}; its gradient can't be "
        "taken: use the operation that gives a new value")


@cache
def passes_gradients(type: str) -> bool:
    """Whether a call of a type that has no blocks has a gradient."""
    op = form_of(type).op
    return not type.endswith("_") and (op is None or op.differentiable and not op.random)

