"""`compile`: a function that is captured once for each kind of arguments, and replayed."""

import sys
import warnings
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from tensorlib._core.base.capture import current
from tensorlib._core.base.dtypes import get_default_dtype
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.function import Function
from tensorlib.autograd.modes import no_grad
from tensorlib.autograd.tree import Structure, flatten, unflatten
from tensorlib.batch import running_levels
from tensorlib.program.backward import Backward, dependents
from tensorlib.program.capturing import ReplayRecorder, capture
from tensorlib.program.control_gradients import visit_control
from tensorlib.program.executor import Machine, Mismatch
from tensorlib.program.interpreter import run_program
from tensorlib.program.model import OpCall, Variable
from tensorlib.program.passes import optimized
from tensorlib.program.plan import Unplanned, plan
from tensorlib.program.program import Program
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
        self.requires = [x.requires_grad for x in self.values]
        self.fed = [*program.inputs, *lasting]
        self.machine = plan(optimized(program.block.ops, wanted, self.fed),
                            dict(zip(self.fed, [*layouts, *self.values])), wanted)

    def fits(self, inputs: list[Tensor]) -> bool:
        """Whether what lasts is as it was when the call was captured."""
        return all(x.requires_grad is required
                   for x, required in zip(self.values, self.requires))

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        """The outputs for these inputs."""
        given = (*inputs, *self.values)
        if self.machine.is_running:            # on another thread, or further up on this one
            found: list[Tensor] = run_program(self.program, dict(zip(self.fed, given)), self.wanted)
            return found
        outputs: list[Tensor] = self.machine(given)
        return outputs


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
        self.places = {x: i for i, x in enumerate(self.fed)}

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        given = (*inputs, *self.values)
        made = _Node.apply(self, given, *[given[self.places[x]] for x in self.sources])
        return list(made) if isinstance(made, tuple) else [made]

    def gradients(self, given: list[Tensor]) -> list[Tensor]:
        """The gradients of the sources, for the roots' gradients and what was kept."""
        fed = [*self.starts, *self.saved, *self.direct]
        if self.backward is None or not self.backward.fits(tuple(given)):
            self.backward = plan(self.backward_calls, dict(zip(fed, given)), self.grads)
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
        self._traces: dict[Any, Any] = {}
        self._eager = False
        update_wrapper(self, f if hasattr(f, "__name__") else type(f), updated=())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_f"], name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Bound(self, instance)

    def __repr__(self) -> str:
        return f"compile({self._f!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._eager or current() is not None or running_levels():
            return self._f(*args, **kwargs)
        leaves, structure = flatten((args, kwargs))
        try:
            key = signature(self._f, leaves, structure)
            entry = self._traces.get(key)
        except TypeError:                               # an argument that is no key
            return self._f(*args, **kwargs)
        if entry is None or entry is not EAGER and not entry.fits(leaves):
            if len(self._traces) >= MOST_TRACES and entry is None:
                self._eager = True
                warn(f"compile: {name_of(self._f)} was captured for {MOST_TRACES} kinds of "
                     "arguments; it runs eagerly from now on")
                return self._f(*args, **kwargs)
            result, self._traces[key] = self._capture(args, kwargs, leaves)
            return result
        if entry is EAGER:
            return self._f(*args, **kwargs)
        try:
            return entry(leaves)
        except Mismatch:
            result, self._traces[key] = self._capture(args, kwargs, leaves)
            return result

    def _capture(self, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """What the function returns, and the entry that replays it."""
        program = Program()
        recorder = ReplayRecorder(program, captured_names(self._f), self._fullgraph)
        result = capture(self._f, args, kwargs, leaves, recorder, step_hooks())
        try:
            if recorder.why:
                raise Unplanned(recorder.why)
            return result, Entry(recorder, leaves, result)
        except Unplanned as error:
            if self._fullgraph:
                raise
            warn(f"compile: {name_of(self._f)} runs eagerly: {error}")
            return result, EAGER


class Bound:
    """A compiled method of an object."""

    def __init__(self, compiled: Compiled, instance: Any):
        self.compiled, self.instance = compiled, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.compiled(self.instance, *args, **kwargs)


EAGER: Any = object()        # in the place of an entry: what can't be captured


class Entry:
    """How one kind of call is replayed."""

    def __init__(self, recorder: ReplayRecorder, leaves: list[Any], result: Any):
        program = recorder.program
        recorder.put_grads()
        found, self.structure = flatten(result)
        made = [recorder.variable_of(x) if isinstance(x, Tensor) else x for x in found]
        self.slots = made
        wanted = [x for x in made if type(x) is Variable]
        lasting = [x for x in program.persistables()]
        seen: set[int] = set()
        self.taken = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)
                      and not (id(x) in seen or seen.add(id(x)))]
        layouts = [leaves[i] for i in self.taken]
        kind = Replay if recorder.swept or not any(
            isinstance(x, Tensor) and x.requires_grad for x in found) else Differentiable
        self.replay = kind(program, lasting, wanted, layouts)
        self.had_grad = [(x.value, False) for x in recorder.grads]

    def fits(self, leaves: list[Any]) -> bool:
        """Whether the call would do what was captured."""
        return self.replay.fits(leaves)

    def __call__(self, leaves: list[Any]) -> Any:
        outputs = iter(self.replay.run([leaves[i] for i in self.taken]))
        return unflatten(self.structure, [
            next(outputs) if type(x) is Variable else x for x in self.slots])


# ---- kinds of arguments --------------------------------------------------------------------------

def signature(f: Any, leaves: list[Any], structure: Structure) -> Any:
    """What two calls have in common that do the same operations. Raises: TypeError."""
    seen: dict[int, int] = {}
    parts: list[Any] = [is_grad_enabled(), get_default_dtype(), repr(structure)]
    for i, x in enumerate(leaves):
        if isinstance(x, Tensor):
            parts.append((tuple(x.shape), x.stride(), x.dtype, x.requires_grad, x.is_meta,
                          seen.setdefault(id(x), i)))
        else:
            hash(x)
            parts.append((type(x), x))
    if hasattr(f, "modules"):
        parts.append(tuple(module.training for module in f.modules()))
    return tuple(parts)


def step_hooks() -> tuple[Any, ...]:
    """What adds hooks to the steps of all optimisers, if these are in use."""
    optim = sys.modules.get("tensorlib.optim")
    if optim is None or not hasattr(optim, "optimizer"):
        return ()
    return (optim.optimizer.register_optimizer_step_pre_hook,
            optim.optimizer.register_optimizer_step_post_hook)


def name_of(f: Any) -> str:
    """What a function is called in messages."""
    return getattr(f, "__qualname__", type(f).__name__)


def warn(message: str) -> None:
    """Warns at the line of the user."""
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False,
            dynamic: bool | None = None, disable: bool = False) -> Any:
    """`model`, a function or a module, captured once for each kind of arguments and replayed.

    A kind is told by the structure of the arguments, the shapes, strides and dtypes of tensors and
    whether they require a gradient, and all other arguments by value. What a replay gives has the
    bits of the eager call; its gradient is one node of the graph. A training step with `backward()`
    and an optimiser's `step()` inside is captured whole: rates and counts of steps are read, and
    random numbers drawn, at each call. What the function does in Python, beside tensors, happens in
    the first call of each kind alone.

    What can't be captured (`x.item()`, `if x > 0`) runs eagerly, with one warning that says where;
    with `fullgraph=True` it is an error. Without a function, this is a decorator with options.

    >>> @tensorlib.compile
    ... def f(x):
    ...     return (x * 2).tanh().sum()
    >>> f(tensorlib.zeros(3)), f(tensorlib.zeros(3))
    (tensor(0.), tensor(0.))
    """
    if model is None:
        return lambda f: compile(f, fullgraph=fullgraph, dynamic=dynamic, disable=disable)
    if not callable(model):
        raise TypeError(f"compile: takes a function or a module, got {type(model).__name__}")
    return model if disable else Compiled(model, bool(fullgraph))


__all__ = ["OpCall", "compile"]
