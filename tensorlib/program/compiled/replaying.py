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

# By a node and the number of its output: two nodes above it, each by its number and its name.

MAKING = Lock()           # held while a backward part is put together in a block


class Replay:
    """Calls of a block that are ready to run again on tensors of the same kind.

    given: the variables of the inputs. layouts: tensors that are laid out as theirs will be.
    lasting: what is read from around the function. flags: which passes run, as in
    `passes.enabled`. outdone: eager calls do less than replays, as in `Links`. changing: calls that
    are undone where a run fails, whatever comes after them. Raises: Unplanned.
    """

    outdone = False
    changing: list[OpCall] = []

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
        """The wanted values for these inputs; None where the run fails before it has changed
        anything, and the caller `retries` by a call of the function, which fails as it does."""
        return self.values_for((*inputs, *self.values), retries)

    def values_for(self, given: tuple[Any, ...], retries: bool = False) -> list[Any] | None:
        """`run` for these inputs and what is read from around the function."""
        if not self.machine.is_running:        # on another thread, or further up on this one
            try:
                outputs: list[Any] | None = self.machine.run(given, retries)
                return outputs
            except Busy:                       # another thread was faster
                pass
        return run_calls(self.calls, dict(zip(self.fed, given)), self.wanted)


def run_calls(calls: list[OpCall], values: dict[Variable, Any],
              wanted: list[Variable]) -> list[Any]:
    """The wanted values after calls ran one by one, where a machine is busy or can't do it."""
    return Lines(calls, values, wanted)(values, wanted)


class Savers:
    """The nodes of a graph that saved values, as `savers_above` has them: their names, and numbers
    that have a bit for each."""

    def __init__(self, roots: Sequence[Variable] = (), names: Sequence[str] = (), gone: int = 0,
                 tables: Sequence[Mapping[Any, int]] = ()):
        self.names, self.gone, self.tables = names, gone, dict(zip(roots, tables))

    def between(self, root: Variable, place: Any) -> int:
        """Those on the ways from a result to a place that the graph leads to."""
        return self.tables.get(root, {}).get(place, 0)

    def leads(self, root: Variable, place: Any) -> bool:
        """Whether the graph leads from a result to a place, as far as it is known."""
        return root not in self.tables or place in self.tables[root]


class Differentiable(Replay):
    """Calls whose results have gradients: one node in the graph of the caller.

    savers: which nodes of the eager call's graph saved values. all_gone: none has them any more.
    own: leaves that the call makes, as it made them. ages: of its leaves, as `ages_of_leaves`.
    places: in the graph, of what is given, where that is not told by `layouts`.
    """

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable],
                 flags: dict[str, bool], savers: Savers | None = None,
                 all_gone: bool = False, own: Mapping[Variable, Tensor] | None = None,
                 ages: Mapping[Any, int] | None = None,
                 places: Mapping[Variable, Any] | None = None):
        self.flags, self.all_gone, self.own = flags, all_gone, own or {}
        calls = apart(calls)              # their blocks will give what the backward part needs
        likes = {x: like for x, like in zip((*given, *lasting),
                                            (*layouts, *(x.value for x in lasting)))
                 if like is not None and like.requires_grad} | self.own
        places = {x: (places or {}).get(x) or gradient_place(like) for x, like in likes.items()}
        # an eager call makes the nodes of leaves in this order, in which their hooks are called
        sources = sorted(likes, key=lambda x: number_of(places[x][0]))
        self.block, self.depends = block, dependents(calls, sources)
        at_hand = {*given, *lasting}
        self.roots = [x for x in wanted if x in self.depends and x not in at_hand]
        roots = set(self.roots)           # which of them gradients of others come by
        self.is_passed = [len(roots & dependents(calls, [x])) > 1 for x in self.roots]
        self.starts = [block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
                       for x in self.roots]
        self.all_sources = sources
        self.pullbacks: dict[Any, Pullback] = {}
        self.after: dict[Any, list[bool]] = {}     # see `needed_after`
        self.before: dict[int, Variable] = {}      # of sources: gradients of other nodes
        self.in_parts = not any(call.blocks() for call in calls)
        if not self.in_parts:                # each root may be the only one to be used
            for start in self.starts:
                self.backward_part(calls, [g if g is start else None for g in self.starts], {})
        backward, totals = self.backward_part(calls, self.starts, {})
        self.sources = [x for x, g in zip(sources, totals) if g is not None]
        self.grads = [g for g in totals if g is not None]
        savers = savers or Savers()
        self.on_ways = [[savers.between(root, places[x]) for x in self.sources]
                        for root in self.roots]
        self.leads = [[not self.in_parts or savers.leads(root, places[x]) for x in self.sources]
                      for root in self.roots]         # a branch may lead to others
        self.on_any_way = reduce(or_, (each for row in self.on_ways for each in row), 0)
        self.savers = savers.names
        self.gone = savers.gone & self.on_any_way         # let go of by a sweep of the call
        self.copies: dict[Variable, Variable] = {}
        if flags["recompute"]:
            calls, backward, self.copies = recomputed_parts(
                calls, backward, [*wanted, *self.grads], [*given, *lasting])
        written = {x for call in calls for x in call.writes()}
        read = dict.fromkeys(x for call in backward for x in values_read(call))
        self.saved = [x for x in read if x in written and x not in at_hand]
        self.direct = [x for x in read if x in at_hand]
        self.backward = backward
        self.positions = {x for x in read if not has_gradients(x.dtype)}
        again = set(self.copies.values())
        self.again_calls = [call for call in backward if not again.isdisjoint(call.writes())]
        self.whole_pullback = Pullback(
            backward, [*self.starts, *self.saved, *self.direct], self.grads, flags)
        self.plan_again(calls)
        made = [x for x in self.sources if x not in at_hand]
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

    @property
    def outdone(self) -> bool:            # type: ignore[override]
        return bool(self.links.outdone)

    def run(self, inputs: Sequence[Tensor], retries: bool = False) -> list[Any] | None:
        results: list[Any] | None = self.links.run(self, (*inputs, *self.values), retries)
        return results

    def gradients(self, grads: list[Tensor | None], values: list[Any], kept: Any,
                  before: dict[int, Tensor], wanted: tuple[bool, ...]) -> list[Any]:
        """The gradients of the sources, as far as they are wanted, for those of the roots and what
        the node kept: `values`, which it saved, and what is in `kept`. before: to what is added, by
        the source's place."""
        n = len(self.saved)
        return self.pullback_for(grads, before, wanted).run([
            *grads, *values[:n], *values[n + len(self.drawn):], *before.values()])

    def pullback_for(self, grads: list[Tensor | None], before: Collection[int],
                     wanted: tuple[bool, ...]) -> "Pullback":
        """The backward part for those roots that have a gradient."""
        are_given = tuple([g is not None for g in grads])
        if not self.in_parts:
            wanted = (True,) * len(wanted)
        if before or not all(are_given) or not all(wanted):
            return self.pullback(are_given, tuple(before), wanted)
        return self.whole_pullback

    def asked(self, grads: list[Tensor | None], wanted: tuple[bool, ...]) -> int:
        """A bit for each node of the eager graph on the ways from results whose gradients arrived
        to sources whose gradients are wanted."""
        if all(wanted) and not any(g is None for g in grads):
            return self.on_any_way
        return reduce(or_, (each for g, row in zip(grads, self.on_ways) if g is not None
                            for is_wanted, each in zip(wanted, row) if is_wanted), 0)

    def kept_by_node(self, sizes: list[int]) -> list[Variable]:
        """Of each tensor that the node keeps, which value it is, or is of.

        sizes: how many tensors the values are, the first ones, where some are stacks.
        """
        values = [*self.saved, *self.drawn]
        each = [x for x, size in zip(values, sizes) for _ in range(size)] if sizes else values
        return [*each, *self.direct]

    def needed(self, grads: list[Tensor | None], before: Collection[int],
               wanted: tuple[bool, ...], sizes: list[int]) -> list[bool]:
        """Whether the gradients that are wanted, of those that arrived, need each tensor that the
        node keeps."""
        read = self.pullback_for(grads, before, wanted).read
        return [x in read for x in self.kept_by_node(sizes)]

    def reached(self, grads: list[Tensor | None], before: dict[int, Tensor],
                wanted: tuple[bool, ...]) -> frozenset[int]:
        """The numbers of the calls on the ways from results whose gradients arrived to sources
        whose gradients are wanted, and of which the node keeps something that these need."""
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
        """What depends on the sources whose gradients are wanted, or on any."""
        return self.depends if all(wanted) else dependents(
            self.calls, [x for x, is_wanted in zip(self.sources, wanted) if is_wanted])

    def needed_after(self, ran: frozenset[int], sizes: list[int]) -> list[bool]:
        """Whether gradients of other calls than those that ran may need each tensor that the node
        keeps, or its calls, to run again; or it is positions, which eager nodes keep."""
        place = ran, tuple(sizes)
        if place not in self.after:
            read = {x for i, call in enumerate(self.calls) if i not in ran
                    and not self.depends.isdisjoint(call.writes())
                    for x in (*call.reads(), *call.writes())}
            read.update(self.positions, self.kept, self.drawn)
            self.after[place] = [x in read for x in self.kept_by_node(sizes)]
        return self.after[place]

    def named(self, error: RuntimeError, sizes: list[int]) -> RuntimeError:
        """An error about a value that the node saved, which says of what operation it is."""
        number = re.search(r"saved tensor (\d+) of compiled", str(error))
        if number is not None:
            keeper = keeper_of(self.kept_by_node(sizes)[int(number[1])], self.backward)
            error.args = (str(error).replace(number[0], keeper or number[0]),)
        return error

    def several(self, calls: list[OpCall]) -> list[int]:
        """The places of the sources that calls use several times. The sweep has added up what came
        before: the gradient of each use is added to that, in turn, as eager nodes do it."""
        uses = [x for call in calls for x in (*call.reads(), *(
            y for block in call.blocks() for inner in inner_calls(block) for y in inner.reads()
            for _ in range(2)))]
        counts = Counter(uses)
        return [i for i, x in enumerate(self.sources) if counts[x] > 1]

    def backward_part(self, calls: list[OpCall], starts: list[Variable | None],
                      before: dict[Variable, Variable], wanted: tuple[bool, ...] = ()) -> tuple[
                          list[OpCall], list[Variable | None]]:
        """The backward part of calls, and the gradients of all sources, or of those that are
        wanted; `starts` are those of the roots, None for a root that has none. before: of sources,
        to what theirs are added. Raises: Unplanned."""
        block = self.block.copy()
        block.ops = []
        work = Backward(block, block, self.depends_on(wanted), visit_control)
        work.begin_with(before)
        try:
            totals = work.gradients(calls, zip(self.roots, starts), self.all_sources)
        except ProgramError as error:
            raise Unplanned(str(error)) from None
        if work.must_run and any(map(changes, calls)):       # an eager call can't begin anew
            raise Unplanned("whether there are gradients depends on whether a loop runs")
        for call in work.must_run:
            call.attributes["must_run"] = True
        return block.ops, totals

    def pullback(self, are_given: tuple[bool, ...], places: tuple[int, ...],
                 wanted: tuple[bool, ...]) -> "Pullback":
        """The backward part for those roots that have a gradient, and for those sources whose
        gradient is wanted: what leads to the others is left out, as zeros are no gradient, and may
        become NaN on their way. places: of the sources whose gradients are added to others."""
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
            if self.copies:                      # what is not kept is computed again at first
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
        """What a sweep with `create_graph` runs at first: the calls that lead to the roots, once
        more. What they read of else is kept: numbers that were drawn, and all that has no gradient.
        """
        kept = {x for x in self.saved if x not in self.depends and not x.stack}
        self.whole = without_dead([
            call for call in calls if not call.in_place and not is_draw(call.type)
            and not (call.outputs and all(x in kept for x in call.writes()))], self.roots, [],
            effects=False)                # an optimiser has made its step
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
        """The values of an eager call, the roots with their graph, of what the node kept and what
        was `given`; None where one that the graph needs is no longer there. gone: those that it
        kept and that were overwritten or let go of."""
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
        """Runs calls one by one; what had a gradient in the captured call is recorded."""
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
    """Which argument a value is, and of which operation, that a backward part needs first; "" where
    none needs it."""
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
    """Calls that give gradients, ready to run. fed: what they are given. grads: what they give,
    None for what has no gradient. Raises: Unplanned."""

    def __init__(self, calls: list[OpCall], fed: list[Variable], grads: list[Variable | None],
                 flags: dict[str, bool]):
        self.fed, self.grads = fed, grads
        self.wanted = [g for g in grads if g is not None]
        self.calls = optimized(calls, self.wanted, fed, flags)
        self.read = {x for call in self.calls for x in values_read(call)}.union(self.wanted)
        self.reached: frozenset[int] | None = None       # see `Differentiable.reached`
        self.machine: Any = None
        self.plannable = True

    def run(self, given: list[Any]) -> list[Tensor | None]:
        """The gradients, for the values of what is fed."""
        inputs = tuple([value for value in given if value is not None])
        machine = self.machine
        if machine is None or not machine.fits(inputs):
            machine = self.machine = self.planned(given)
        try:
            found = None if machine is None else machine(inputs)
        except Busy:                           # on another thread
            found = None
        if found is None:
            found = run_calls(self.calls, self.values_of(given), self.wanted)
        if len(found) == len(self.grads):
            return found
        made = iter(found)
        return [None if g is None else next(made) for g in self.grads]

    def values_of(self, given: list[Any]) -> dict[Variable, Any]:
        """What is given, by variable."""
        return {x: value for x, value in zip(self.fed, given) if value is not None}

    def planned(self, given: list[Any]) -> Any:
        """A machine for what is given; None where the calls run one by one."""
        if self.plannable:
            try:
                return machine_for(self.calls, self.values_of(given), self.wanted)
            except Unplanned:
                self.plannable = False
        return None
