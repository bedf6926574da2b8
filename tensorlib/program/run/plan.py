"""Planning: turns a program into a `Machine` (executor.pyx), which runs without Python between
steps.

Each call of the program is rehearsed on tensors without memory. Here its type decides whether it
becomes a step with a kernel of its own, or a step that calls the operation's function.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from tensorlib._core.graph.op import Op, registry
from tensorlib._core.index.keys import Index
from tensorlib._core.interpreters.capture import Capture, unseen
from tensorlib._core.layout import views
from tensorlib._core.tensor.meta import NoData
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import no_grad
from tensorlib.ops.calls import Call
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.ir.call_types import (
    Form, as_operands, form_of_call, is_indexed, operation, parsed, registered, take_step,
)
from tensorlib.program.ir.interpreter import arguments_of, with_wanted
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.ir.nested import tensors_in
from tensorlib.program.passes import enabled
from tensorlib.program.passes.facts import changes, fails_before_it_changes
from tensorlib.program.run.direct_steps import result_of, step_of
from tensorlib.program.run.executor import Machine

BASIC = (int, slice, type(None), type(...))       # parts of an index expression that gives a view


class Unplanned(Exception):
    """A program that no machine can run, and that the interpreter runs instead. The message says
    why."""


def plan(calls: Iterable[OpCall], fed: dict[Variable, Tensor],
         outputs: Iterable[Variable]) -> Machine:
    """The machine that runs `calls` and returns `outputs`.

    fed: the variables that each run is given, in order: inputs, and persistable ones; each with a
    tensor that has the layout of its values. Raises: Unplanned.
    """
    with Machine(enabled["fusion"], enabled["reuse"]) as machine, no_grad():
        values = {x: machine.feed(like, x.persistable) for x, like in fed.items()}
        for call in calls:
            try:
                Rehearsal(machine, values, call).run()
            except NoData as error:
                raise Unplanned(f"{call!r}: {error}") from None
        machine.finish(tuple(values[x] for x in outputs))
    return machine


class Rehearsal:
    """The rehearsal of one call, which records its steps in a machine, and its results in the
    values."""

    def __init__(self, machine: Machine, values: dict[Variable, Any], call: OpCall):
        self.machine, self.values, self.call = machine, values, call

    def value(self, x: Variable) -> Any:
        """The tensor of a variable in the rehearsal."""
        found = self.values.get(x)
        if found is None:
            if not x.fixed or x.value is None:
                raise Unplanned(f"{self.call!r}: {x.name} has no value")
            found = self.values[x] = self.machine.constant(x.value)       # made by a pass
        return found

    def run(self) -> None:
        """Rehearses the call."""
        call = self.call
        if call.blocks():
            raise Unplanned(f"{call!r}: control flow is interpreted")
        if call.type == "set_grad":
            self.set_grad(call.inputs["param"], call.inputs["grad"],
                          call.attributes.get("strides"))
            return
        if call.type == "optimizer_step":
            for param, grad in zip(call.inputs["params"], call.inputs["grads"]):
                self.set_grad(param, grad)
            self.machine.effect(take_step, (call.attributes["optimizer"],))
            return
        if call.type == "check":             # it needs elements, which a rehearsal does not have
            values = self.value(call.inputs["values"])
            self.machine.call_unseen(
                form_of_call(call).run, (values,), call.attributes, (values,), ())
            return
        form, tensors, given = arguments_of(call, self.value)
        inputs = tuple(tensors)
        if "index" in given:
            self.parse_index(inputs, given)
        results = self.results(form, inputs, given)
        for x, result in zip(call.outputs, results):
            if x is not None:
                self.values[x] = result

    def parse_index(self, inputs: tuple[Any, ...], given: dict[str, Any]) -> None:
        """Parses an index expression of ints and slices, once for all runs."""
        index = given["index"]
        parts = index if type(index) is tuple else (index,)
        if is_indexed(self.call.type) and all(type(x) in BASIC for x in parts) and (
                not tensors_in(parts)):
            given["index"] = parsed(index, inputs, given)

    def set_grad(self, param: Variable, grad: Any, strides: Any = None) -> None:
        """Sets the gradient of a parameter, or None. strides: those of the eager one."""
        if param.value is None:
            raise Unplanned(f"{self.call!r}: {param.name} has no value to keep a gradient")
        self.machine.put_grad(param.value, None if grad is None else self.value(grad), strides)

    # ---- ways to compute the results

    def results(self, form: Form, inputs: tuple[Any, ...],
                given: dict[str, Any]) -> tuple[Any, ...]:
        """The results of the call: by steps with kernels, else by the operation's forward function,
        else by a call as in the interpreter. Raises: Unplanned."""
        why: Exception | None = None
        for way in (self.by_steps, self.by_forward, self.by_call, self.unseen):
            mark = self.machine.mark()
            try:
                found = way(form, inputs, given)
            except Exception as error:        # it may fail here for want of elements only
                found, why = None, error
            if found is not None and self.are_results(found):
                return found
            self.machine.back_to(mark)
        raise Unplanned(f"{self.call!r}, {self.call.line}: {why}")

    def are_results(self, found: tuple[Any, ...]) -> bool:
        """Whether each output variable has a tensor of its dtype."""
        if len(found) < len(self.call.outputs):
            return False
        for x, value in zip(self.call.outputs, found):
            if x is not None and not (isinstance(value, Tensor) and value.dtype is x.dtype):
                return False
        return True

    def by_steps(self, form: Form, inputs: tuple[Any, ...],
                 given: dict[str, Any]) -> tuple[Any, ...] | None:
        """The results by steps with kernels of their own."""
        call, op, found = self.call, form.op, None
        if call.type.endswith("_gradient"):
            base = operation(call.type.removesuffix("_gradient"))
            if base is not None and base.linearity != "composite" and not base.variadic and (
                    len(base.outputs) == 1):
                return self.gradients(form, base, inputs, given)
        elif op is not None and registered(call.type) is not None and not given:
            found = step_of(self.machine, op, inputs)
        return None if found is None else (found,)

    def by_forward(self, form: Form, inputs: tuple[Any, ...],
                   given: dict[str, Any]) -> tuple[Any, ...] | None:
        """The results by the forward function of an operation of the registry."""
        op = form.op
        if op is None or registered(self.call.type) is None or self.call.in_place or (
                op.linearity == "composite" or op.random or op.key):
            return None
        rest = (given.get(name, default) for name, default in zip(op.attributes, op.defaults))
        return self.call_of(op.forward, (*inputs, *rest), {}, inputs)

    def by_call(self, form: Form, inputs: tuple[Any, ...],
                given: dict[str, Any]) -> tuple[Any, ...] | None:
        """The results by a call as in the interpreter."""
        plain = getattr(form.run, "as_it_stands", None)
        if plain is not None and type(given["index"]) is not Index:
            return self.call_of(plain, (*inputs, given["index"]), {}, inputs)
        return self.call_of(form.run, inputs, with_wanted(self.call, form, given), inputs)

    def unseen(self, form: Form, inputs: tuple[Any, ...],
               given: dict[str, Any]) -> tuple[Any, ...] | None:
        """The results of an operation that reads elements. Those of a backward operation are like
        its inputs, and contiguous if its rules say so; others are as in the capture, if their
        layout is certain."""
        op, outputs = form.op, self.call.outputs
        if self.call.type.endswith("_gradient") and "likes" in given:
            rules = registry[self.call.type.removesuffix("_gradient")].rules
            if not all(rule is None or hasattr(rule.function, "is_packed") for rule in rules):
                return None
            likes = given["likes"]
        elif op is None or not op.reads_values or self.call.in_place or (
                op.sized_by_values or op.random or op.key or op.may_view):
            return None
        elif any(x is not None and (len(x.shape) > 1 and not op.packs or None in x.shape)
                 for x in outputs):
            return None
        else:
            likes = [None if x is None else (x.shape, x.dtype) for x in outputs]
        kwargs = with_wanted(self.call, form, given)
        results = tuple([None if x is None else FUNCTIONS["empty"](like[0], dtype=like[1])
                         for x, like in zip(outputs, likes)])
        made: tuple[Any, ...] = self.machine.call_unseen(
            form.run, inputs, kwargs, tensors_in((inputs, kwargs)), results)
        return made

    def call_of(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results of a function of the tensors `inputs` that each run calls."""
        read = tensors_in((inputs, args, kwargs))
        effect = changes(self.call)
        known = None if effect else result_of(self.machine, function, args, kwargs)
        if known is not None:
            return (known,)
        if not effect:
            found = opened(self.machine, function, args, kwargs)
            if found is not None:
                return found
        results: tuple[Any, ...] = self.machine.call(
            function, args, kwargs, read, effect, effect and fails_before_it_changes(self.call))
        return results

    def gradients(self, form: Form, base: Op, inputs: tuple[Any, ...],
                  given: dict[str, Any]) -> tuple[Any, ...] | None:
        """The results of a backward operation, rule by rule where there are steps for them."""
        values = dict(zip(form.arguments, as_operands(inputs)))
        g = values[f"grad_{base.outputs[0]}"]
        facts = given.get("likes")
        if not isinstance(g, Tensor) or facts is None:
            return None
        attributes = {key: x for key, x in given.items() if key not in ("likes", "wanted")}
        source = Call(base, tuple(map(values.get, base.arguments)),
                      tuple(map(values.get, base.outputs)), attributes, facts)
        if self.machine.has_joint_rule(base):
            rule = self.machine.gradient(source, base, -1, g)
            if rule is None:
                return None
            parts = self.call_of(*rule, {}, rule[1])
            return tuple(None if x is None or part is None else self.fitted(part, *fact)
                         for x, part, fact in zip(self.call.outputs, parts, facts))
        found: list[Any] = []
        for i, x in enumerate(self.call.outputs):
            part = None if x is None else self.machine.gradient(source, base, i, g)
            if type(part) is tuple:
                function, values = part
                index = attributes.get("index")
                if base.key and type(index) is not Index:
                    place = next(k for k, value in enumerate(values) if value is index)
                    function = partial(parsing, function, place, given)
                if hasattr(function, "is_packed") and len(facts) == 1 and facts[0][1] is g.dtype:
                    like = FUNCTIONS["empty"](facts[0][0], dtype=g.dtype)
                    part = self.machine.call_unseen(
                        function, values, {}, tensors_in(values), (like,))[0]
                else:
                    part = self.call_of(function, values, {}, values)[0]
            if x is not None and part is None:
                only = tuple(k == i for k in range(len(self.call.outputs)))
                part = self.call_of(form.run, inputs, {**given, "wanted": only}, inputs)[i]
            found.append(None if part is None else self.fitted(part, *facts[i]))
        return tuple(found)

    def fitted(self, g: Any, shape: Any, dtype: Any) -> Any:
        """A gradient summed over the dims that were broadcast, and cast to the input's dtype."""
        if tuple(g.shape) != tuple(shape):
            g = self.call_of(views.sum_to_size, (g, tuple(shape)), {}, (g,))[0]
        if g.dtype is not dtype:
            g = self.call_of(views.to_dtype, (g, dtype, False), {}, (g,))[0]
        return g


def parsing(function: Any, place: int, given: dict[str, Any], *values: Any) -> Any:
    """The result of a rule with an index expression, at a place among its values, that each run
    parses.
    """
    index = parsed(values[place], (), given)
    return function(*values[:place], index, *values[place + 1:])


# ---- functions as their parts --------------------------------------------------------------------

class Closed(Exception):
    """A function does something for which there is no step."""


class StepCapture(Capture):
    """A capture of a function of the library in a rehearsal: each operation records its steps."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operation, after its steps were recorded."""
        if op.random or kwargs.get("out") is not None:
            raise Closed
        if not self.machine.knows(tensors_in((args, kwargs))):
            raise Closed              # the elements of the rehearsal are made up
        if op.linearity == "composite" or op.returns is not Tensor or op.key:
            return NotImplemented
        tensors = args[:len(op.arguments)]
        found = step_of(self.machine, op, args)
        if found is None:
            given = dict(zip(op.attributes, op.defaults))
            given.update(zip(op.attributes, args[len(op.arguments):]))
            given.update(kwargs)
            known = result_of(self.machine, op.forward, (*tensors, *given.values()), {})
            if known is not None:
                return known
            read = tensors_in((tensors, given))
            results = self.machine.call(op.forward, (*tensors, *given.values()), {}, read, False)
            if not results:
                raise Closed          # its forward function is for another kind of call
            return results[0] if len(results) == 1 else results
        return found

    def leaving(self, *asked: Any, **options: Any) -> None:
        """Raises: Closed, where elements are read, which a rehearsal does not have, a tensor is
        written, or user code runs."""
        raise Closed

    write = sweep = function = composed = checked = leaving


def opened(machine: Machine, function: Any, args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """The results of a function, as steps of the operations that it consists of.

    None if it consists of none, or does something for which there is no step.
    """
    mark = machine.mark()
    try:
        with unseen(), StepCapture(machine):
            result = function(*args, **kwargs)
    except Exception:                         # it may fail for want of elements only
        result = None
    results = result if type(result) is tuple else (result,)
    if result is None or not all(
            isinstance(x, Tensor) for x in results) or not machine.knows(results):
        machine.back_to(mark)
        return None
    return results


