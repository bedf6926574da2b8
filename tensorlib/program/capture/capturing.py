"""Capture for `compile`: a function runs eagerly, and its operations are captured while it does.

In contrast to `trace`, it also captures `loss.backward()` and an optimiser's `step()`. Anything
that can't be captured ends the capture, but not the function, which runs eagerly either way.
"""

from collections.abc import Callable
from threading import get_ident
from typing import Any

from tensorlib._core.base.garbage import without_collections
from tensorlib._core.base.settings import Held
from tensorlib._core.graph import owners
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.graph.op import Op
from tensorlib._core.interpreters.capture import Capture, capture as innermost, unseen
from tensorlib._core.interpreters.stack import Layer, current_layer, set_stack
from tensorlib._core.interpreters.subclasses import asks_for_all
from tensorlib._core.sweep.graph_reader import begin_epoch, gradient_place, was_made_since
from tensorlib._core.sweep.sweep import sweep
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.building.builder import Builder
from tensorlib.program.capture.aliases import laid_as
from tensorlib.program.capture.earlier_gradients import EarlierGradients
from tensorlib.program.capture.put_hooks import PutHooks
from tensorlib.program.capture.questions import (
    are_hooked, have_formulas, is_asked, rates_of, record_hooks, writes_outside)
from tensorlib.program.capture.recorder import Recorder, has_examples
from tensorlib.program.differentiation.backward import Backward, dependents
from tensorlib.program.differentiation.control_gradients import visit_control
from tensorlib.program.guards.signatures import are_without_hooks, gradient_of, memory_of
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.errors import CaptureError, ProgramError
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.passes.facts import may_fail
from tensorlib.program.reads.hooks import call
from tensorlib.program.reads.read_log import line_in

OF_MEMORY = ("storage_offset", "data_ptr", "untyped_storage", "_version", "_base")


class ReplayRecorder(Recorder):
    """A recorder for replay, to be entered by `with`.

    Composed operations are recorded as their parts, if these can be captured.
    why: why the capture has ended, or "". swept: whether a backward sweep was recorded.
    """

    differentiates = False

    def __init__(self, program: Any, names: dict[int, str], fullgraph: bool):
        super().__init__(program, program.block, names)
        self.fullgraph, self.why = fullgraph, ""
        self.being_opened: list[Op] = []     # and those around it
        self.since: Any = None               # the epoch in which a composed operation began
        self.swept, self.by_formulas = False, False      # the next sweep is run by the library
        self.modules: dict[int, Any] = {}              # that ran
        self.grads: dict[Variable, None] = {}          # leaves whose `.grad` was set
        self.put: dict[Variable, Variable | None] = {}   # and the recorded values of these
        self.leaves: list[Tensor] = []                 # leaves that a sweep reached
        self.bare: list[Tensor] = []                   # must have no `.grad` before
        self.bare_arguments: dict[int, None] = {}      # and arguments that must not, by position
        self.earlier, self.put_hooks = EarlierGradients(self), PutHooks(self)
        self.graded: list[Tensor] = []                 # tensors whose `.grad` was read
        self.groups: dict[int, Any] = {}               # of an optimiser, its `rates_of`
        self.layers: Layer | None = None               # the stack that an optimiser's step hides
        self.operators: Any = None                     # the guard of operators
        self.thread = get_ident()

    def settings(self) -> Held:
        """Restores the stack, also if an optimiser's step hid it and raised."""
        super().settings()
        return Held((set_stack,), (current_layer(),))

    def fail(self, why: str) -> None:
        """Ends the capture. Raises: CaptureError if it must not end."""
        self.reads.at = self.reads.at or line_in(self.reads.root)
        self.why = self.why or why
        if self.fullgraph:
            raise CaptureError(why)

    refuse = fail

    def ends_for(self, what: str) -> bool:
        self.fail(f"{what} can't be captured, {user_line()}")
        return True

    def leaving(self, name: str, tensor: Tensor) -> None:
        try:
            super().leaving(name, tensor)
        except CaptureError as error:
            if self.since is not None:
                raise
            self.fail(str(error))

    def checked(self, name: str, values: Tensor, facts: tuple[Any, ...]) -> None:
        self.while_it_goes(super().checked, name, values, facts)

    def entered(self, x: Tensor) -> Tensor:
        return Capture.entered(self, x)       # type: ignore[no-any-return]

    def left(self, x: Tensor) -> Tensor:
        return Capture.left(self, x)          # type: ignore[no-any-return]

    def effect(self, name: str, x: Any) -> None:
        """Called for changes of `x` that are no operations, most of which end the capture."""
        if self.why:
            return
        inside = isinstance(x, Tensor) and self.is_inside(x)
        if name == "definition":                 # an operation of the user's is called
            self.reads.try_record(self.reads.record, x, "attrs", None, [*vars(x).items()])
        elif name == "read_grad":
            grad = gradient_of(x)
            if id(x) in self.earlier.in_slots:
                self.fail(f"grad: the gradient of what is in a slot is read, {user_line()}")
            elif grad is not None and not was_made_since(grad, self.epoch):
                if any(x is y for y in self.arguments):
                    self.fail(f"grad: the gradient of an argument is read, {user_line()}")
                self.while_it_goes(self.earlier.meet, x, grad)
                self.graded.append(x)
            elif grad is None and not inside and not any(x is y.value for y in self.grads):
                place = next((i for i, y in enumerate(self.arguments) if x is y), None)
                if place is None:
                    self.bare.append(x)
                else:
                    self.bare_arguments[place] = None
        elif name in OF_MEMORY:                  # the address of the next argument is unknown
            if not self.is_inside(x if x._base is None else x._base) or name == "data_ptr":
                self.fail(f"{name}: the place of a tensor in its memory can't be captured, "
                          f"{user_line()}")
        elif name == "grad" and not inside:
            leaf = self.while_it_goes(self.variable_of, x)
            if leaf is NotImplemented:
                return
            if leaf.value is None:
                self.fail(f"grad: the gradient of an argument is set, {user_line()}")
                return
            if leaf not in self.grads and (any(x is y for y in self.graded)
                                           or any(map(may_fail, self.block.ops))):
                self.note(OpCall("set_grad", {"param": leaf, "grad": None}, (), {}, user_line()))
                self.put[leaf] = None        # after the call, which may fail
            self.grads[leaf] = None
        elif not (inside and name == "requires_grad"):
            self.fail(f"{name}: is no operation, and can't be captured, {user_line()}")

    def hooked(self, name: str, x: Tensor, hook: Any, handle: Any) -> None:
        """Records a hook on a gradient, which a sweep after the call will run."""
        if not self.why and not x.is_leaf and self.is_inside(x):
            self.while_it_goes(self.put_hooks.put, x, hook, handle)
        else:
            self.effect(name, x)

    def in_steps(self, value: Tensor, of: Tensor, linked: Tensor) -> None:
        self.while_it_goes(super().in_steps, value, of, linked)

    def is_inside(self, x: Tensor) -> bool:
        """Whether the function made a tensor, possibly over memory from outside."""
        if was_made_since(x, self.epoch):
            return True
        y = self.known[id(x)][1] if id(x) in self.known else None
        return y is not None and not y.persistable and not any(
            y is z for z in self.program.inputs)

    def control(self, make: Any, args: tuple[Any, ...], eager: Any) -> Any:
        with unseen():
            return self.noted_control(make, args, eager)

    def noted_control(self, make: Any, args: tuple[Any, ...], eager: Any) -> Any:
        """The result of a call of control flow, recorded if possible."""
        if self.why:
            return eager()
        length = len(self.block.ops)
        try:
            found = make(Builder(self.block, self), *args)
            call = self.block.ops[-1]
            for block in call.blocks():
                if writes_outside(block):
                    raise CaptureError(f"{call.type}: a write into what is outside of a branch or "
                                       f"a loop can't be captured, {user_line()}")
        except Exception as error:           # a branch may work for tensors only
            at = "" if isinstance(error, CaptureError) else f", {user_line()}"
            del self.block.ops[length:]
            self.fail(f"{error}{at}")
            return eager()
        return self.known_as_branch(eager(), found)

    def call(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if op is self.opening:
            self.opening = None
            return NotImplemented
        if has_examples(args, kwargs):
            return self.of_examples(op, args, kwargs)
        if op.linearity == "composite" and not self.why and op not in self.being_opened and (
                op.returns is Tensor and op.draws is None and not kwargs.get("out")
                and not op.whole
                and not (op.reads_values and op.checks_values and not op.sized_by_values)):
            done = self.opened(op, args, kwargs)
            if done is not NotImplemented:
                return done
            if op.sized_by_values and not self.why:
                self.fail(f"{op.name}: the size of what it gives depends on elements, "
                          f"{user_line()}")
        if "." in op.name:                   # the user's, possibly written in Python
            return self.while_it_goes(super().call, op, args, kwargs)
        return self.reads.watch.without(self.while_it_goes, super().call, op, args, kwargs)

    def value(self, x: Any) -> Any:
        """Raises: CaptureError for an object that is converted to a number or a sequence by its own
        methods: planning calls these more often than the function, and a replay never."""
        found = super().value(x)
        if found is x and type(x) is not Variable and is_asked(x):
            raise CaptureError(f"an operation asks a {type(x).__name__} what number it is, which "
                               f"can't be captured, {user_line()}; give it a number")
        return found

    def write(self, op: Op | None, name: str, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
        return self.while_it_goes(super().write, op, name, args, kwargs)

    def check_write(self, name: str, x: Tensor, given: tuple[Any, ...]) -> None:
        """Raises: CaptureError for a write that changes the grad_fn of a tensor from before the
        call, which a replay does not do."""
        values = (x, x if x._base is None else x._base, *given)
        if is_grad_enabled() and any(y.requires_grad for y in values if isinstance(y, Tensor)):
            raise CaptureError(f"{name}: a write that has a gradient, into what was there before, "
                               f"can't be captured, {user_line()}")

    def sweep(self, roots: tuple[Tensor, ...], grads: tuple[Tensor, ...], **options: Any) -> Any:
        if self.by_formulas:
            self.by_formulas = False
            return NotImplemented
        return self.while_it_goes(self.noted_sweep, roots, grads, **options)

    def function(self, cls: Any, args: tuple[Any, ...]) -> Any:
        inputs = self.while_it_goes(self.value, args)
        return inputs if inputs is NotImplemented else self.function_of(cls, args,
                                                                        {"args": inputs})

    def composed(self, op: Op, function: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        return self.while_it_goes(super().composed, op, function, args, kwargs)

    def while_it_goes(self, note: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of a method that records; NotImplemented if the capture has ended."""
        if self.why:
            return NotImplemented
        try:
            return note(*args, **kwargs)
        except CaptureError as error:
            if self.since is not None:
                raise
            self.fail(str(error))
            return NotImplemented

    def opened(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records a composed operation as its parts; NotImplemented if one of them can't be."""
        before, since = self.opening, self.since
        length = len(self.block.ops)
        self.opening, self.since = op, begin_epoch()
        self.being_opened.append(op)
        try:
            with self.resumed():
                result = op.function(*args, **kwargs)
            for x in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(x, Tensor) and not self.why:
                    self.variable_of(x)
            return result
        except CaptureError:
            if self.why:                     # nor can it be recorded as a whole
                raise
            del self.block.ops[length:]
            return NotImplemented
        finally:
            self.opening, self.since = before, since
            self.being_opened.pop()

    def captured(self, tensor: Tensor) -> Variable:
        return self.earlier.feed(tensor) if tensor in self.earlier else super().captured(tensor)

    def check_outside(self, tensor: Tensor) -> None:
        """Does nothing: reads are checked when the function has run (`refuse_unseen`)."""

    def check_new(self, tensor: Tensor) -> None:
        if type(tensor) is not Tensor and asks_for_all(tensor):   # else its class is called
            raise CaptureError(f"a {type(tensor).__name__}, whose class has a __torch_function__, "
                               f"can't be captured, {user_line()}")
        if was_made_since(tensor, self.epoch) and (
                memory_of(tensor) not in self.by_memory and id(tensor) not in self.constants
                or tensor.grad_fn is not None and not self.is_result(tensor)):
            raise CaptureError("a tensor that a Function or a kernel made can't be captured, "
                               f"{user_line()}")

    def is_result(self, tensor: Tensor) -> bool:
        """Whether a tensor is a result of a recorded call, as its node passes it to a rule."""
        place = memory_of(tensor), gradient_place(tensor)
        return any(x.requires_grad and (memory_of(x), gradient_place(x)) == place
                   for x, _ in self.known.values())

    def noted_sweep(self, roots: tuple[Tensor, ...], grads: tuple[Tensor, ...], *,
                    retain_graph: bool, create_graph: bool, inputs: Any, accumulate_grads: bool,
                    no_grad: Any) -> Any:
        """Records a backward sweep as the backward part of the calls so far.

        Raises: CaptureError, before the sweep has run, if that is not possible.
        """
        if no_grad or self.put_hooks.all:
            what = "no_grad_set" if no_grad else "a hook on a gradient"
            raise CaptureError(f"backward: {what} can't be captured, {user_line()}")
        if create_graph and (accumulate_grads or not have_formulas(self.block.ops)):
            raise CaptureError("backward: a gradient with create_graph=True can't be captured to "
                               f"the bit, {user_line()}")
        for g in grads:                     # ones by default
            self.made(g)
        starts = [(self.variable_of(x), self.variable_of(g)) for x, g in zip(roots, grads)]
        if inputs is None:
            known = [x for _, x in self.known.values() if x.block is self.block and x.trainable]
            wanted = list(dict.fromkeys(known))
            self.check_arguments()
        else:
            wanted = [self.variable_of(x) for x in inputs]
            outside = [x for x in inputs if not self.is_inside(x)]
            self.check_hooks(outside)
            self.leaves += [x for x in outside if not any(x is y for y in self.arguments)]
        self.check_graphs_around([x for x, _ in starts], wanted)
        if create_graph:
            self.by_formulas = True         # as single operations, each of which is recorded
            with self.resumed():
                made = sweep(roots, grads, retain_graph=retain_graph, create_graph=True,
                             inputs=inputs, accumulate_grads=False, no_grad=None)
            for tensor in made:
                if tensor is not None and not self.why:
                    self.variable_of(tensor)
            return made
        before = self.before_sweep(wanted) if accumulate_grads else {}
        with without_collections():
            found = self.gradients(starts, wanted)
        made = sweep(roots, grads, retain_graph=retain_graph, create_graph=False,
                     inputs=inputs, accumulate_grads=accumulate_grads, no_grad=no_grad)
        if accumulate_grads:
            self.accumulated(wanted, found, before)
            return made
        for tensor, g in zip(made, found):
            if (tensor is None) != (g is None):
                self.fail(f"backward: this gradient can't be captured, {user_line()}")
            elif tensor is not None:
                self.know(tensor, g)
        return made

    def gradients(self, starts: list[tuple[Variable, Variable]],
                  wanted: list[Variable]) -> list[Variable | None]:
        """The gradients of the wanted variables, after recording the calls that compute them."""
        calls = list(self.block.ops)
        work = Backward(self.block, self.block, dependents(calls, wanted, ()), visit_control)
        try:
            found = work.gradients(calls, starts, wanted)
            if work.must_run:
                raise ProgramError("whether there are gradients depends on whether a loop runs, "
                                   f"{work.must_run[0].line}")
        except ProgramError as error:
            raise CaptureError(str(error)) from None
        for made in self.block.ops[len(calls):]:
            for x in made.writes():
                x.stop_gradient = True
        return found

    def check_graphs_around(self, roots: list[Variable], wanted: list[Variable]) -> None:
        """Raises: CaptureError if a sweep would continue into the graph of an argument, or of a
        captured tensor, which may lead to a wanted variable as well."""
        made = [x for tensor, x in self.known.values() if tensor.grad_fn is not None and (
            x.persistable or any(x is y for y in self.program.inputs))]
        if len(wanted) == 1:                     # no graph leads to itself
            made = [x for x in made if x is not wanted[0]]
        if made and not dependents(self.block.ops, made).isdisjoint(roots):
            raise CaptureError("backward: a gradient that may come through the graph of an "
                               f"argument can't be captured, {user_line()}")

    def check_arguments(self) -> None:
        """Raises: CaptureError if an argument would get a gradient."""
        if any(tensor.requires_grad and any(x is y for y in self.program.inputs)
               for tensor, x in self.known.values()):
            raise CaptureError("backward: an argument that requires a gradient can't be given it "
                               f"inside of what is captured, {user_line()}")

    def before_sweep(self, wanted: list[Variable]) -> dict[Variable, Variable | None]:
        """The `.grad` of each leaf, to which a sweep adds. Raises: CaptureError."""
        found: dict[Variable, Variable | None] = {}
        for x in wanted:
            if x.value is None or not x.trainable:
                raise CaptureError("backward: only parameters can be given a gradient in what is "
                                   f"captured, {user_line()}")
            grad = x.value.grad
            if grad is not None and not was_made_since(grad, self.epoch):
                self.earlier.meet(x.value, grad)
            found[x] = None if grad is None else self.variable_of(grad)
        leaves = [x.value for x in found]
        self.check_hooks(leaves)
        self.leaves += leaves
        return found

    def check_hooks(self, tensors: list[Tensor]) -> None:
        """Raises: CaptureError if the user registered hooks for these gradients."""
        if not are_without_hooks(tensors):
            raise CaptureError(f"backward: a hook on a gradient can't be captured, {user_line()}")

    def accumulated(self, wanted: list[Variable], found: list[Variable | None],
                    before: dict[Variable, Variable | None]) -> None:
        """Records the `.grad` of each leaf after a sweep."""
        self.swept = True
        for x, g in zip(wanted, found):
            if g is None:
                continue
            old = before[x]
            if old is not None and any(old is y for y in self.program.inputs):
                self.earlier.added(x.value, old, g)
                continue
            g = laid_as(x, g, self.block, self.note)
            if old is not None:
                total = self.block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype,
                                                stop_gradient=True)
                self.note(OpCall("sum", {"parts": (old, g)}, (total,), {}, user_line()))
                g = total
            elif x not in self.grads:
                self.bare.append(x.value)
            self.grads[x] = None
            self.know(x.value.grad, g)

    def put_grads(self) -> None:
        """Records the current `.grad` of each leaf."""
        for x in self.grads:
            grad = x.value.grad
            value = None if grad is None else self.variable_of(grad)
            if x not in self.put or self.put[x] is not value:
                self.note(OpCall("set_grad", {"param": x, "grad": value}, (),
                                 {} if grad is None else {"strides": grad.stride()}))
                self.put[x] = value

    def tell_apart(self) -> None:
        """Raises: CaptureError if the function had an effect that a replay would not repeat."""
        for optimizer, rates in self.groups.values():
            if rates != rates_of(optimizer):
                raise CaptureError("what changes the options of an optimiser can't be captured; "
                                   "do that outside of the function")

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Called by an optimiser before its step, which is recorded as a whole."""
        if innermost() is not self or self.why:
            return
        self.layers = set_stack(None)
        self.groups.setdefault(id(optimizer), (optimizer, rates_of(optimizer)))
        if len(args) > 1 or kwargs:          # beside the optimiser
            self.fail(f"step: a closure can't be captured, {user_line()}")
        put = {id(x.value) for x in self.grads}          # else the step does not change them
        self.bare += [x for group in optimizer.param_groups for x in group["params"]
                      if id(x) not in put and gradient_of(x) is None]
        self.put_grads()

    def before_module(self, module: Any, args: Any) -> None:
        """Called before a module runs, which may depend on its training mode."""
        if innermost() is not self or self.why:
            return
        self.modules[id(module)] = module
        self.reads.try_record(self.reads.record_module, module)
        record_hooks(module, self.reads)
        if are_hooked():
            self.fail(f"{type(module).__name__}: a hook on all modules can't be captured, "
                      f"{user_line()}")

    def inner_step(self, optimizer: Any) -> None:
        """Called by a step that is not the one of the optimiser's class, before it runs."""
        if innermost() is self:              # and not within that one
            self.fail(f"step: what replaces a step can't be captured, {user_line()}")

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Called by an optimiser after its step, on any thread."""
        if self.layers is None or get_ident() != self.thread:
            return
        if not self.why:
            self.note(OpCall("optimizer_step", {"params": (), "grads": ()}, (),
                             {"optimizer": optimizer}, user_line()))
        set_stack(self.layers)
        self.layers = None


def capture(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
            tensors: tuple[Tensor, ...], recorder: ReplayRecorder) -> Any:
    """The result of `f`, after recording its reads and operations. tensors: of its arguments."""
    for optimizer in owners.optimizers.alive():
        recorder.groups[id(optimizer)] = optimizer, rates_of(optimizer)
    recorder.arguments = tensors
    for tensor in tensors:
        x = recorder.block.new_variable("input", tuple(tensor.shape), tensor.dtype)
        recorder.feed(tensor, x)
    reads = recorder.reads
    with (owners.optimizers.hooked(recorder.before_step, recorder.after_step, recorder.inner_step),
          owners.modules.hooked(recorder.before_module),
          recorder, reads.settings(), reads, reads.watch):
        recorder.operators = reads.operators()
        return call(f, *args, **kwargs)
