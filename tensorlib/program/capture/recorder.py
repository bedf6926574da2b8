"""Capture: operations on real tensors, recorded call by call in a block.

A `Recorder` is on the thread's stack of interpreters while a function runs (_core/interpreters/).
It lets the library execute each operation, and records it: it maps each tensor to the variable of
its current value. An in-place write to a tensor that the function made gives a new variable, as the
graph has a new node for it (writes.py); a write to a captured tensor is recorded as a write.
"""

from typing import Any

from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib._core.create.generator import default_generator, sizes_of_batches
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.graph.node import recorded_so_far
from tensorlib._core.graph.op import Op
from tensorlib._core.index.keys import Index
from tensorlib._core.interpreters.capture import capture, unseen
from tensorlib._core.interpreters.stack import Interpreter
from tensorlib._core.sweep.graph_reader import attributes as kept_attributes
from tensorlib._core.sweep.graph_reader import (
    begin_epoch, gradient_place, nodes_between, was_made_since, was_recorded_since,
)
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch import Batched
from tensorlib.autograd.tree import flatten
from tensorlib.ops.lazy import operations
from tensorlib.program.building.blocks import composed_call
from tensorlib.program.building.builder import (
    Builder, CallRecorder, inferred, is_several, refuse_out,
)
from tensorlib.program.capture.writes import Writes
from tensorlib.program.differentiation.sweeps import noted_sweep
from tensorlib.program.guards.signatures import is_number, memory_of, storage_of
from tensorlib.program.ir.call_forms import IMPORTING, user_line
from tensorlib.program.ir.call_types import (
    DRAWING, cuts, form_of_call, is_draw, is_sized_by_values,
)
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import Block, OpCall, Variable


BOOLS = BY_NAME["bool"]
# Functions of a tensor that draw, with the methods that write the same numbers.
WRITING = {operations.rand_like: "uniform_", operations.randn_like: "normal_",
           operations.bernoulli: "bernoulli_"}


class Again(Interpreter):
    """Checks whether the code under it may run again: `why` it may not, or ""."""

    def __init__(self) -> None:
        self.why, self.epoch = "", begin_epoch()

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if op.draws is not None or op.random:
            self.why = "draws numbers"
        return NotImplemented if op.linearity == "composite" else super().call(op, args, kwargs)

    def write(self, op: Op | None, name: str, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
        if name in DRAWING:
            self.why = "draws numbers"
        elif not was_made_since(args[0], self.epoch):
            self.why = "writes into what was there before"
        return super().write(op, name, args, kwargs)


class Recorder(CallRecorder):
    """Records the operations of this thread in a block, inside a `with`.

    block: where calls are recorded. names: of captured tensors, by id.
    """

    differentiates = True
    why = ""                                  # why it has ended
    reads: Any = None                         # records what the function reads
    opening: Op | None = None                 # the composed operation that is about to be opened
    arguments: tuple[Tensor, ...] = ()

    def __init__(self, program: Any, block: Block, names: dict[int, str] | None = None):
        self.program, self.block, self.names = program, block, names or {}
        self.epoch, self.begun = begin_epoch(), recorded_so_far()
        self.known: dict[int, tuple[Tensor, Variable]] = {}
        self.by_memory: dict[tuple[Any, ...], Tensor] = {}
        self.by_storage: dict[int, list[Tensor]] = {}    # what is no view, by where memory begins
        self.outside: set[int] = set()                   # memory from before the function ran
        self.given: set[int] = set()                     # the memory of inputs
        self.keys = {}                                   # the keys of index expressions
        self.uncounted: dict[int, Tensor] = {}           # tensors from `x.data` of known ones
        self.stale: set[int] = set()                     # tensors written through another one
        self.branched: list[Tensor] = []     # operands of control flow with gradients
        self.unsure = False                  # whether a branch not taken would have gradients
        self.shown: list[tuple[Tensor, int]] = []   # to a Function, each with its version then
        self.writes = Writes(self)
        self.constants: dict[int, Tensor] = {}         # tensors made of numbers, by id
        self.open: set[Variable] = set()               # whose sizes may differ in another run

    def forget(self) -> None:
        """Lets go of the tensors of the call, which a reference cycle would keep for a while."""
        for each in (self.known, self.by_memory, self.by_storage, self.uncounted, self.branched,
                     self.shown, self.constants):
            each.clear()           # type: ignore[attr-defined]
        self.arguments = ()

    def made(self, tensor: Tensor) -> None:
        """Called when a tensor was made of numbers."""
        self.constants[id(tensor)] = tensor

    def settings(self) -> Any:
        """No further settings. Raises: RuntimeError inside another capture that must not end."""
        around = capture()
        if around is not None and not around.ends_for("tracing a function inside of it"):
            raise RuntimeError("program: a function is being traced already on this thread")

    # ---- tensors and their variables

    def know(self, tensor: Tensor, x: Variable) -> Variable:
        """Records that variable `x` is the current value of a tensor."""
        if tensor._base is None and id(tensor) not in self.known:
            self.by_storage.setdefault(storage_of(tensor), []).append(tensor)
        self.known[id(tensor)] = tensor, x
        self.by_memory[memory_of(tensor)] = tensor
        if not was_made_since(tensor, self.epoch):
            self.outside.add(storage_of(tensor))
        return x

    def known_as(self, result: Any, found: Any) -> Any:
        """Maps the tensors in a container to the variables in another one; returns the former."""
        for tensor, x in zip(flatten(result)[0], flatten(found)[0]):
            self.know(tensor, x)
        return result

    def feed(self, tensor: Tensor, x: Variable) -> None:
        """Makes variable `x`, the value of a tensor, an input of the program."""
        self.program.inputs.append(self.know(tensor, x))
        self.outside.add(storage_of(tensor))
        self.given.add(storage_of(tensor))

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor, or one over the same memory, has a variable."""
        return id(tensor) in self.known or memory_of(tensor) in self.by_memory

    def variable_of(self, tensor: Tensor) -> Variable:
        """The variable of a tensor's current value; for a captured one a new persistable one."""
        if self.stale and (id(tensor) in self.stale or id(tensor._base) in self.stale):
            raise CaptureError("a tensor that was written by way of another one, which detach() or "
                               f"data gave, can't be captured, {user_line()}; write into a clone")
        known = self.known.get(id(tensor))
        if known is not None:
            return self.writes.present(tensor, known[1])
        self.check_new(tensor)
        same = self.by_memory.get(memory_of(tensor))
        if same is not None and tensor.numel() and not self.is_elsewhere(tensor, same):
            if tensor.grad_fn is not None and not same.requires_grad:
                return self.at_its_place(tensor)
            self.uncounted[id(tensor)] = tensor
            x = self.variable_of(same)
            if not was_made_since(tensor, self.epoch) and any(x is y for y in self.program.inputs):
                raise CaptureError("a tensor that is read from outside lies where an argument "
                                   f"does, {user_line()}")
            is_cut = same.requires_grad and not tensor.requires_grad       # like that of `data`
            return self.cut(tensor, x) if is_cut else x
        return self.know(tensor, self.captured(tensor))

    def is_elsewhere(self, tensor: Tensor, same: Tensor) -> bool:
        """Whether a tensor from before the function ran has another grad_fn or leaf than a known
        one over the same memory, as with two parameters over one array."""
        if not tensor.requires_grad or was_made_since(tensor, self.epoch):
            return False
        return tensor.is_leaf or same.requires_grad and (
            not was_recorded_since(tensor, self.begun)
            and gradient_place(tensor) != gradient_place(same))

    def at_its_place(self, tensor: Tensor) -> Variable:
        """The variable of the tensor with the same grad_fn as one that a checkpoint recomputed.
        Raises: CaptureError if there is none."""
        place = gradient_place(tensor)
        for y, x in self.known.values():
            if y.requires_grad and gradient_place(y) == place:
                return x
        raise CaptureError(f"a value that is computed again can't be captured, {user_line()}")

    def in_steps(self, value: Tensor, of: Tensor, linked: Tensor) -> None:
        """Records that a gradient depends in steps on what `of` stands for."""
        x = self.variable_of(of) if of.is_leaf else self.at_its_place(of)
        self.noted(operations.linear_pieces.name, {"input": self.variable_of(value), "of": x},
                   linked, {})

    def cut(self, tensor: Tensor, x: Variable) -> Variable:
        """The variable of a tensor with the value of `x` and no gradient."""
        fresh = self.new_variable(operations.detach.name, tensor)
        self.note(OpCall(operations.detach.name, {"input": x}, (fresh,), {}, user_line()))
        return fresh

    def check_new(self, tensor: Tensor) -> None:
        """Raises: CaptureError for a tensor without a variable that was not made by operations."""

    def captured(self, tensor: Tensor) -> Variable:
        """A persistable variable whose value is a captured tensor, or one that the function made of
        numbers."""
        inside = was_made_since(tensor, self.epoch)
        if inside and (tensor.grad_fn is not None or id(tensor) not in self.constants):
            name = "a kernel" if tensor.grad_fn is None else tensor.grad_fn.name()
            raise CaptureError(f"{name}: what gave a tensor of shape "
                               f"{tuple(tensor.shape)} can't be captured, {user_line()}")
        if not inside:
            self.check_outside(tensor)
        x: Variable = self.program.block.new_persistable(
            self.names.get(id(tensor), ""), tensor, "constant" if inside else "captured")
        x.fixed = inside and x.stop_gradient
        if x.fixed:                        # a copy: the function may write to its own
            with unseen():
                x.value = tensor.clone()
        return x

    def check_outside(self, tensor: Tensor) -> None:
        """Raises: CaptureError for an unknown tensor over the memory of an input: it may be from
        before the call, or made in a way that was not recorded."""
        if storage_of(tensor) in self.given:
            raise CaptureError(f"a tensor of shape {tuple(tensor.shape)} over the memory of an "
                               "argument, which no operation gave, can't be captured, "
                               f"{user_line()}")

    def effect(self, name: str, x: Any) -> None:
        """Called for changes of a tensor that are no operations. Raises: CaptureError if its memory
        is replaced, as by `resize_` and `set_`."""
        if name == "detach_" and self.knows(x):
            self.cut(x, self.variable_of(x))
        if name == "data":
            raise CaptureError("data: a tensor that is given other memory can't be captured, "
                               f"{user_line()}")

    def checked(self, name: str, values: Tensor, facts: tuple[Any, ...]) -> None:
        """Records a check of values, which each run repeats."""
        self.note(OpCall("check", {"values": self.variable_of(values)}, (),
                         {"name": name, "facts": facts}, user_line()))

    # ---- what a capture is asked

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operation, after its call was recorded. NotImplemented for Batched
        arguments: the operations of their batching rules are recorded."""
        if has_examples(args, kwargs):
            return self.of_examples(op, args, kwargs)
        tensors = [x for x in args if isinstance(x, Tensor)]
        if tensors and all(map(self.is_number_of_node, tensors)):
            with unseen():
                result = op.function(*args, **kwargs)
            self.made(result)
            return result
        if tensors and all(x.dtype is BOOLS or self.is_number_of_node(x) for x in tensors):
            args = tuple([self.constant_like(x) if self.is_number_of_node(x) else x for x in args])
        return super().call(op, args, kwargs)

    def of_examples(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of Batched values that draws, after its parts were recorded, and
        NotImplemented for any other."""
        if op.draws is None or op is self.opening or self.why:
            self.opening = None
            return NotImplemented
        given = {name: x for name, x in kwargs.items() if x is not None}
        source = given.get("generator", default_generator)
        chances = args[1] if len(args) > 1 else None
        if op in WRITING and given.keys() <= {"generator"} and (
                op is not operations.bernoulli or isinstance(chances, float)):
            sizes_of_batches(op.name)            # which raises where no numbers may be drawn
            with self.resumed():
                return args[0].drawn_like(WRITING[op], args[1:], given)
        state, length, before = source.__reduce__(), len(self.block.ops), self.opening
        self.opening = op
        try:
            with self.resumed():
                result = op.function(*args, **kwargs)
        finally:
            self.opening = before
        if source.__reduce__() != state and not any(
                is_draw(call.type) for call in self.block.ops[length:]):
            self.refuse(f"{op.name}: numbers that are drawn for the examples of a batch can't be "
                        f"captured, {user_line()}")
        return result

    def constant_like(self, x: Tensor) -> Tensor:
        """A constant in the place of a number, from which a result has its dtype."""
        with unseen():
            made: Tensor = x.clone()
        self.made(made)
        return made

    def is_number_of_node(self, x: Any) -> bool:
        """Whether a tensor is a Python number that a node saved for a rule, such as an exponent."""
        return type(x) is Tensor and is_number(x) and not self.knows(x)

    def done(self, type: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
             inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
        result = self.noted(type, inputs, function(*args, **kwargs), attributes)
        if attributes and isinstance(result, Tensor) and result.grad_fn is not None:
            for name, x in kept_attributes(result.grad_fn).items():
                if isinstance(x, Index):             # which rules pass to operations
                    self.parsed(x, attributes.get(name))
        return result

    def value(self, x: Any) -> Any:
        if self.is_number_of_node(x):
            with unseen():
                return x.item()
        return super().value(x)

    def write(self, op: Op | None, name: str, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
        """Executes an in-place write, and records it."""
        if has_examples(args, kwargs):
            return NotImplemented
        refuse_out(name, kwargs)
        return self.writes.write(op, name, args, kwargs)

    def check_write(self, name: str, x: Tensor, given: tuple[Any, ...]) -> None:
        """Raises: CaptureError for a write to a captured tensor that can't be recorded."""

    def sweep(self, roots: tuple[Tensor, ...], grads: tuple[Tensor, ...], **options: Any) -> Any:
        """Executes a backward sweep, and records it as a backward part."""
        return noted_sweep(self, roots, grads, **options)

    def composed(self, op: Op, function: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """Executes a composed operation, and records it as a call with a block."""
        if has_examples(args, kwargs):
            return NotImplemented
        with unseen():
            found = composed_call(Builder(self.block, self), op, args, kwargs)
        result = function(*args, **kwargs)
        return self.known_as(result, found)

    def control(self, make: Any, args: tuple[Any, ...], eager: Any) -> Any:
        """The eager result of a call of control flow, after it was recorded with its blocks."""
        with unseen():
            found = make(Builder(self.block, self), *args)
            result = eager()
        return self.known_as_branch(result, found)

    def known_as_branch(self, result: Any, found: Any) -> Any:
        """The results of control flow, some of which may have gradients only in another run."""
        read = {*self.block.ops[-1].reads()}
        met = [tensor for tensor, x in self.known.values() if x in read]
        self.branched += [x for x in (*met, *self.uncounted.values()) if x.requires_grad]
        self.unsure = self.unsure or is_grad_enabled() and any(
            x.recorded and not tensor.requires_grad and has_gradients(x.dtype)
            for tensor, x in zip(flatten(result)[0], flatten(found)[0]))
        return self.known_as(result, found)

    def walked(self, starts: list[Any], since: int) -> None:
        """Raises for a walk through the graph of control flow, which differs between runs."""
        places = [gradient_place(x)[0] for x in self.branched]
        if any(place in starts for place in places) or nodes_between(starts, places, since):
            self.refuse("a derivative of control flow that is taken forward, or for a batch, can't "
                        f"be captured, {user_line()}")

    def function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """Executes an autograd.Function, and records it as a call."""
        return self.function_of(cls, args, {"args": self.value(args)})

    def function_of(self, cls: Any, args: tuple[Any, ...], inputs: dict[str, Any]) -> Any:
        """The same of values that the program knows."""
        counted = [x for x in args if isinstance(x, Tensor) and not x.is_inference()]
        before = [x._version for x in counted]
        state = default_generator.__reduce__()
        with Again() as again:
            result = cls.apply(*args)
        if any(isinstance(x, Tensor) and x.is_inference() for x in args):
            again.why = again.why or "is given inference tensors, which may be written unseen,"
        elif [x._version for x in counted] != before:
            again.why = "writes in place"
        elif default_generator.__reduce__() != state:
            again.why = "draws numbers"
        if again.why:
            self.refuse(f"{cls.__name__}: an autograd.Function that {again.why} can't be captured, "
                        f"{user_line()}: its gradient runs it once more, and no call does for "
                        "what nobody reads")
            return result
        requires = what_requires(args)
        self.shown += [(x, x._version) for x in flatten((args, result))[0] if is_whole(x)]
        return self.noted("function", inputs, result, {
            "function": cls, **({"requires": requires} if requires else {})})

    def entered(self, x: Tensor) -> Tensor:
        """A leaf for a transform, through which the program can be differentiated: other runs may
        have arguments with gradients, though the example has none."""
        if type(x) is Batched:
            return Batched(self.entered(x.value), x.level)    # type: ignore[return-value]
        with unseen():
            leaf: Tensor = x.detach().requires_grad_()
        self.noted(operations.view.name, {"input": self.variable_of(x)}, leaf,
                   {"shape": tuple(x.shape)})
        return leaf

    def left(self, x: Tensor) -> Tensor:
        """A result of a transform's function, mapped to the same variable."""
        if type(x) is Batched:
            return Batched(self.left(x.value), x.level)       # type: ignore[return-value]
        with unseen():
            found: Tensor = x.detach()
        self.know(found, self.variable_of(x))
        return found

    def leaving(self, name: str, tensor: Tensor) -> None:
        """Raises: CaptureError if a number is read from a tensor whose value may differ in the next
        run: one that the program computes, or a captured one."""
        if id(tensor) not in self.constants or self.knows(tensor):
            raise CaptureError(
                f"{name}: the value of a tensor can't be captured as a number, {user_line()}; "
                + ("use tensorlib.cond, while_loop or where for what depends on it"
                   if name == "bool" else
                   "keep it a tensor, or use tensorlib.cond or while_loop for what depends on it"))

    # ---- notes

    def noted(self, type: str, inputs: dict[str, Any], result: Any,
              attributes: dict[str, Any]) -> Any:
        """Records the call that gave `result`, and returns that."""
        results = result if isinstance(result, (tuple, list)) else (result,)
        line = user_line()
        if line == IMPORTING:
            return result
        if not all(map(is_whole, results)):
            what = "what is made for each example of a batch" if has_examples(results, {}) else (
                "a result that is no tensor")
            self.refuse(f"{type}: {what} can't be captured, {line}")
            return result
        outputs = tuple([None if id(x) in self.known and isinstance(x, Tensor)
                         else self.new_variable(type, x) for x in results])
        if any([x is not None for x in outputs]):
            self.note(OpCall(type, inputs, outputs, attributes, line))
        return result

    def new_variable(self, stem: str, tensor: Tensor) -> Variable:
        """A new variable of the block for a tensor that was just made."""
        x = self.block.new_variable(
            stem, tuple(tensor.shape), tensor.dtype,
            stop_gradient=cuts(stem) or not is_grad_enabled())
        self.writes.taken(tensor)
        return self.know(tensor, x)

    def refuse(self, why: str) -> None:
        """Called for a call that has run, and can't be recorded."""
        raise CaptureError(why)

    def line(self) -> str:
        """The current line of user code."""
        return user_line()

    def note(self, call: OpCall) -> None:
        """Adds a call to the block."""
        self.block.ops.append(call)
        if is_sized_by_values(call) or self.open and not self.open.isdisjoint(call.reads()):
            self.open.update(with_open_sizes(call))


def with_open_sizes(call: OpCall) -> list[Variable]:
    """The outputs of a call with open sizes, after marking them: sizes that depend on elements,
        or on such sizes."""
    try:
        found = inferred(call) if form_of_call(call).run is not None else None
    except Exception:                                  # it needs elements, which are unknown
        found = None
    known = found if is_several(found) else [found] * len(call.outputs)
    for x, result in zip(call.outputs, known):
        if x is not None:
            x.shape = result[0] if result is not None else (None,) * len(x.shape)
    return [x for x in call.writes() if None in x.shape]


def what_requires(x: Any) -> Any:
    """Which tensors among arguments, and in containers, require a gradient; False for one where
    none does."""
    if type(x) in (tuple, list):
        found = tuple(map(what_requires, x))
        return found if any(found) else False
    return isinstance(x, Tensor) and x.requires_grad


def has_examples(args: Any, kwargs: Any) -> bool:
    """Whether Batched values are among the arguments of a call, also in sequences."""
    return any([type(x) is Batched or type(x) in (tuple, list) and has_examples(x, {})
                for x in (*args, *kwargs.values())])


def is_whole(x: Any) -> bool:
    """Whether a result is a Tensor, and not a Batched value."""
    return issubclass(type(x), Tensor)
