"""Capture for replay: a function runs as it is, and what it does is noted as far as that goes.

Beside what `trace` takes, `loss.backward()` and an optimiser's `step()` are captured. What can't be
captured ends the capture, and not the function: its effects are those of an eager run either way.
"""

import sys
from collections.abc import Callable
from typing import Any

from tensorlib._core.base.capture import current, set_capture
from tensorlib._core.graph.op import Op
from tensorlib._core.sweep.graph_reader import begin_epoch, was_made_since
from tensorlib._core.sweep.sweep import sweep
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.backward import Backward, dependents
from tensorlib.program.control_gradients import visit_control
from tensorlib.program.errors import CaptureError
from tensorlib.program.forms import DRAWS
from tensorlib.program.model import OpCall, Variable
from tensorlib.program.offered import user_line
from tensorlib.program.recorder import Recorder, memory_of


class ReplayRecorder(Recorder):
    """A recorder for replay, under `with`.

    Composed operations are noted as those that they are made of, where these can be captured.
    why: why nothing more is noted, or "". swept: whether a backward sweep was noted.
    """

    def __init__(self, program: Any, names: dict[int, str], fullgraph: bool):
        super().__init__(program, program.block, names)
        self.fullgraph = fullgraph
        self.why = ""
        self.opening: Op | None = None
        self.since: Any = None               # the epoch in which a composed operation began
        self.swept = False
        self.constants: dict[int, Tensor] = {}         # what was made of numbers, by its id
        self.modes: list[tuple[Any, bool]] = []        # the modules that ran, and `training`
        self.put: dict[Variable, Variable | None] = {}   # and the value that was noted for it
        self.grads: dict[Variable, Tensor] = {}        # leaves, whose `.grad` a sweep made

    def made(self, tensor: Tensor) -> None:
        self.constants[id(tensor)] = tensor

    def fail(self, why: str) -> None:
        """Ends the capture. Raises: CaptureError if it must not end."""
        if self.fullgraph:
            raise CaptureError(why)
        self.why = self.why or why

    def leaving(self, name: str, tensor: Tensor) -> None:
        try:
            super().leaving(name, tensor)
        except CaptureError as error:
            if self.since is not None:
                raise
            self.fail(str(error))

    def operation(self, op: Op | None, name: str, args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> Any:
        if self.why:
            return NotImplemented
        if op is not None and op is self.opening:
            self.opening = None
            return NotImplemented
        try:
            if name == "backward":
                return self.sweep(*args, **kwargs)
            if op is not None and op.linearity == "composite" and name == op.name and (
                    op.returns is Tensor and name not in DRAWS and not kwargs.get("out")):
                done = self.opened(op, args, kwargs)
                if done is not NotImplemented:
                    return done
            return super().operation(op, name, args, kwargs)
        except CaptureError as error:
            if self.since is not None:
                raise
            self.fail(str(error))
            return NotImplemented

    def opened(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A composed operation as those it is made of; NotImplemented where one can't be noted."""
        before, since = self.opening, self.since
        length = len(self.block.ops)
        self.opening, self.since = op, begin_epoch()
        held = set_capture(self)
        try:
            result = op.function(*args, **kwargs)
            for x in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(x, Tensor):
                    self.variable_of(x)
            return result
        except CaptureError:
            del self.block.ops[length:]
            return NotImplemented
        finally:
            set_capture(held)
            self.opening, self.since = before, since

    def variable_of(self, tensor: Tensor) -> Variable:
        """As of every recorder. Raises: CaptureError for what was not made by operations."""
        if id(tensor) not in self.known and was_made_since(tensor, self.epoch) and (
                tensor.grad_fn is not None or memory_of(tensor) not in self.by_memory
                and id(tensor) not in self.constants):
            raise CaptureError("a tensor that a Function or a kernel made can't be captured, "
                               f"{user_line()}")
        return super().variable_of(tensor)

    # ---- training steps

    def sweep(self, roots: tuple[Tensor, ...], grads: tuple[Tensor, ...], *, retain_graph: bool,
              create_graph: bool, inputs: Any, accumulate_grads: bool, no_grad: Any) -> Any:
        """A backward sweep into the leaves: the backward part of what was noted so far."""
        if create_graph or inputs is not None or no_grad:
            raise CaptureError("backward: only backward() without create_graph and inputs is "
                               f"captured, {user_line()}")
        for g in grads:                     # ones, where none were given
            self.made(g)
        starts = [(self.variable_of(x), self.variable_of(g)) for x, g in zip(roots, grads)]
        calls = list(self.block.ops)
        leaves = [x for _, x in self.known.values() if x.block is self.block and x.trainable]
        wanted = list(dict.fromkeys(leaves))
        for x in self.program.inputs:
            if self.tensor_of(x).requires_grad:
                raise CaptureError("backward: an argument that requires a gradient can't be given "
                                   f"it inside of what is captured, {user_line()}")
        work = Backward(self.block, self.block, dependents(calls, wanted, ()), visit_control)
        for x, g in starts:
            work.add(x, g)
        work.visit(calls)
        found = [(x, work.total(x)) for x in wanted]
        before = {x: x.value.grad for x, _ in found}
        sweep(roots, grads, retain_graph=retain_graph, create_graph=False, inputs=None,
              accumulate_grads=accumulate_grads, no_grad=no_grad)
        self.swept = True
        for x, g in found:
            if g is None:
                continue
            if before[x] is not None:
                raise CaptureError("backward: a gradient that was there before is not captured; "
                                   f"call zero_grad() first, {user_line()}")
            self.grads[x] = x.value.grad
            self.know(x.value.grad, g)
        return None

    def tensor_of(self, x: Variable) -> Tensor:
        """The tensor that an input is."""
        return next(tensor for tensor, y in self.known.values() if y is x)

    def put_grads(self) -> None:
        """Notes what the `.grad` of each leaf is now."""
        for x in self.grads:
            grad = x.value.grad
            value = None if grad is None else self.variable_of(grad)
            if x not in self.put or self.put[x] is not value:
                self.note(OpCall("set_grad", {"param": x, "grad": value}, ()))
                self.put[x] = value

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Is called by an optimiser before its step, which is noted as a whole."""
        if current() is not self or self.why:
            return
        set_capture(None)
        if args or kwargs:
            self.fail(f"step: a closure can't be captured, {user_line()}")
        self.put_grads()

    def before_module(self, module: Any, args: Any) -> None:
        """Is called before a module runs: what it does may depend on whether it is in training."""
        if current() is self:
            self.modes.append((module, module.training))

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Is called by an optimiser after its step."""
        if not self.why:
            self.note(OpCall("optimizer_step", {"params": (), "grads": ()}, (),
                             {"optimizer": optimizer}, user_line()))
            set_capture(self)


def capture(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
            tensors: list[Tensor], recorder: ReplayRecorder) -> Any:
    """What `f` returns, after all that it did was noted. `tensors`: those among its arguments."""
    for tensor in tensors:
        x = recorder.block.new_variable("input", tuple(tensor.shape), tensor.dtype)
        recorder.program.inputs.append(recorder.know(tensor, x))
    handles = [hook(method) for hook, method in hooks(recorder)]
    try:
        with recorder:
            return f(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()


def hooks(recorder: ReplayRecorder) -> list[tuple[Any, Any]]:
    """What adds hooks to the steps of optimisers and the calls of modules, where these are in use,
    with what a recorder is told there."""
    found = []
    optim = sys.modules.get("tensorlib.optim.optimizer")
    nn = sys.modules.get("tensorlib.nn.modules.module")
    if optim is not None:
        found += [(optim.register_optimizer_step_pre_hook, recorder.before_step),
                  (optim.register_optimizer_step_post_hook, recorder.after_step)]
    if nn is not None:
        found.append((nn.register_module_forward_pre_hook, recorder.before_module))
    return found
