"""Capture: the operations that run on real tensors, recorded call by call in a block.

A `Recorder` is on the thread's stack of interpreters while a function runs (_core/interpreters/).
It is offered each operation, lets the library execute it, and records it: for each tensor it knows
the variable that stands for its present value. An in-place write into a tensor that the function
made gives a new variable, as the graph has a new node for it (writes.py); a write into a captured
tensor is recorded as a write.
"""

from typing import Any

from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib._core.create.generator import default_generator
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
from tensorlib.ops.late import operations
from tensorlib.program.building.blocks import composed_call
from tensorlib.program.building.builder import Builder, Noter, inferred, is_several, refuse_out
from tensorlib.program.capture.writes import Writes
from tensorlib.program.differentiation.sweeps import noted_sweep
from tensorlib.program.guards.signatures import is_number, memory_of, storage_of
from tensorlib.program.ir.call_forms import IMPORTING, user_line
from tensorlib.program.ir.call_types import DRAWING, cuts, form_of_call, is_sized_by_values
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import Block, OpCall, Variable


BOOLS = BY_NAME["bool"]


class Again(Interpreter):
    """Looks whether what runs under it may run once more: why it may not, or ""."""

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


class Recorder(Noter):
    """Records the operations of this thread in a block, under `with`.

    block: where calls are recorded. names: of tensors by their id, for what is captured.
    """

    differentiates = True

    def __init__(self, program: Any, block: Block, names: dict[int, str] | None = None):
        self.program, self.block, self.names = program, block, names or {}
        self.epoch, self.begun = begin_epoch(), recorded_so_far()
        self.known: dict[int, tuple[Tensor, Variable]] = {}
        self.by_memory: dict[tuple[Any, ...], Tensor] = {}
        self.by_storage: dict[int, list[Tensor]] = {}    # what is no view, by where memory begins
        self.outside: set[int] = set()                   # memory that was there before
        self.given: set[int] = set()                     # and of that, the memory of inputs
        self.keys = {}                                   # index expressions as they were written
        self.uncounted: dict[int, Tensor] = {}           # what `data` gave of what is known
        self.stale: set[int] = set()                     # what was written by way of another tensor
        self.branched: list[Tensor] = []     # with gradients, that control flow was given
        self.unsure = False                  # whether a branch not taken would have given gradients
        self.shown: list[tuple[Tensor, int]] = []   # to a Function, each with its version then
        self.writes = Writes(self)
        self.constants: dict[int, Tensor] = {}         # what was made of numbers, by its id
        self.open: set[Variable] = set()               # whose sizes may be others in another run

    def made(self, tensor: Tensor) -> None:
        """Called when a tensor was made of numbers."""
        self.constants[id(tensor)] = tensor

    def settings(self) -> Any:
        """Nothing else is set. Raises: RuntimeError under another capture that must not end."""
        around = capture()
        if around is not None and not around.ends_for("tracing a function inside of it"):
            raise RuntimeError("program: a function is being traced already on this thread")

    # ---- tensors and their variables

    def know(self, tensor: Tensor, x: Variable) -> Variable:
        """Records that variable `x` is the present value of a tensor."""
        if tensor._base is None and id(tensor) not in self.known:
            self.by_storage.setdefault(storage_of(tensor), []).append(tensor)
        self.known[id(tensor)] = tensor, x
        self.by_memory[memory_of(tensor)] = tensor
        if not was_made_since(tensor, self.epoch):
            self.outside.add(storage_of(tensor))
        return x

    def known_as(self, result: Any, found: Any) -> Any:
        """A container of tensors, for which the variables in another one stand now."""
        for tensor, x in zip(flatten(result)[0], flatten(found)[0]):
            self.know(tensor, x)
        return result

    def feed(self, tensor: Tensor, x: Variable) -> None:
        """Makes variable `x` an input of the program, which a tensor stands for."""
        self.program.inputs.append(self.know(tensor, x))
        self.outside.add(storage_of(tensor))
        self.given.add(storage_of(tensor))

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor, or one of the same memory, has a variable."""
        return id(tensor) in self.known or memory_of(tensor) in self.by_memory

    def variable_of(self, tensor: Tensor) -> Variable:
        """The variable of a tensor's present value; for one from outside a new persistable one."""
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
            is_cut = same.requires_grad and not tensor.requires_grad       # as what `data` gives
            return self.cut(tensor, x) if is_cut else x
        return self.know(tensor, self.captured(tensor))

    def is_elsewhere(self, tensor: Tensor, same: Tensor) -> bool:
        """Whether a tensor that was there before the function ran has another place in the graph
        than one of the same memory, as two parameters over one array have."""
        if not tensor.requires_grad or was_made_since(tensor, self.epoch):
            return False
        return tensor.is_leaf or same.requires_grad and (
            not was_recorded_since(tensor, self.begun)
            and gradient_place(tensor) != gradient_place(same))

    def at_its_place(self, tensor: Tensor) -> Variable:
        """The variable of what has the place in the graph of a tensor that was computed again, as
        a checkpoint does. Raises: CaptureError where there is none."""
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
        """The variable of a tensor that has the value of `x`, and no gradient."""
        fresh = self.new_variable(operations.detach.name, tensor)
        self.note(OpCall(operations.detach.name, {"input": x}, (fresh,), {}, user_line()))
        return fresh

    def check_new(self, tensor: Tensor) -> None:
        """Raises: CaptureError for a tensor without a variable that was not made by operations."""

    def captured(self, tensor: Tensor) -> Variable:
        """A persistable variable whose value is a tensor that the function took from outside, or
        that it made of numbers."""
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
        if x.fixed:                        # as it was made: the function may write into its own
            with unseen():
                x.value = tensor.clone()
        return x

    def check_outside(self, tensor: Tensor) -> None:
        """Raises: CaptureError for a tensor over the memory of an input: nobody knows whether it
        was there before, or the function made it in a way that is not noted."""
        if storage_of(tensor) in self.given:
            raise CaptureError(f"a tensor of shape {tuple(tensor.shape)} over the memory of an "
                               "argument, which no operation gave, can't be captured, "
                               f"{user_line()}")

    def effect(self, name: str, x: Any) -> None:
        """Is told of what is done to a tensor and is no operation. Raises: CaptureError where it is
        given the memory of another one, as by `resize_` and `set_`."""
        if name == "detach_" and self.knows(x):
            self.cut(x, self.variable_of(x))
        if name == "data":
            raise CaptureError("data: a tensor that is given other memory can't be captured, "
                               f"{user_line()}")

    def checked(self, name: str, values: Tensor, facts: tuple[Any, ...]) -> None:
        """Records that elements are checked, which each run does anew."""
        self.note(OpCall("check", {"values": self.variable_of(values)}, (),
                         {"name": name, "facts": facts}, user_line()))

    # ---- what a capture is asked

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an operation gives, after its call was recorded. NotImplemented for one of examples
        of a batch: what their rules do with the whole of it is recorded."""
        if has_examples(args, kwargs):
            return NotImplemented
        tensors = [x for x in args if isinstance(x, Tensor)]
        if tensors and all(map(self.is_number_of_node, tensors)):
            with unseen():
                result = op.function(*args, **kwargs)
            self.made(result)
            return result
        if tensors and all(x.dtype is BOOLS or self.is_number_of_node(x) for x in tensors):
            args = tuple([self.constant_like(x) if self.is_number_of_node(x) else x for x in args])
        return super().call(op, args, kwargs)

    def constant_like(self, x: Tensor) -> Tensor:
        """A constant in the place of a number, from which a result has its dtype."""
        with unseen():
            made: Tensor = x.clone()
        self.made(made)
        return made

    def is_number_of_node(self, x: Any) -> bool:
        """Whether a tensor stands for a number, which a rule has of a node, such as an exponent."""
        return type(x) is Tensor and is_number(x) and not self.knows(x)

    def done(self, type: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
             inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
        result = self.noted(type, inputs, function(*args, **kwargs), attributes)
        if attributes and isinstance(result, Tensor) and result.grad_fn is not None:
            for name, x in kept_attributes(result.grad_fn).items():
                if isinstance(x, Index):             # which a rule gives to operations
                    self.parsed(x, attributes.get(name))
        return result

    def value(self, x: Any) -> Any:
        if self.is_number_of_node(x):
            with unseen():
                return x.item()
        return super().value(x)

    def write(self, op: Op | None, name: str, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
        """Has the library do a write in place, and notes it."""
        if has_examples(args, kwargs):
            return NotImplemented
        refuse_out(name, kwargs)
        return self.writes.write(op, name, args, kwargs)

    def check_write(self, name: str, x: Tensor, given: tuple[Any, ...]) -> None:
        """Raises: CaptureError for a write into what lasts that can't be recorded."""

    def sweep(self, roots: tuple[Tensor, ...], grads: tuple[Tensor, ...], **options: Any) -> Any:
        """Has the library do a backward sweep, and notes it as a backward part."""
        return noted_sweep(self, roots, grads, **options)

    def composed(self, op: Op, function: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """Has a composed operation done, and notes it as a call with a block."""
        if has_examples(args, kwargs):
            return NotImplemented
        with unseen():
            found = composed_call(Builder(self.block, self), op, args, kwargs)
        result = function(*args, **kwargs)
        return self.known_as(result, found)

    def control(self, make: Any, args: tuple[Any, ...], eager: Any) -> Any:
        """What a call of control flow gives as eager code, once it is recorded with its blocks."""
        with unseen():
            found = make(Builder(self.block, self), *args)
            result = eager()
        return self.known_as_branch(result, found)

    def known_as_branch(self, result: Any, found: Any) -> Any:
        """The same of what control flow gave, of which some may have gradients in another run."""
        read = {*self.block.ops[-1].reads()}
        met = [tensor for tensor, x in self.known.values() if x in read]
        self.branched += [x for x in (*met, *self.uncounted.values()) if x.requires_grad]
        self.unsure = self.unsure or is_grad_enabled() and any(
            x.recorded and not tensor.requires_grad and has_gradients(x.dtype)
            for tensor, x in zip(flatten(result)[0], flatten(found)[0]))
        return self.known_as(result, found)

    def walked(self, starts: list[Any], since: int) -> None:
        """Refuses a walk along what control flow did: in another run it does something else."""
        places = [gradient_place(x)[0] for x in self.branched]
        if any(place in starts for place in places) or nodes_between(starts, places, since):
            self.refuse("a derivative of control flow that is taken forward, or for a batch, can't "
                        f"be captured, {user_line()}")

    def function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """Has an autograd.Function run, and notes it as a call."""
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
        """A leaf for a transform, which a program can differentiate through: a run may be of what
        has a gradient, though the example has none."""
        if type(x) is Batched:
            return Batched(self.entered(x.value), x.level)    # type: ignore[return-value]
        with unseen():
            leaf: Tensor = x.detach().requires_grad_()
        self.noted(operations.view.name, {"input": self.variable_of(x)}, leaf,
                   {"shape": tuple(x.shape)})
        return leaf

    def left(self, x: Tensor) -> Tensor:
        """A result of a transform's function, which stands for the same value of the program."""
        if type(x) is Batched:
            return Batched(self.left(x.value), x.level)       # type: ignore[return-value]
        with unseen():
            found: Tensor = x.detach()
        self.know(found, self.variable_of(x))
        return found

    def leaving(self, name: str, tensor: Tensor) -> None:
        """Raises: CaptureError where a number is taken of a tensor that may have another one in the
        next run: the program computes it, or it was there before the function."""
        if id(tensor) not in self.constants or self.knows(tensor):
            raise CaptureError(
                f"{name}: the value of a tensor can't be captured as a number, {user_line()}; "
                + ("use tensorlib.cond, while_loop or where for what depends on it"
                   if name == "bool" else
                   "keep it a tensor, or use tensorlib.cond or while_loop for what depends on it"))

    # ---- notes

    def noted(self, type: str, inputs: dict[str, Any], result: Any,
              attributes: dict[str, Any]) -> Any:
        """`result`, after the call that gave it was recorded."""
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
        """A variable of the block that stands for a tensor which was made just now."""
        x = self.block.new_variable(
            stem, tuple(tensor.shape), tensor.dtype,
            stop_gradient=cuts(stem) or not is_grad_enabled())
        self.writes.taken(tensor)
        return self.know(tensor, x)

    def refuse(self, why: str) -> None:
        """Is told of a call that has run, and can't be recorded."""
        raise CaptureError(why)

    def line(self) -> str:
        """The line of user code that runs."""
        return user_line()

    def note(self, call: OpCall) -> None:
        """Adds a call to the block."""
        self.block.ops.append(call)
        if is_sized_by_values(call) or self.open and not self.open.isdisjoint(call.reads()):
            self.open.update(with_open_sizes(call))


def with_open_sizes(call: OpCall) -> list[Variable]:
    """The outputs of a call that have open sizes, after they were given them: those that follow
    from elements, and those that follow from such."""
    try:
        found = inferred(call) if form_of_call(call).run is not None else None
    except Exception:                                  # it needs elements that nobody knows
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
    """Whether examples of a batch are among the arguments of a call, also in sequences."""
    return any([type(x) is Batched or type(x) in (tuple, list) and has_examples(x, {})
                for x in (*args, *kwargs.values())])


def is_whole(x: Any) -> bool:
    """Whether a result is a tensor, and not a proxy of the examples of a batch."""
    return issubclass(type(x), Tensor)
