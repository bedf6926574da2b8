"""Programs built by hand: operations on Variables become calls, whose shapes are inferred.

Nothing is computed. Each call runs once on `meta` tensors with the shapes and dtypes of its
variables, so that whatever the operation refuses is an error at the line where the call is written.
Unknown sizes are tried with two different numbers: sizes of the result that differ are unknown,
too.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tensorlib._core.base.settings import AttributeSwap, Held
from tensorlib._core.create.generator import Generator
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.graph.op import Op
from tensorlib._core.index.keys import Index
from tensorlib._core.interpreters.capture import Capture, unseen
from tensorlib._core.sweep.graph_reader import begin_epoch, was_made_since
from tensorlib._core.tensor.meta import NoData
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch import Batched
from tensorlib.autograd.modes import no_grad
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations
from tensorlib.program.ir.call_forms import canonical, drawn, gives_number, plain, user_line
from tensorlib.program.ir.call_types import (
    DRAWING, copied, cuts, is_indexed, is_sized_by_values, onto, value_of_write, write_of,
)
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.interpreter import arguments_of, with_wanted
from tensorlib.program.ir.model import Block, OpCall, Variable, variables_in

PROBES = (61, 67)            # numbers for unknown sizes
FEW = 2                      # another one, smaller than most known sizes


class _Open(threading.local):
    """The builders of this thread, the innermost last."""

    def __init__(self) -> None:
        self.builders: list[Builder] = []


_open = _Open()


def builder() -> "Builder | None":
    """The innermost builder of this thread, or None."""
    return _open.builders[-1] if _open.builders else None


class CallRecorder(Capture):
    """A capture that records calls: how arguments become those of the recorded call.

    keys: parsed index expressions, by id, with the expressions as written. picks: whether a graph
    keeps one with a number that was computed.
    """

    keys: dict[int, tuple[Any, Any]]
    picks = False

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operation, after its call was recorded."""
        refuse_out(op.name, kwargs)
        if op.draws is not None:
            tensors, given = drawn(op, args, kwargs)
            function: Any = op.function
            inputs, attributes = self.value_of_each(tensors), self.value_of_each(given)
        else:
            if gives_number(op):
                self.leaving(op.name, args[0])
            if op.returns is not Tensor:
                return NotImplemented
            function, tensors, given = canonical(op, args, kwargs)
            inputs = {key: self.value(x) for key, x in zip(op.arguments, tensors)}
            attributes = plain(op, given, self.value)
            if op.key and has_graph(tensors):
                attributes = {key: self.own(x) for key, x in attributes.items()}
        return self.done(op.name, function, args, kwargs, inputs, attributes)

    def done(self, type: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
             inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
        """The result of `function`, after its call was recorded under a type."""
        raise NotImplementedError

    def value(self, x: Any) -> Any:
        """An argument as it is recorded: tensors as variables, also in tuples, lists and slices."""
        if isinstance(x, Tensor):
            if type(x) is Batched:
                raise CaptureError("an example of a batch where no tensor goes can't be captured, "
                                   f"{user_line()}")
            return x if type(x) is Variable else self.variable_of(x)
        if type(x) in (tuple, list):        # the type matters: a list holds positions, a tuple dims
            return type(x)(map(self.value, x))
        if id(x) in self.keys:
            return self.value(self.keys[id(x)][1])
        if type(x) is Index and (x.tensors or self.picks):
            raise CaptureError("an index expression can't be captured that a derivative, or a rule "
                               f"for batches, made of positions, {user_line()}")
        if type(x) is slice:
            return slice(self.value(x.start), self.value(x.stop), self.value(x.step))
        return tuple(x) if isinstance(x, tuple) else x

    def parsed(self, index: Any, key: Any) -> None:
        """Called when an index expression was parsed, with the expression as written."""
        self.keys[id(index)] = index, key

    def own(self, key: Any) -> Any:
        """An index expression as a graph keeps it, with copies of its tensors, which nobody else
        can write to."""
        if type(key) in (tuple, list):
            return type(key)(map(self.own, key))
        if type(key) is not Variable or key.fixed:
            return key
        self.picks = self.picks or not key.shape
        stem = operations.own_positions.name
        copy = self.block.new_variable(stem, key.shape, key.dtype, stop_gradient=True)
        self.note(OpCall(stem, {"index": key}, (copy,), {}, user_line()))
        return copy

    def value_of_each(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, as they are recorded."""
        return {key: self.value(x) for key, x in given.items()}


class Builder(CallRecorder):
    """Adds calls on Variables to a block, under `with`.

    outer: the Recorder or Builder around the block, which knows the tensors outside of it.
    """

    def __init__(self, block: Block, outer: Any = None):
        self.block, self.program, self.outer = block, block.program, outer
        self.known: dict[int, tuple[Tensor, Variable]] = {}
        self.keys = {}
        self.epoch = begin_epoch()

    def settings(self) -> Held:
        """This builder is the innermost one of its thread."""
        return Held((AttributeSwap(_open, "builders"),), ([*_open.builders, self],))

    # ---- variables

    def made(self, tensor: Tensor) -> None:
        """Called when a tensor was made of numbers; also notifies the outer capture."""
        if self.outer is not None:
            self.outer.made(tensor)

    def variable_of(self, tensor: Tensor) -> Variable:
        """The variable of a tensor from outside of the block, or made of numbers inside."""
        if id(tensor) in self.known:
            return self.known[id(tensor)][1]
        if self.outer is not None:
            found: Variable = self.outer.variable_of(tensor)
            if not (isinstance(self.outer, Builder) or self.outer.differentiates):
                found.recorded = tensor.requires_grad
            return found
        x = self.program.block.new_persistable("", tensor, "constant")
        x.fixed = x.stop_gradient and was_made_since(tensor, self.epoch)
        self.known[id(tensor)] = tensor, x
        return x

    # ---- calls

    def done(self, type: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
             inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
        return self.called(type, inputs, attributes)

    def checked(self, name: str, values: Any, facts: tuple[Any, ...]) -> None:
        """Adds a check of elements, which each run repeats."""
        self.note(OpCall("check", {"values": self.value(values)}, (),
                         {"name": name, "facts": facts}, user_line()))

    def composed(self, op: Op, function: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """The variables of a composed operation's results; its parts become calls."""
        with self.resumed():
            return op.forward(*args, **kwargs)

    def function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """The variables of an autograd.Function's results."""
        return self.called("function", {"args": self.value(args)}, {"function": cls})

    def sweep(self, roots: Any, grads: Any, **options: Any) -> Any:
        """Raises: CaptureError, since a program has its own way to gradients."""
        raise CaptureError(f"backward: can't run while a program is built, {user_line()}; use "
                           "program.append_backward or program.gradients")

    def write(self, op: Op | None, name: str, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
        """Adds an in-place write. A tensor that was made of numbers here becomes a new variable."""
        refuse_out(name, kwargs)
        given = [*map(self.value, args)]
        if name == "setitem" and has_graph(args[:2]):
            given[2] = self.own(given[2])
        x, call = args[0], write_of(name, given, kwargs, user_line())
        if type(x) is not Variable and was_made_since(x, self.epoch):
            made = value_of_write(call)
            casts = is_of_another_dtype(made, x.dtype)
            if casts:
                made = copied(call)
            fresh = self.called(made.type, made.inputs, made.attributes)
            self.known[id(x)] = x, fresh
            if not casts and call.type not in DRAWING:
                return x
            call = onto(call, fresh)
        self.block.ops.append(call)
        return x

    def called(self, type: str, inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
        """The variables of a new call's results."""
        call = OpCall(type, inputs, (), attributes, user_line())
        results = inferred(call)
        several = is_several(results)
        stops = cuts(type) or not is_grad_enabled()
        call.outputs = tuple(
            self.block.new_variable(type, shape, dtype, stop_gradient=stops)
            for shape, dtype in (results if several else (results,)))
        if not any(x.requires_grad for x in call.reads()):
            for x in call.outputs:
                x.recorded = False
        self.block.ops.append(call)
        if not several:
            return call.outputs[0]
        make = getattr(results, "_make", tuple)      # `x.max(0).values`
        return make(call.outputs)

    def note(self, call: OpCall) -> None:
        """Adds a call to the block."""
        self.block.ops.append(call)

    def leaving(self, name: str, x: Any) -> None:
        """Raises: CaptureError, as a variable has no value to read."""
        if type(x) is Variable:
            no_number(name)


def has_graph(given: Any) -> bool:
    """Whether the result of an operation on the tensors among its arguments has a graph."""
    return is_grad_enabled() and any(x.requires_grad for x in given if isinstance(x, Tensor))


def refuse_out(name: str, kwargs: dict[str, Any]) -> None:
    """Raises: CaptureError for a call with `out=`, whose arguments are left as they are, so that it
    can run eagerly."""
    if kwargs.get("out") is not None:
        raise CaptureError(f"{name}: out= can't be captured, {user_line()}; use the tensor that is "
                           "returned")
    kwargs.pop("out", None)


def no_number(name: str) -> None:
    """Raises: CaptureError, since a variable has no value before the program runs."""
    raise CaptureError(
        f"{name}: a variable of a program has no value yet, {user_line()}; use tensorlib.cond, "
        "while_loop or where for what depends on it")


# ---- inference -----------------------------------------------------------------------------------

def inferred(call: OpCall, by_example: bool = True) -> Any:
    """The shape and dtype of a call's result; for several results a list or named tuple of these.

    by_example: operations that need elements are tried with examples.
    """
    values = (*variables_in(call.inputs), *variables_in(call.attributes))
    is_open = any(None in x.shape for x in values)
    probes = PROBES if is_open else PROBES[:1]
    make, combine = twin_of, combined
    try:
        found = [run_on_twins(call, probe, make) for probe in probes]
    except Exception as error:
        if not by_example or not needs_elements(error):
            raise
        make, combine = example_of, unsized if is_sized_by_values(call) else combined
        found = [run_on_twins(call, probe, make) for probe in probes]
    if is_open:
        with suppress(Exception):                    # it may need more
            found.append(run_on_twins(call, FEW, make))
    if not isinstance(found[0], (tuple, list)):
        return combine(found)
    make = getattr(type(found[0]), "_make", list)
    return make(map(combine, zip(*found)))


def is_of_another_dtype(call: OpCall, dtype: Any) -> bool:
    """Whether the result of a call, or the value of a write, has another dtype than this one; False
    if the call fails. Values written at an index expression are cast to the tensor's dtype."""
    if is_indexed(call.type):
        return False
    with suppress(Exception):
        return bool(inferred(call)[1] is not dtype)
    return False


def is_several(results: Any) -> bool:
    """Whether the result of `inferred` is that of several results."""
    return isinstance(results, list) or hasattr(results, "_fields")


def needs_elements(error: Exception) -> bool:
    """Whether an operation could not be tried on tensors without elements."""
    return isinstance(error, NoData) or "same device" in str(error)


def run_on_twins(call: OpCall, probe: int, make: Callable[[Variable, int], Tensor]) -> Any:
    """The result of a call on tensors made by `make`, with `probe` for unknown sizes."""
    def twin(x: Variable) -> Tensor:
        return make(x, probe)

    with unseen(), no_grad():
        form, tensors, given = arguments_of(call, twin)
        if form.op is not None and form.op.random and "generator" in form.attributes:
            given["generator"] = Generator()         # the given one is for the runs
        assert form.run is not None
        result = form.run(*tensors, **with_wanted(call, form, given))
    if type(result) is tuple and len(result) == 1 and type(result[0]) is tuple:
        return result[0]                             # a sequence has a sequence of gradients
    return result


def twin_of(x: Variable, probe: int) -> Tensor:
    """A `meta` tensor with the shape and dtype of a variable."""
    shape = tuple(probe if size is None else size for size in x.shape)
    return FUNCTIONS["empty"](shape, dtype=x.dtype, device="meta")


def example_of(x: Variable, probe: int) -> Tensor:
    """An example with the shape and dtype of a variable: identity matrices, if it has matrices."""
    shape = tuple(probe if size is None else size for size in x.shape)
    if len(shape) < 2 or not x.dtype.is_floating_point:
        return FUNCTIONS["zeros"](shape, dtype=x.dtype)
    return FUNCTIONS["eye"](*shape[-2:], dtype=x.dtype).expand(shape)


def unsized(results: tuple[Any, ...] | list[Any]) -> Any:
    """`combined` for a result whose sizes depend on elements: all of them are unknown."""
    return None if results[0] is None else ((None,) * results[0].ndim, results[0].dtype)


def combined(results: tuple[Any, ...] | list[Any]) -> Any:
    """The shape and dtype of a result, with None for sizes that differ between the tries; None for
    an absent result."""
    if results[0] is None:
        return None
    shapes = [tuple(x.shape) for x in results]
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes)
                 ), results[0].dtype

