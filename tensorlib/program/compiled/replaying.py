"""Replay of a captured program: without a graph, or as one node of the caller's graph."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from threading import Lock
from typing import Any

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.sweep.graph_reader import gradient_place
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import set_grad_enabled
from tensorlib.program.compiled.recomputation import AfterWrites, Gone, Writes, are_as_saved
from tensorlib.program.compiled.rebuilt import number_of
from tensorlib.program.compiled.replay_node import Links
from tensorlib.program.differentiation.backward import Backward, dependents
from tensorlib.program.differentiation.control_gradients import argument_list, visit_control
from tensorlib.program.ir.call_types import is_draw, record_of
from tensorlib.program.ir.errors import Busy, ProgramError
from tensorlib.program.ir.interpreter import run_call
from tensorlib.program.ir.model import Block, OpCall, Variable, apart, inner_calls, place_of
from tensorlib.program.passes import optimized
from tensorlib.program.passes.dead_code import without_dead
from tensorlib.program.passes.facts import changes, values_read, with_inputs
from tensorlib.program.passes.recompute import recomputed_parts
from tensorlib.program.run.plan import Unplanned
from tensorlib.program.run.running_control import run_control
from tensorlib.program.run.schedule import Lines
from tensorlib.program.run.segments import machine_for

MAKING = Lock()           # held while a backward part is added to a block


class Replay:
    """Calls of a block, planned to run again on tensors of the same kind.

    given: the variables of the inputs. layouts: tensors with the layouts of their values. lasting:
    the variables of captured tensors. flags: which passes run, as in `passes.enabled`. outdone:
    eager calls cost less than replays, as in `Links`. changing: calls with effects that are undone
    if a run fails. versions: those of results that the call wrote to, as in `versions_in`.
    Raises: Unplanned.
    """

    outdone = False
    changing: list[OpCall] = []
    versions: list[tuple[int, int]] = []

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable],
                 flags: dict[str, bool]):
        self.block, self.calls, self.given, self.wanted = block, calls, given, wanted
        self.lasting = lasting
        self.values: list[Any] = [x.value for x in lasting]
        self.fed = [*given, *lasting]
        self.machine = machine_for(optimized(calls, wanted, self.fed, flags),
                                   dict(zip(self.fed, [*layouts, *self.values])), wanted)

    def run(self, inputs: Sequence[Tensor], retries: bool = False) -> list[Any] | None:
        """The wanted values for these inputs. If the run fails before it has changed anything, and
        the caller `retries` with an eager call, which raises the proper error: None."""
        return self.values_for((*inputs, *self.values), retries)

    def set_versions(self, versions: list[tuple[int, int]]) -> None:
        """Notes the versions of the results."""
        self.versions = versions

    def values_for(self, given: tuple[Any, ...], retries: bool = False) -> list[Any] | None:
        """`run`, for the inputs followed by the captured tensors."""
        if not self.machine.is_running:        # on another thread, or in an outer call on this one
            try:
                outputs: list[Any] | None = self.machine.run(given, retries)
                return outputs
            except Busy:                       # another thread has just begun to use it
                pass
        return run_calls(self.calls, dict(zip(self.fed, given)), self.wanted)


def run_calls(calls: list[OpCall], values: dict[Variable, Any],
              wanted: list[Variable]) -> list[Any]:
    """The wanted values of calls that run one by one, for when a machine is busy or can't run."""
    return Lines(calls, values, wanted)(values, wanted)


class Savers:
    """The nodes of the eager graph that saved values, as `savers_above` finds them: their names,
    and sets of them as the bits of ints. gone: those whose values were released."""

    def __init__(self, roots: Sequence[Variable] = (), names: Sequence[str] = (), gone: int = 0,
                 tables: Sequence[Mapping[Any, int]] = ()):
        self.names, self.gone, self.tables = names, gone, dict(zip(roots, tables))

    def between(self, root: Variable, place: Any) -> int:
        """Those on paths from a result to a place in the graph."""
        return self.tables.get(root, {}).get(place, 0)

    def leads(self, root: Variable, place: Any) -> bool:
        """Whether there is a path from a result to a place; True if that is unknown."""
        return root not in self.tables or place in self.tables[root]


class Differentiable(Replay):
    """A replay whose results have gradients: one node in the caller's graph.

    savers: the nodes of the eager call's graph that saved values. all_gone: all of these values
    were released. own: the leaves that the captured call made. ages: those of its leaves, as
    `ages_of_leaves` gives them. places: places of inputs in the graph, where `layouts` lack them.
    """

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable],
                 flags: dict[str, bool], savers: Savers | None = None,
                 all_gone: bool = False, own: Mapping[Variable, Tensor] | None = None,
                 ages: Mapping[Any, int] | None = None,
                 places: Mapping[Variable, Any] | None = None):
        self.flags, self.all_gone, self.own = flags, all_gone, own or {}
        self.pullbacks: dict[Any, Pullback] = {}
        self.after: dict[Any, list[bool]] = {}     # a cache of `needed_after`
        self.before: dict[int, Variable] = {}      # gradients of other nodes, by source
        calls = apart(calls)              # their blocks will also return what the gradients need
        fed = {**dict(zip(given, layouts)), **{x: x.value for x in lasting}}
        places = self.find_sources(fed, places or {})
        self.block, self.depends = block, dependents(calls, self.all_sources)
        self.find_roots(calls, [x for x in wanted if x not in fed])
        backward = self.find_gradients(calls)
        self.find_ways(savers or Savers(), places)
        self.copies: dict[Variable, Variable] = {}
        if flags["recompute"]:
            calls, backward, self.copies = recomputed_parts(
                calls, backward, [*wanted, *self.grads], [*given, *lasting])
        self.find_saved(calls, backward, fed)
        self.whole_pullback = Pullback(
            backward, [*self.starts, *self.saved, *self.direct], self.grads, flags)
        self.plan_again(calls)
        made = [x for x in self.sources if x not in fed]
        super().__init__(block, calls, given, layouts, lasting,
                         [*wanted, *self.saved, *self.drawn, *made], flags)
        place = {x: i for i, x in enumerate([*self.fed, *made])}
        result = {x: i for i, x in enumerate(wanted)}
        self.links = Links(len(wanted), len(made), [result[x] for x in self.roots],
                           [place[x] for x in self.sources], [x in self.own for x in self.sources],
                           [place[x] for x in self.direct],
                           [place[x] for x in self.again], [place.get(x, -1) for x in wanted],
                           self.several(calls),
                           [ages.get(places[x][0], -1) for x in self.sources] if ages else [])

    def find_sources(self, fed: Mapping[Variable, Tensor],
                     places: Mapping[Variable, Any]) -> dict[Variable, Any]:
        """Finds the leaves of the captured call; their places in its graph."""
        likes = {x: like for x, like in fed.items()
                 if like is not None and like.requires_grad} | self.own
        found = {x: places.get(x) or gradient_place(like) for x, like in likes.items()}
        # in the order in which an eager call makes the nodes of leaves, and calls their hooks
        self.all_sources = sorted(likes, key=lambda x: number_of(found[x][0]))
        return found

    def find_roots(self, calls: list[OpCall], made: list[Variable]) -> None:
        """Finds which results have gradients, and names the variables of these."""
        self.roots = [x for x in made if x in self.depends]
        roots = set(self.roots)
        # whether gradients of other roots pass through this one
        self.is_passed = [len(roots & dependents(calls, [x])) > 1 for x in self.roots]
        self.starts = [self.block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
                       for x in self.roots]

    def find_gradients(self, calls: list[OpCall]) -> list[OpCall]:
        """Finds the gradients of the sources that have one; the calls that compute them.

        Raises: Unplanned.
        """
        self.in_parts = not any(call.blocks() for call in calls)
        if not self.in_parts:                # check that each root can have a gradient by itself
            for start in self.starts:
                self.backward_part(calls, [g if g is start else None for g in self.starts], {})
        backward, totals = self.backward_part(calls, self.starts, {})
        self.sources = [x for x, g in zip(self.all_sources, totals) if g is not None]
        self.grads = [g for g in totals if g is not None]
        return backward

    def find_ways(self, savers: Savers, places: Mapping[Variable, Any]) -> None:
        """Finds the nodes of the eager graph on the paths from results to sources."""
        self.on_ways = [[savers.between(root, places[x]) for x in self.sources]
                        for root in self.roots]
        self.leads = [[not self.in_parts or savers.leads(root, places[x]) for x in self.sources]
                      for root in self.roots]         # another branch may have other paths
        self.on_any_way = reduce(or_, (each for row in self.on_ways for each in row), 0)
        self.savers = savers.names
        self.gone = savers.gone & self.on_any_way         # released by a sweep within the call

    def find_saved(self, calls: list[OpCall], backward: list[OpCall],
                   fed: Mapping[Variable, Any]) -> None:
        """Finds what the backward part reads: values that are saved, and what is fed anyway."""
        written = {x for call in calls for x in call.writes()}
        read = dict.fromkeys(x for call in backward for x in values_read(call))
        self.saved = [x for x in read if x in written and x not in fed]
        self.direct = [x for x in read if x in fed]
        self.backward = backward
        self.positions = {x for x in read if not has_gradients(x.dtype)}
        again = set(self.copies.values())
        self.again_calls = [call for call in backward if not again.isdisjoint(call.writes())]

    @property
    def outdone(self) -> bool:            # type: ignore[override]
        return bool(self.links.outdone)

    def run(self, inputs: Sequence[Tensor], retries: bool = False) -> list[Any] | None:
        results: list[Any] | None = self.links.run(self, (*inputs, *self.values), retries)
        return results

    def gradients(self, grads: list[Tensor | None], values: list[Any], kept: Any,
                  before: dict[int, Tensor], wanted: tuple[bool, ...]) -> list[Any]:
        """The wanted gradients of the sources.

        grads: those of the roots. values: what the node saved. before: for sources used several
        times, the gradient so far, to which each use is added in turn.
        """
        n, pullback = len(self.saved), self.pullback_for(grads, before, wanted)
        found: list[Any] = pullback.run([
            *grads, *values[:n], *values[n + len(self.drawn):], *before.values()])
        if not pullback.plannable:
            self.links.outdone = True
        return found

    def pullback_for(self, grads: list[Tensor | None], before: Collection[int],
                     wanted: tuple[bool, ...]) -> "Pullback":
        """The backward part for the roots that have a gradient and the wanted sources."""
        if not self.in_parts:
            wanted = (True,) * len(wanted)
        is_whole = not before and False not in wanted
        for g in grads:                    # `None in grads` would compare tensors
            is_whole = is_whole and g is not None
        if is_whole:
            return self.whole_pullback
        return self.pullback(tuple([g is not None for g in grads]), tuple(before), wanted)

    def asked(self, grads: list[Tensor | None], wanted: tuple[bool, ...]) -> int:
        """The bits of the nodes of the eager graph on paths from results whose gradients arrived to
        sources whose gradients are wanted."""
        if all(wanted) and not any(g is None for g in grads):
            return self.on_any_way
        return reduce(or_, (each for g, row in zip(grads, self.on_ways) if g is not None
                            for is_wanted, each in zip(wanted, row) if is_wanted), 0)

    def kept_by_node(self, sizes: list[int]) -> list[Variable]:
        """For each tensor that the node keeps the variable that it belongs to.

        sizes: the number of tensors of each saved value, if some are stacks; else [].
        """
        values = [*self.saved, *self.drawn]
        each = [x for x, size in zip(values, sizes) for _ in range(size)] if sizes else values
        return [*each, *self.direct]

    def needed(self, grads: list[Tensor | None], before: Collection[int],
               wanted: tuple[bool, ...], sizes: list[int]) -> list[bool]:
        """For each tensor that the node keeps, whether the wanted gradients need it."""
        read = self.pullback_for(grads, before, wanted).read
        return [x in read for x in self.kept_by_node(sizes)]

    def reached(self, grads: list[Tensor | None], before: dict[int, Tensor],
                wanted: tuple[bool, ...]) -> frozenset[int]:
        """The indices of the calls whose gradients a backward part computes from kept tensors, on
        paths from results whose gradients arrived to sources whose gradients are wanted."""
        pullback = self.pullback_for(grads, before, wanted)
        if pullback.reached is None:
            depends = self.depends_on(wanted if self.in_parts else ())
            ways = {x for x, g in zip(self.roots, grads) if g is not None} & depends
            found: set[int] = set()
            for i, call in reversed(list(enumerate(self.calls))):
                if not ways.isdisjoint(call.writes()):
                    ways |= depends.intersection(call.reads())
                    if not pullback.read.isdisjoint((*call.reads(), *call.writes())):
                        found.add(i)
            pullback.reached = frozenset(found)
        return pullback.reached

    def depends_on(self, wanted: tuple[bool, ...]) -> set[Variable]:
        """The variables that depend on sources whose gradients are wanted."""
        return self.depends if all(wanted) else dependents(
            self.calls, [x for x, is_wanted in zip(self.sources, wanted) if is_wanted])

    def needed_after(self, ran: frozenset[int], sizes: list[int]) -> list[bool]:
        """For each tensor that the node keeps, whether it may be needed after the gradients of the
        calls in `ran`: for those of other calls, or to repeat the call. Positions always are, since
        eager nodes do not release them."""
        place = ran, tuple(sizes)
        if place not in self.after:
            read = {x for i, call in enumerate(self.calls) if i not in ran
                    and not self.depends.isdisjoint(call.writes())
                    for x in (*call.reads(), *call.writes())}
            read.update(self.positions, self.kept, self.drawn)
            self.after[place] = [x in read for x in self.kept_by_node(sizes)]
        return self.after[place]

    def named(self, error: RuntimeError, sizes: list[int]) -> RuntimeError:
        """An error about a saved value, with the name of the operation that would have saved it."""
        number = re.search(r"saved tensor (\d+) of compiled", str(error))
        if number is not None:
            keeper = keeper_of(self.kept_by_node(sizes)[int(number[1])], self.backward)
            error.args = (str(error).replace(number[0], keeper or number[0]),)
        return error

    def several(self, calls: list[OpCall]) -> list[int]:
        """The indices of the sources that are used several times. To the gradient that a sweep has
        summed up so far, that of each use is added in turn, as eager nodes do."""
        uses = [x for call in calls for x in (*call.reads(), *(
            y for block in call.blocks() for inner in inner_calls(block) for y in inner.reads()
            for _ in range(2)))]
        counts = Counter(uses)
        return [i for i, x in enumerate(self.sources) if counts[x] > 1]

    def backward_part(self, calls: list[OpCall], starts: list[Variable | None],
                      before: dict[Variable, Variable], wanted: tuple[bool, ...] = ()) -> tuple[
                          list[OpCall], list[Variable | None]]:
        """The backward part of calls, and the gradient of each source, or None.

        starts: the gradients of the roots, or None. before: for some sources, the gradient to which
        theirs is added. wanted: whether that of each source is; () for all. Raises: Unplanned.
        """
        block = self.block.copy()
        block.ops = []
        work = Backward(block, block, self.depends_on(wanted), visit_control)
        work.begin_with(before)
        try:
            totals = work.gradients(calls, zip(self.roots, starts), self.all_sources)
        except ProgramError as error:
            raise Unplanned(str(error)) from None
        if work.must_run and any(map(changes, calls)):       # no eager call can replace this one
            raise Unplanned("whether there are gradients depends on whether a loop runs")
        for call in work.must_run:
            call.attributes["must_run"] = True
        return block.ops, totals

    def pullback(self, are_given: tuple[bool, ...], places: tuple[int, ...],
                 wanted: tuple[bool, ...]) -> "Pullback":
        """The backward part for the roots that have a gradient (`are_given`), and the sources whose
        gradient is wanted. Others are left out, and not taken as zero, as zeros can become NaN.
        places: the sources whose gradients are added to earlier ones."""
        found = self.pullbacks.get((are_given, places, wanted))
        if found is None:
            with MAKING:
                for i in places:
                    x = self.sources[i]
                    if i not in self.before:
                        self.before[i] = self.block.new_variable(
                            f"{x.name}@GRAD", x.shape, x.dtype)
                calls, totals = self.backward_part(apart(self.calls), [
                    g if is_given else None for g, is_given in zip(self.starts, are_given)],
                    {self.sources[i]: self.before[i] for i in places if wanted[i]}, wanted)
            if self.copies:                      # first recompute what is not kept
                gone = {x: y for x, y in self.copies.items() if x not in set(self.saved)}
                calls = [*self.again_calls, *[with_inputs(call, gone) for call in calls]]
            by_source = dict(zip(self.all_sources, totals))
            found = self.pullbacks[are_given, places, wanted] = Pullback(
                calls, [*self.whole_pullback.fed, *(self.before[i] for i in places)],
                [by_source[x] if is_wanted else None
                 for x, is_wanted in zip(self.sources, wanted)], self.flags)
        return found

    # ---- gradients that have gradients

    def plan_again(self, calls: list[OpCall]) -> None:
        """Finds what a sweep with `create_graph` runs first: the calls that lead to the roots, once
        more. Random numbers, and values without a gradient, are kept and not computed again."""
        kept = {x for x in self.saved if x not in self.depends and not x.stack}
        self.whole = without_dead([
            call for call in calls if not call.in_place and not is_draw(call.type)
            and not (call.outputs and all(x in kept for x in call.writes()))], self.roots, [],
            effects=False)                # an optimiser's step is not repeated
        made = {x for call in self.whole for x in call.writes()}
        outside = [x for x in dict.fromkeys(
            x for call in self.whole for x in call.reads()) if x not in made]
        drawn = {x for call in calls if is_draw(call.type) for x in call.writes()}
        self.kept = [x for x in outside if x in kept]
        self.drawn = [x for x in outside if x not in kept and x in drawn]
        self.again = [x for x in outside if x not in kept and x not in drawn]
        self.writes = Writes(calls, self.again)
        places = {x: i for i, x in enumerate(self.sources)}
        self.places_again = [places.get(x, -1) for x in self.again]
        places = {x: i for i, x in enumerate(self.again)}
        self.places_of_sources = [places.get(x, -1) for x in self.sources]

    def with_graph(self, values: list[Any], kept: Any, given: list[Tensor],
                   gone: set[Variable]) -> dict[Variable, Any] | None:
        """The values of the call, repeated with its graph; None where the graph needs a value that
        no longer exists.

        values: what the node kept. given: the inputs. gone: kept values that were overwritten or
        released.
        """
        saved = {x: value for x, value in zip((*self.saved, *self.drawn), values)
                 if value is not None}
        if not saved.keys() >= {*self.kept, *self.drawn}:
            return None
        versions = dict(zip(self.again, kept.versions))
        for all_changed in (False, True):
            found = {x: saved[x] for x in (*self.kept, *self.drawn)}
            found.update(zip(self.again, given))
            found.update((x, found[x].detach().requires_grad_()) for x in self.own if x in found)
            if all_changed or self.writes.places or [x._version for x in given] != kept.versions:
                try:
                    AfterWrites(found, self.run_with_graph, self.writes, versions, all_changed,
                                gone).run_all(self.whole, saved)
                except Gone:
                    return None
            else:
                self.run_with_graph(self.whole, found)
            if all_changed or are_as_saved(found, saved):
                break
        return found

    def run_with_graph(self, calls: list[OpCall], values: dict[Variable, Any]) -> None:
        """Runs calls one by one, and records those whose results had a gradient when captured."""
        for call in calls:
            with set_grad_enabled(not all(x is None or x.stop_gradient for x in call.outputs)):
                if not call.blocks():
                    run_call(call, values)
                    for x in self.own.keys() & call.outputs:
                        values[x].requires_grad_()
                    continue
                results = run_control(call, values,
                                      lambda block: self.run_with_graph(block.ops, values))
                values.update((x, y) for x, y in zip(call.outputs, results) if x is not None)


def keeper_of(x: Variable, backward: Iterable[OpCall]) -> str:
    """Which argument, of which operation, a value is that a backward part reads; for the operation
    that reads it first. "" if none reads it."""
    for call in backward:
        op = record_of(call.type)
        for name, value in call.inputs.items():
            if op is not None and value is x:
                return (f"input {op.arguments.index(name)}" if name in op.arguments
                        else "its output") + f" of {op.name}"
        bound = place_of(x, argument_list(call)) if call.blocks() else -1
        for block in call.blocks():
            found = keeper_of(x if bound < 0 else block.inputs[bound], block.ops)
            if found:
                return found
    return ""


class Pullback:
    """Calls that compute gradients. fed: their inputs. grads: their results, or None."""

    def __init__(self, calls: list[OpCall], fed: list[Variable], grads: list[Variable | None],
                 flags: dict[str, bool]):
        self.fed, self.grads = fed, grads
        self.wanted = [g for g in grads if g is not None]
        self.calls = optimized(calls, self.wanted, fed, flags)
        self.read = {x for call in self.calls for x in values_read(call)}.union(self.wanted)
        self.reached: frozenset[int] | None = None       # a cache of `Differentiable.reached`
        self.machine: Any = None
        self.plannable = True

    def run(self, given: list[Any]) -> list[Tensor | None]:
        """The gradients, for the values of the inputs, or None for each that is left out."""
        inputs = tuple([value for value in given if value is not None])
        machine = self.machine
        if machine is None or not machine.fits(inputs):
            machine = self.machine = self.planned(given)
        try:
            found = None if machine is None else machine(inputs)
        except Busy:                           # it runs on another thread
            found = None
        if found is None:
            found = run_calls(self.calls, self.values_of(given), self.wanted)
        if len(found) == len(self.grads):
            return found
        made = iter(found)
        return [None if g is None else next(made) for g in self.grads]

    def values_of(self, given: list[Any]) -> dict[Variable, Any]:
        """The values that are given, by variable."""
        return {x: value for x, value in zip(self.fed, given) if value is not None}

    def planned(self, given: list[Any]) -> Any:
        """A machine for these values; None if the calls have to run one by one."""
        if self.plannable:
            try:
                return machine_for(self.calls, self.values_of(given), self.wanted)
            except Unplanned:
                self.plannable = False
        return None
