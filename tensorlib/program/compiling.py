"""`compile`: the trace cache, which captures a function once for each kind of arguments."""

import re
import warnings
from collections.abc import Callable
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

from tensorlib._core.base.garbage import without_collections
from tensorlib._core.graph import owners
from tensorlib._core.sweep.graph_reader import are_as_saved
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten
from tensorlib.program.aliases import check_results, make_constants_anew
from tensorlib.program.backward import dependents
from tensorlib.program.capturing import ReplayRecorder, capture
from tensorlib.program.dispatch import Dispatcher, Way
from tensorlib.program.errors import CaptureError, ProgramError
from tensorlib.program.escapes import escaped
from tensorlib.program.model import Variable
from tensorlib.program.nested import are_same
from tensorlib.program.passes import enabled
from tensorlib.program.plan import Unplanned
from tensorlib.program.program import Program
from tensorlib.program.replaying import Differentiable, Replay
from tensorlib.program.reads.recorder import Reads
from tensorlib.program.reads.reports import described, guard_of_gradient
from tensorlib.program.results import refuse_to_return
from tensorlib.program.signatures import Conditions, Overlaps, Signature, storage_of
from tensorlib.program.trace import captured_names
from tensorlib.program.guarded import Guards
from tensorlib.program.values import fields_of, is_settled

MOST_TRACES = 16         # of one compiled function; beyond these it runs eagerly
MOST_CHANGES = 3         # captures in a row that were not kept, since the call changed what it read


class Compiled(Dispatcher):
    """What `compile` gives: a function that replays what it did before."""

    def __init__(self, f: Callable[..., Any], fullgraph: bool,
                 options: dict[str, Any] | None = None):
        self._f, self._fullgraph, self._options = f, fullgraph, options
        self._entries: list[Way] = []
        self._eager, self._changes = False, 0
        update_wrapper(self, f if hasattr(f, "__name__") else type(f), updated=())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._f, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._f, self._fullgraph, self._options)     # a copy captures anew

    def __repr__(self) -> str:
        return f"compile({self._f!r})"

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
        if tensors is None or any(type(x) is Variable for x in kind.others):
            return self._f(*args, **kwargs)     # what differs from itself, or is of another program
        if kind.opaque:
            recorder.fail(f"an argument is an {kind.opaque}, whose elements a capture would keep; "
                          "pass a tensor of it")
        recorder.reads = Reads(recorder.is_inside, contained(args, kwargs))
        result = [capture(self._f, args, kwargs, tensors, recorder)]
        try:
            with without_collections():
                if recorder.why or recorder.reads.why:
                    raise Unplanned(recorder.why or recorder.reads.why)
                now = kind.tensors_of(args, kwargs)
                if now is None or not are_same(now, tensors):
                    raise Unplanned("it changes its arguments in Python")
                refuse_to_return(result[0], (args, kwargs))
                guards = guards_of(recorder, tensors)
                recorder.reads.forget()
                way = way_for(kind, recorder, tensors, result, guards, flags_of(self._options))
                broken = guards.broken()
                if broken is not None:
                    self._changes += 1
                    if self._changes < MOST_CHANGES:
                        return result[0]        # the next call is captured
                    raise Unplanned(f"each call changes {described(broken)}")
                guards.all.extend(guard_of_gradient(x) for x in recorder.graded)
                self._changes = 0
        except (Unplanned, CaptureError, ProgramError) as error:
            if self._fullgraph:
                raise CaptureError(f"compile: {name_of(self._f)}: {error}") from None
            warn(f"compile: {name_of(self._f)} runs eagerly: {error}{line_of(self._f, str(error))}")
            way = Way(kind, Conditions([], [], []))       # all calls of this kind run eagerly
        self._entries.insert(0, way)
        return result[0]


def guards_of(recorder: ReplayRecorder, tensors: list[Tensor]) -> Guards:
    """The guards of what a function read, and of the hooks of the modules that ran."""
    hooks = [vars(vars(x)["_hooks"]) for x in recorder.modules.values()
             if vars(x).get("_hooks") is not None]
    if recorder.modules:
        hooks.append(vars(owners.modules.hooks_of_all))
    return Guards(recorder.reads.guards(tensors), hooks)


def contained(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Any]:
    """The arguments, and what is in them, that a signature compares by what is in it."""
    waiting: list[Any] = [args, kwargs]
    found: dict[int, Any] = {}
    for x in waiting:
        if isinstance(x, Tensor):
            found[id(x)] = x
            continue
        parts = x if isinstance(x, dict) else fields_of(x)
        if parts is not None or isinstance(x, (tuple, list)):
            if id(x) not in found:
                found[id(x)] = x
                waiting += x if parts is None else parts.values()
        elif is_settled(x):
            found[id(x)] = x
    return found


def way_for(kind: Signature, recorder: ReplayRecorder, tensors: list[Tensor],
            result: list[Any], guards: Guards, flags: dict[str, bool]) -> Way:
    """How calls of a kind are replayed, after one was captured that gave `result[0]`.

    Raises: Unplanned, CaptureError, ProgramError where they can't be.
    """
    recorder.put_grads()
    recorder.tell_apart()
    found, structure = flatten(result[0])
    slots = make_constants_anew(recorder.block, [
        recorder.variable_of(x) if isinstance(x, Tensor) else x for x in found])
    linked = is_linked(recorder, tensors, slots, found)
    kept = escaped(recorder, result, found)
    if kept is not None:
        raise Unplanned("a tensor is kept outside of it that was made by " + next(
            f"{call.type}, {call.line}" for call in recorder.block.ops
            if any(x is kept for x in call.writes())))
    nodes = [x.grad_fn for x in found if isinstance(x, Tensor) and x.grad_fn is not None]
    if not are_as_saved(nodes, recorder.epoch, recorder.writes.by_data):
        raise Unplanned("it writes over what a gradient of its result needs")
    del nodes
    wanted = list(dict.fromkeys(x for x in slots if type(x) is Variable))
    made = Differentiable if linked else Replay
    replay = made(recorder.block, list(recorder.block.ops), recorder.program.inputs, tensors,
                  recorder.program.persistables(), wanted, flags)
    inference = check_results(slots, found, replay, tensors)
    places = {x: i for i, x in enumerate(wanted)}
    return Way(
        kind, Conditions(replay.values, recorder.leaves, recorder.bare, guards),
        replay, None if linked else replay.machine, structure,
        [places[x] if type(x) is Variable else -1 for x in slots],
        [None if type(x) is Variable else x for x in slots],
        Overlaps(tensors, replay.values,
                 {i for i, x in enumerate((*tensors, *replay.values))
                  if storage_of(x) in recorder.writes.lasting}),
        inference)


def is_linked(recorder: ReplayRecorder, tensors: list[Tensor], slots: list[Any],
              found: list[Any]) -> bool:
    """Whether a result is to have a gradient. Raises: Unplanned where one has it as a leaf of its
    own, or has none though a replay would give it one."""
    inputs, lasting = recorder.program.inputs, recorder.program.persistables()
    sources = [x for x, like in zip((*inputs, *lasting), (*tensors, *(x.value for x in lasting)))
               if like.requires_grad]
    depends = dependents(recorder.block.ops, sources)
    given = {*inputs, *lasting}
    linked = False
    for x, tensor in zip(slots, found):
        if type(x) is Variable and x not in given:
            if (x in depends) != tensor.requires_grad:
                raise Unplanned("what it returns requires a gradient in another way than a replay "
                                "would give it")
            linked = linked or tensor.requires_grad
    return linked


def name_of(f: Any) -> str:
    """What a function is called in messages."""
    return getattr(f, "__qualname__", type(f).__name__)


def line_of(f: Any, why: str) -> str:
    """Where a function begins, for a message that has no line yet."""
    code = getattr(f, "__code__", None) or getattr(getattr(f, "forward", None), "__code__", None)
    if code is None or re.search(r"\.py:\d", why):
        return ""
    return f"; {Path(code.co_filename).name}:{code.co_firstlineno}"


def warn(message: str) -> None:
    """Warns at the line of the user."""
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def flags_of(options: dict[str, Any] | None) -> dict[str, bool]:
    """Which passes run: those that are enabled, or else as the options say."""
    return {name: bool((options or {}).get(name, on)) for name, on in enabled.items()}
