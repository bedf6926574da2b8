"""`compile`: the trace cache, which captures a function once for each kind of arguments."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Set
from functools import partial, update_wrapper
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from tensorlib._core.base.garbage import without_collections
from tensorlib._core.graph import owners
from tensorlib._core.interpreters.subclasses import asks_for_all
from tensorlib._core.sweep.graph_reader import (
    ages_of_leaves, are_as_saved, are_released, savers_above, was_made_since,
)
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.capture.aliases import check_results, make_constants_anew
from tensorlib.program.capture.capturing import ReplayRecorder, capture
from tensorlib.program.capture.escapes import escaped
from tensorlib.program.capture.results import (
    objects_made, refuse_borrowed, refuse_by_age, refuse_to_return, refuse_views,
)
from tensorlib.program.capture.returned import flatten_result
from tensorlib.program.capture.trace import captured_names
from tensorlib.program.compiled.chains import chain_for
from tensorlib.program.compiled.checking import compared
from tensorlib.program.compiled.decorated import Decorated, undecorated
from tensorlib.program.compiled.linking import check_kept_gradients, is_linked, leaves_made
from tensorlib.program.compiled.replaying import Differentiable, Replay, Savers
from tensorlib.program.compiled.states import Undo
from tensorlib.program.guards.guarded import Guards
from tensorlib.program.guards.own_names import guard as guard_of_builtins
from tensorlib.program.guards.own_names import replaced
from tensorlib.program.guards.overlaps import Overlaps
from tensorlib.program.guards.signatures import Conditions, Signature, storage_of
from tensorlib.program.guards.slots import Slot, replaced_tensors
from tensorlib.program.guards.values import (
    MISSING, fields_of, in_class, is_mutable_value, items_of, members_of,
)
from tensorlib.program.ir.errors import CaptureError, ProgramError
from tensorlib.program.ir.model import Variable
from tensorlib.program.ir.nested import are_same
from tensorlib.program.passes import enabled
from tensorlib.program.passes.checks_first import checks_first
from tensorlib.program.passes.facts import undone_at_failure
from tensorlib.program.program import Program
from tensorlib.program.reads.graph_breaks import SplitFunction
from tensorlib.program.reads.local_variables import CannotSplit
from tensorlib.program.reads.recorder import ReadRecorder
from tensorlib.program.reads.reports import describe, guard_of_gradient, report_lines, why_not
from tensorlib.program.reads.sources import NoSource
from tensorlib.program.reads.tracebacks import without_frames
from tensorlib.program.run.dispatch import (
    UNDONE, Chooser, Dispatcher, Way, versions_in, views_in,
)
from tensorlib.program.run.plan import Unplanned

GIL_IS_ON = getattr(sys, "_is_gil_enabled", lambda: True)

MOST_TRACES = 16         # cached traces of a function; calls of further kinds run eagerly
MOST_REFUSED = 3         # kinds of calls that could not be replayed whole, before no more are tried
MOST_FAILURES = 3        # failed captures of a part of a function, before no more are tried
LEAST_CALLS = 3          # of a part, which costs more as a replay if it has fewer
UNCHANGED_BY_REPLAY = "optimizer_step", "set_grad"       # calls that a replay does no faster
MOST_CHANGES = 3         # captures in a row that were dropped, as the call changed what it had read


class Compiled(Dispatcher):
    """A compiled function: it replays calls of the kinds that it has captured."""

    def __init__(self, f: Callable[..., Any], fullgraph: bool,
                 options: dict[str, Any] | None = None, check: int = 0):
        self._f, self._fullgraph, self._options, self._check = f, fullgraph, options, check
        self._entries: list[Way] = []
        self._told: list[str] = []           # the reasons of all captures but the first
        self._parts: dict[int, Any] = {}     # the function in parts, by the line between them
        self._quiet = False                  # it is a part: the whole function has warned already
        self._definition: Any = None         # for a part: where it is defined
        self._said: set[str] = set()         # warnings that were given
        self._refused = 0                    # the number of kinds of calls that run in parts
        self._eager, self._changes = False, 0
        self._slots: dict[Any, Slot] | None = {}     # whose tensors are given; None: none may be
        update_wrapper(self, f if hasattr(f, "__name__") else type(f), updated=())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._f, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        f = self._f
        if type(f) is FunctionType:
            return self if instance is None else MethodType(self, instance)
        if type(f) is staticmethod or in_class(type(f), "__get__") is MISSING:
            return self
        found = f.__get__(instance, owner)           # other descriptors bind in their own way
        if type(found) is MethodType and found.__func__ is f:
            return MethodType(self, found.__self__)
        return self if found is f else found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._f, self._fullgraph, self._options, self._check)   # captures anew

    def __repr__(self) -> str:
        return f"compile({self._f!r})"

    def _capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an eager call, after capturing it as the entry for calls of this kind."""
        name = replaced()
        if name:
            self._say(f"eagerly: builtins.{name} was replaced, which the code of a capture calls")
            return self._f(*args, **kwargs)
        if not is_alone() or owners.modules.keep():
            return self._f(*args, **kwargs)
        if self._entries or self._changes:
            self._tell(args, kwargs)
        most = MOST_FAILURES if self._quiet and not any(
            x.replay or x.parts for x in self._entries) else MOST_TRACES
        if len(self._entries) >= most:
            self._eager = True
            if self._quiet:
                return self._f(*args, **kwargs)
            warn(f"compile: {name_of(self._f)} was captured for {MOST_TRACES} kinds of arguments; "
                 "it runs eagerly from now on")
            return self._f(*args, **kwargs)
        try:
            kind = Signature(args, kwargs)
        except RecursionError:                  # an argument contains itself
            return self._f(*args, **kwargs)
        recorder = ReplayRecorder(Program(), captured_names(self._f), self._fullgraph)
        tensors = kind.tensors_of(args, kwargs)
        if tensors is None or any(type(x) is Variable for x in kind.others):
            return self._f(*args, **kwargs)     # what differs from itself, or is of another program
        for x in kind.others:
            if in_class(type(x), "__del__") is not MISSING:     # not even the kind may keep it
                self._eager = self._quiet
                self._say(f"eagerly: an argument is a {type(x).__qualname__}, whose class has a "
                          "__del__, which a guard would delay")
                return self._f(*args, **kwargs)
        recorder.reads = ReadRecorder(recorder.is_inside, contained(args, kwargs))
        recorder.reads.root, _ = undecorated(root_of(self._f))
        if self._slots is not None:
            for way in self._entries:
                self._slots.update(replaced_tensors(way.conditions.guards) if way.replay else {})
            recorder.reads.slots = self._slots
            recorder.reads.meet_in_slot = recorder.earlier.meet_in_slot
        if kind.opaque:
            recorder.fail(f"an argument is an {kind.opaque}, whose elements a capture would keep; "
                          "pass a tensor of it")
        for x in tensors:
            if type(x) is not Tensor and asks_for_all(x):
                recorder.fail(f"an argument is a {type(x).__name__}, whose class has a "
                              "__torch_function__")
        with without_collections():             # nearly all new objects stay
            try:
                result = [self._f(*args, **kwargs) if recorder.why else
                          capture(self._f, args, kwargs, tensors, recorder)]
            except BaseException as error:
                without_frames(error)
                raise
            way = self._way(kind, recorder, (args, kwargs), tensors, result)
            recorder.forget()
        if way is not None:
            self._entries.insert(0, way)
        return result[0]

    def _way(self, kind: Signature, recorder: ReplayRecorder, given: Any,
             tensors: tuple[Tensor, ...], result: list[Any]) -> Way | None:
        """How calls of a kind run after one was captured; None if it changed what it read."""
        try:
            if recorder.why or recorder.reads.why:
                raise Unplanned(recorder.why or recorder.reads.why)
            now = kind.tensors_of(*given)
            if now is None or not are_same([*now], [*tensors]):
                raise Unplanned("it changes its arguments in Python")
            objects = set() if self._quiet else objects_made(result[0], given, recorder.reads)
            refuse_to_return(result[0], given, objects)
            earlier = recorder.earlier
            recorder.put_grads()
            refuse_borrowed(flatten_result(result[0], objects)[0], recorder.constants.values())
            earlier.take(flatten_result(result[0], objects)[0])
            tensors = (*tensors, *(grad for _, grad in earlier.given))
            guards = guards_of(recorder, tensors)
            read = [*recorder.reads.tensors.values(), *earlier.only_looked_at()]
            refuse_by_age(result[0], recorder.reads, objects)
            if self._quiet and recorder.writes.by_data:
                recorder.reads.at = next(iter(recorder.writes.by_data.values()))
                raise Unplanned("a part writes by way of `data` into what graphs may keep")
            if self._quiet:
                refuse_views(result[0], [*tensors, *read])
            recorder.reads.forget()
            broken = guards.broken()
            waits = (broken is not None and not self._fullgraph
                     and self._changes + 1 < MOST_CHANGES)
            way = way_for(kind, recorder, tensors, result, objects, guards, read,
                          flags_of(self._options), broken is None, waits)
            if way is None:
                self._changes += 1
                if self._changes < MOST_CHANGES:
                    return None                 # the next call is captured
                raise Unplanned(f"each call changes {describe(broken)}")
            guards.all.extend(guard_of_gradient(x) for x in recorder.graded)
            kind.bare = tuple(recorder.bare_arguments)
            kind.take_more(earlier.given)
            for hit in recorder.reads.hits:
                hit.counts = True                # replays of it are counted from now on
            self._changes = 0
            self._eager = self._quiet and sum(
                call.type not in UNCHANGED_BY_REPLAY for call in recorder.block.ops) < LEAST_CALLS
            return way
        except (Unplanned, CaptureError, ProgramError) as error:
            recorder.reads.forget()
            if recorder.earlier.in_slots:        # it may do with the tensors that there are
                self._slots = None
                return None
            if self._fullgraph:
                raise CaptureError(f"compile: {name_of(self._f)}: {error}") from None
            way = Way(kind, Conditions([], [], []))       # calls of this kind run in parts
            way.why, reads = str(error), recorder.reads
            way.parts = None if reads.of_frames else self._in_parts(reads.at, str(error))
            how = "eagerly" if way.parts is None else "in parts"
            self._refused += way.parts is not None
            if self._quiet or self._refused == MOST_REFUSED:
                self._apart = way.parts
            self._say(f"{how}: {error}{line_of(self._f, str(error))}", 5)
            return way

    def _say(self, text: str, stacklevel: int = 4) -> None:
        """Warns once of how the function runs. Raises: CaptureError if `fullgraph` forbids it."""
        if self._fullgraph:
            raise CaptureError(f"compile: {name_of(self._f)}: {text.partition(': ')[2]}")
        if not self._quiet and text not in self._said:
            self._said.add(text)
            warn(f"compile: {name_of(self._f)} runs {text}", stacklevel)

    def _in_parts(self, line: int, why: str) -> Any:
        """The function split into parts around a line; None if it can't be split there."""
        whole = root_of(self._f)
        f, modes = undecorated(whole)
        if type(f) is not FunctionType:
            return None
        line = line or line_named(f, why)
        if line not in self._parts:
            try:
                self._parts[line] = SplitFunction(f, line, self._part, self._definition)
            except (NoSource, CannotSplit, SyntaxError):
                self._parts[line] = None
        parted = self._parts[line]
        if parted is not None and modes:
            parted = Decorated(parted, modes)
        if parted is None or whole is self._f:
            return parted
        return InParts(self._f, whole, parted)

    def _part(self, f: Callable[..., Any], definition: Any) -> "Compiled":
        """A part of the function, compiled."""
        made = Compiled(f, False, self._options, self._check)
        made._quiet, made._definition = True, definition
        return made

    def _may_replay(self) -> bool:
        """Whether calls are replayed, at least in part; True before the first call."""
        return not self._eager and (not self._entries or any(
            way.is_replayed() or way.parts is not None and way.parts.may_replay()
            for way in self._entries))

    def _tell(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notes why a call other than the first one is captured."""
        why = "; ".join(dict.fromkeys(why_not(way, args, kwargs) for way in self._entries)) or (
            "the call before it changed what it read")
        self._told.append(why)
        del self._told[:-MOST_TRACES]
        if "recompiles" in os.environ.get("TENSORLIB_LOGS", "").split(","):
            sys.stderr.write(f"compile: {name_of(self._f)} is captured again: {why}\n")

    def _checked(self, way: Way, tensors: tuple[Tensor, ...], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> Any:
        """The result of the eager call, after comparing it with the replay."""
        def replayed() -> Any:
            found = way.run(tensors)
            return self._f(*args, **kwargs) if found is UNDONE else found
        return compared(name_of(self._f), replayed, lambda: self._f(*args, **kwargs),
                        [*tensors, *(x.value for x in way.replay.lasting if not x.fixed)],
                        way.replay.calls)

    def explain(self, *args: Any, **kwargs: Any) -> None:
        """Calls the function, and prints how that ran: what is guarded and the line that read
        it, what refuses, and why it was captured again, if it was.

        >>> scale = 2
        >>> tensorlib.compile(lambda x: x * scale).explain(tensorlib.ones(2))
        <lambda>: replayed; 1 kind of calls is captured
        guarded beside the arguments:
          'scale' of a dict, <doctest...>:1
        """
        self(*args, **kwargs)
        print("\n".join(report_lines(name_of(self._f), self._entries, self._told, args, kwargs)))


def is_alone() -> bool:
    """Whether no other thread runs Python code in parallel with this one. A capture visits all
    objects, and so could meet one that another thread is still making."""
    return GIL_IS_ON() or len(sys._current_frames()) == 1


class InParts(Chooser):
    """A module, or a method of an object, whose function runs in parts while it stays the same."""

    def __init__(self, whole: Any, f: FunctionType, parted: SplitFunction):
        self.whole, self.f, self.parted = whole, f, parted

    def may_replay(self) -> bool:
        """Whether some part is replayed, or was not called yet."""
        return self.parted.may_replay()

    def _choice(self) -> Any:
        whole = self.whole
        if type(whole) is MethodType:
            return MethodType(self.parted._choice(), whole.__self__)
        if root_of(whole) is not self.f or vars(whole).get("_hooks") or (
                owners.modules.hooks_of_all):
            return whole
        return MethodType(self.parted._choice(), whole)


def root_of(f: Any) -> Any:
    """The function that a call runs: the `forward` of a module, the function of a method."""
    if isinstance(f, owners.modules.base):
        usual = in_class(type(f), "__call__") is in_class(owners.modules.base, "__call__")
        return in_class(type(f), "forward") if usual and "forward" not in vars(f) else None
    return f.__func__ if type(f) is MethodType else f


def line_named(f: FunctionType, why: str) -> int:
    """The line in the file of a function that a message names; if it names none, the last one."""
    found = re.findall(r"([^ /]+\.py):(\d+)", why)
    path = Path(f.__code__.co_filename).name
    lines = [int(line) for name, line in found if name == path]
    return lines[-1] if lines else max(
        (line for _, _, line in f.__code__.co_lines() if line is not None), default=0)


def guards_of(recorder: ReplayRecorder, tensors: tuple[Tensor, ...]) -> Guards:
    """The guards of what a function read, and of the hooks of the modules that ran."""
    hooks = [vars(vars(x)["_hooks"]) for x in recorder.modules.values()
             if vars(x).get("_hooks") is not None]
    if recorder.modules:
        hooks.append(vars(owners.modules.hooks_of_all))
    return Guards([*recorder.reads.guards(tensors), recorder.operators, guard_of_builtins], hooks)


def refuse_unseen(recorder: ReplayRecorder, tensors: tuple[Tensor, ...],
                  read: list[Tensor]) -> None:
    """Raises: Unplanned for a captured tensor that no instrumented code read, unless it is the base
    of one that was read or given. Compiled code may have made it, and may make another one in the
    next call.
    """
    seen = {id(x) for y in (*tensors, *read) for x in (y, y._base)}
    for x in recorder.program.persistables():
        if id(x.value) not in seen and not was_made_since(x.value, recorder.epoch):
            at = next((f", {call.line}" for call in recorder.block.ops
                       if any(x is y for y in call.reads())), "")
            raise Unplanned(f"a tensor of shape {tuple(x.shape)} that no code was seen to read or "
                            f"to make can't be captured{at}")


def contained(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Any]:
    """The arguments, and objects in them, that a signature compares by their contents."""
    waiting: list[Any] = [args, kwargs]
    found: dict[int, Any] = {}
    for x in waiting:
        kind = type(x)
        if issubclass(kind, Tensor):
            found[id(x)] = x
            continue
        fields, is_container = fields_of(x), issubclass(kind, (dict, tuple, list))
        if fields is not None or is_container:
            if id(x) not in found:
                found[id(x)] = x
                waiting += (fields or {}).values()
                if is_container:
                    waiting += items_of(x).values() if issubclass(kind, dict) else members_of(x)
        elif is_mutable_value(x):
            found[id(x)] = x
    return found


def way_for(kind: Signature, recorder: ReplayRecorder, tensors: tuple[Tensor, ...],
            result: list[Any], objects: Set[int], guards: Guards, read: list[Tensor],
            flags: dict[str, bool], holds: bool, waits: bool) -> Way | None:
    """How calls of a kind are replayed, after the capture of one that returned `result[0]`.

    objects: the ids of objects in the result that each replay makes anew. read: the captured
    tensors. holds: tells whether what the call read is unchanged; otherwise nothing is planned, and
    the result is None. waits: a tensor that the function stored outside may be in a cache, where
    the next call finds it.
    Raises: Unplanned, CaptureError, ProgramError if they can't be replayed.
    """
    found, structure = flatten_result(result[0], objects)
    slots = make_constants_anew(recorder.block, [
        recorder.variable_of(x) if isinstance(x, Tensor) else x for x in found])
    recorder.tell_apart()
    refuse_unseen(recorder, tensors, read)
    before = {id(x) for x in read}
    if any(type(x) is Variable and id(tensor) in before and not x.persistable
           for x, tensor in zip(slots, found)):
        raise Unplanned("it returns a tensor from outside that lies where one that it made does")
    made = leaves_made(recorder, tensors, found)
    linked = is_linked(recorder, tensors, slots, found, made.values())
    chain = chain_for(recorder, slots, linked, made)
    if any(isinstance(x, Tensor) and x.requires_grad and x.is_leaf
           and was_made_since(x, recorder.epoch) for x in found):
        raise Unplanned("it returns a leaf that it makes, of which each call makes another")
    kept = escaped(recorder, result, objects, found)      # no local variable here holds a tensor
    if kept is not None and not waits:
        raise Unplanned("a tensor is kept outside of it that was made by " + next(
            f"{call.type}, {call.line}" for call in recorder.block.ops
            if any(x is kept for x in call.writes())))
    nodes = [x.grad_fn for x in found if isinstance(x, Tensor) and x.grad_fn is not None]
    if not are_as_saved(nodes, recorder.begun, {*recorder.writes.by_data}):
        raise Unplanned("it writes over what a gradient of its result needs")
    all_gone = are_released(nodes, recorder.begun)
    del nodes
    if not holds:
        return None
    wanted = list(dict.fromkeys(x for x in slots if type(x) is Variable))
    roots = {x: tensor for x, tensor in zip(slots, found)
             if type(x) is Variable and tensor.requires_grad}
    *savers, leaves = savers_above([*roots.values()], recorder.begun)
    ready = partial(Differentiable, savers=Savers([*roots], *savers), all_gone=all_gone,
                    ages=ages_of_leaves([*roots.values()], recorder.begun),
                    own={made[id(x)]: x for x in leaves if id(x) in made}) if linked else Replay
    del roots, leaves
    if len(recorder.program.inputs) != len(tensors):
        raise Unplanned("a gradient from before the call is asked for where nobody sees it")
    lasts = recorder.program.persistables()
    lie = map(storage_of, (*tensors, *(x.value for x in lasts)))
    calls, asked = checks_first(list(recorder.block.ops),
                                dict(zip((*recorder.program.inputs, *lasts), lie)))
    planned = recorder.program.inputs, tensors, lasts, wanted, flags
    replay = chain.made(ready, recorder.block, calls, planned, all_gone)
    inference = check_results(slots, found, replay, tensors)
    check_kept_gradients(recorder, found)
    places, leaves = {x: i for i, x in enumerate(wanted)}, slots
    given = (*tensors, *replay.values)
    written = {i for i, x in enumerate(given)
               if storage_of(x) in recorder.writes.lasting}
    changing = undone_at_failure(replay.calls, asked) or replay.changing
    if changing and replay.machine.beyond:
        raise Unplanned("it writes before a check of values, and reaches beyond its arguments")
    slots = [places[x] if type(x) is Variable else -1 for x in slots]
    replay.set_versions(versions_in(slots, found, given))
    known = {id(x) for x in given}
    met = [x for x in read if id(x) not in known]
    return Way(
        kind, Conditions(replay.values, recorder.leaves, recorder.bare, guards, met),
        replay, None if linked else replay.machine, structure,
        slots, [None if place >= 0 else x for place, x in zip(slots, leaves)],
        Overlaps(tensors, replay.values, written, read, met),
        inference, views_in(slots, found, given), None if linked else replay.versions,
        Undo(changing, written, replay.values) if changing else None)


def name_of(f: Any) -> str:
    """The name of a function in messages."""
    return getattr(f, "__qualname__", type(f).__name__)


def line_of(f: Any, why: str) -> str:
    """Where a function begins, for a message that names no line yet."""
    code = getattr(f, "__code__", None) or getattr(getattr(f, "forward", None), "__code__", None)
    if code is None or re.search(r"\.py:\d", why):
        return ""
    return f"; {Path(code.co_filename).name}:{code.co_firstlineno}"


def warn(message: str, stacklevel: int = 3) -> None:
    """Warns at a line of user code, `stacklevel` frames up."""
    warnings.warn(message, RuntimeWarning, stacklevel=stacklevel)


def flags_of(options: dict[str, Any] | None) -> dict[str, bool]:
    """Which passes run: the enabled ones, changed as the options say."""
    return {name: bool((options or {}).get(name, on)) for name, on in enabled.items()}
