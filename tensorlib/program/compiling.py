"""`compile`: a function that is captured once for each kind of arguments, and replayed."""

import warnings
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from tensorlib._core.base.capture import current
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.function import Function
from tensorlib.autograd.modes import no_grad
from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.batch import running_levels
from tensorlib.program.backward import Backward, dependents
from tensorlib.program.capturing import ReplayRecorder, capture
from tensorlib.program.control_gradients import visit_control
from tensorlib.program.errors import CaptureError
from tensorlib.program.executor import Machine
from tensorlib.program.interpreter import run_call, value_of
from tensorlib.program.model import OpCall, Variable
from tensorlib.program.passes import optimized
from tensorlib.program.plan import Unplanned, plan
from tensorlib.program.program import Program
from tensorlib.program.signatures import Signature
from tensorlib.program.trace import captured_names

MOST_TRACES = 16         # of one compiled function; beyond these it runs eagerly


class Replay:
    """A captured call, ready to run again on tensors of the same kind.

    fed: the variables of the inputs and of what lasts, in order. Raises: Unplanned.
    """

    def __init__(self, program: Program, lasting: list[Variable], wanted: list[Variable],
                 layouts: list[Tensor]):
        self.program, self.lasting, self.wanted = program, lasting, wanted
        self.values = [x.value for x in lasting]
        self.lasts = Signature((self.values,), {})
        self.fed = [*program.inputs, *lasting]
        self.machine = plan(optimized(program.block.ops, wanted, self.fed),
                            dict(zip(self.fed, [*layouts, *self.values])), wanted)

    def fits(self) -> bool:
        """Whether what lasts is as it was when the call was captured."""
        return self.lasts.tensors_of((self.values,), {}) is not None

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        """The outputs for these inputs."""
        given = (*inputs, *self.values)
        if self.machine.is_running:            # on another thread, or further up on this one
            return run_calls(self.program.block.ops, dict(zip(self.fed, given)), self.wanted)
        outputs: list[Tensor] = self.machine(given)
        return outputs


def run_calls(calls: list[OpCall], values: dict[Variable, Any],
              wanted: list[Variable]) -> list[Tensor]:
    """The wanted values after calls ran one by one, where a machine is busy or can't do it."""
    with no_grad():
        for call in calls:
            run_call(call, values)
    return [value_of(x, values) for x in wanted]


class Differentiable(Replay):
    """A captured call whose outputs have gradients: one node in the graph of the caller."""

    def __init__(self, program: Program, lasting: list[Variable], wanted: list[Variable],
                 layouts: list[Tensor]):
        forward = list(program.block.ops)
        sources = [x for x, like in zip((*program.inputs, *lasting),
                                        (*layouts, *(x.value for x in lasting)))
                   if like.requires_grad]
        depends = dependents(forward, sources)
        given = {*program.inputs, *lasting}
        self.roots = [x for x in dict.fromkeys(wanted) if x in depends and x not in given]
        if not self.roots:
            raise Unplanned("no output depends on what requires a gradient")
        work = Backward(program.block, program.block, depends, visit_control)
        starts = [program.block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
                  for x in self.roots]
        for x, g in zip(self.roots, starts):
            work.add(x, g)
        work.visit(forward)
        totals = [work.total(x) for x in sources]
        backward = program.block.ops[len(forward):]
        program.block.ops = forward
        self.sources = [x for x, g in zip(sources, totals) if g is not None]
        self.grads = [g for g in totals if g is not None]
        written = {x for call in forward for x in call.writes()}
        read = dict.fromkeys(x for call in backward for x in call.reads())
        self.saved = [x for x in read if x in written]
        self.direct = [x for x in read if x in given]
        self.count = len(wanted)
        places = {x: i for i, x in enumerate(wanted)}
        self.root_places = {x: places[x] for x in self.roots}
        super().__init__(program, lasting, [*wanted, *self.saved], layouts)
        self.backward_calls = optimized(backward, self.grads,
                                        [*starts, *self.saved, *self.direct])
        self.starts = starts
        self.backward: Machine | None = None
        self.plannable = True
        self.places = {x: i for i, x in enumerate(self.fed)}

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        given = (*inputs, *self.values)
        made = _Node.apply(self, given, *[given[self.places[x]] for x in self.sources])
        made = made if isinstance(made, tuple) else (made,)
        return [given[self.places[x]] if x in self.places else out        # no operation made it
                for x, out in zip(self.wanted, made)]

    def gradients(self, given: list[Tensor]) -> list[Tensor]:
        """The gradients of the sources, for the roots' gradients and what was kept."""
        fed = dict(zip((*self.starts, *self.saved, *self.direct), given))
        if self.plannable and (self.backward is None or not self.backward.fits(tuple(given))):
            try:
                self.backward = plan(self.backward_calls, fed, self.grads)
            except Unplanned:
                self.plannable = False
        if not self.plannable or self.backward is None or self.backward.is_running:
            return run_calls(self.backward_calls, fed, self.grads)
        found: list[Tensor] = self.backward(tuple(given))
        return found


class _Node(Function):
    """The node of a replayed call."""

    @staticmethod
    def forward(ctx: Any, replay: Differentiable, given: Any, *sources: Tensor) -> Any:
        found = Replay.run(replay, given[:len(replay.program.inputs)])
        outputs, saved = found[:replay.count], found[replay.count:]
        ctx.replay = replay
        ctx.save_for_backward(*saved, *[given[replay.places[x]] for x in replay.direct])
        ctx.mark_non_differentiable(*[
            out for x, out in zip(replay.wanted, outputs) if x not in replay.root_places])
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        replay = ctx.replay
        if is_grad_enabled():
            raise RuntimeError("compile: the gradient of a compiled function has no gradient; "
                               "differentiate the function itself where a second one is wanted")
        gs = [grads[place] for place in replay.root_places.values()]
        with no_grad():
            found = replay.gradients([*gs, *ctx.saved_tensors])
        return None, None, *found


class Compiled:
    """What `compile` gives: a function that replays what it did before."""

    def __init__(self, f: Callable[..., Any], fullgraph: bool):
        self._f, self._fullgraph = f, fullgraph
        self._entries: list[Entry | Refusal] = []
        self._eager = False
        update_wrapper(self, f if hasattr(f, "__name__") else type(f), updated=())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_f"], name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __repr__(self) -> str:
        return f"compile({self._f!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._eager or current() is not None or running_levels():
            return self._f(*args, **kwargs)
        for entry in self._entries:
            tensors = entry.kind.tensors_of(args, kwargs)
            if tensors is not None and entry.fits():
                if entry.replay is None:
                    break
                return entry(tensors)
        else:
            return self._capture(args, kwargs)
        return self._f(*args, **kwargs)

    def _capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function returns, after there is an entry for calls of this kind."""
        if len(self._entries) >= MOST_TRACES:
            self._eager = True
            warn(f"compile: {name_of(self._f)} was captured for {MOST_TRACES} kinds of arguments; "
                 "it runs eagerly from now on")
            return self._f(*args, **kwargs)
        kind = Signature(args, kwargs)
        recorder = ReplayRecorder(Program(), captured_names(self._f), self._fullgraph)
        tensors = kind.tensors_of(args, kwargs)
        if tensors is None:                             # an argument that differs from itself
            return self._f(*args, **kwargs)
        result = capture(self._f, args, kwargs, tensors, recorder)
        try:
            if recorder.why:
                raise Unplanned(recorder.why)
            entry: Entry | Refusal = Entry(kind, recorder, tensors, result)
        except Unplanned as error:
            if self._fullgraph:
                raise CaptureError(f"compile: {name_of(self._f)}: {error}") from None
            warn(f"compile: {name_of(self._f)} runs eagerly: {error}")
            entry = Refusal(kind)
        self._entries.insert(0, entry)
        return result


class Refusal:
    """Calls of a kind that can't be captured."""

    replay = None

    def __init__(self, kind: Signature):
        self.kind = kind

    def fits(self) -> bool:
        """True: all calls of this kind run eagerly."""
        return True


class Entry:
    """How one kind of call is replayed."""

    def __init__(self, kind: Signature, recorder: ReplayRecorder, tensors: list[Tensor],
                 result: Any):
        program = recorder.program
        recorder.put_grads()
        self.kind, self.modes = kind, recorder.modes
        found, self.structure = flatten(result)
        self.slots = [recorder.variable_of(x) if isinstance(x, Tensor) else x for x in found]
        wanted = [x for x in self.slots if type(x) is Variable]
        made = Replay if recorder.swept or not any(
            isinstance(x, Tensor) and x.requires_grad for x in found) else Differentiable
        self.replay = made(program, program.persistables(), wanted, tensors)
        self.leaves = [x.value for x in recorder.grads]
        self.single = isinstance(result, Tensor)

    def fits(self) -> bool:
        """Whether all that is not among the arguments is as it was when this was captured."""
        return self.replay.fits() and all(
            module.training is training for module, training in self.modes)

    def __call__(self, tensors: list[Tensor]) -> Any:
        found = self.replay.run(tensors)
        if self.single:
            return found[0]
        outputs = iter(found)
        return unflatten(self.structure, [
            next(outputs) if type(x) is Variable else x for x in self.slots])


def name_of(f: Any) -> str:
    """What a function is called in messages."""
    return getattr(f, "__qualname__", type(f).__name__)


def warn(message: str) -> None:
    """Warns at the line of the user."""
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def compiled(model: Any, fullgraph: bool, disable: bool) -> Any:
    """What `tensorlib.compile` gives."""
    if model is None:
        return lambda f: compiled(f, fullgraph, disable)
    if not callable(model):
        raise TypeError(f"compile: takes a function or a module, got {type(model).__name__}")
    return model if disable else Compiled(model, bool(fullgraph))
