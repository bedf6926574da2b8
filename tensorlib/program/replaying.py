"""Captured calls that run again: as they are, or as one node of the caller's graph."""

from threading import Lock
from typing import Any

from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.function import Function
from tensorlib.autograd.modes import enable_grad, no_grad
from tensorlib.program.backward import Backward, dependents
from tensorlib.program.control_gradients import visit_control
from tensorlib.program.errors import ProgramError
from tensorlib.program.forms import DRAWS, Stack, placeholder
from tensorlib.program.lines import Lines
from tensorlib.program.model import Block, OpCall, Variable
from tensorlib.program.passes import optimized
from tensorlib.program.passes.dead import without_dead
from tensorlib.program.plan import Unplanned
from tensorlib.program.segments import machine_for
from tensorlib.program.signatures import Signature

MAKING = Lock()           # held while a backward part is put together in a block


class Replay:
    """Calls of a block that are ready to run again on tensors of the same kind.

    given: the variables of the inputs. layouts: tensors that are laid out as theirs will be.
    lasting: what is read from around the function. Raises: Unplanned.
    """

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable]):
        self.block, self.calls, self.given, self.wanted = block, calls, given, wanted
        self.lasting = lasting
        self.values: list[Any] = [x.value for x in lasting]
        self.fed = [*given, *lasting]
        self.machine = machine_for(optimized(calls, wanted, self.fed),
                                   dict(zip(self.fed, [*layouts, *self.values])), wanted)

    def run(self, inputs: list[Tensor]) -> list[Any]:
        """The wanted values for these inputs."""
        given = (*inputs, *self.values)
        if self.machine.is_running:            # on another thread, or further up on this one
            return run_calls(self.calls, dict(zip(self.fed, given)), self.wanted)
        outputs: list[Any] = self.machine(given)
        return outputs


def run_calls(calls: list[OpCall], values: dict[Variable, Any],
              wanted: list[Variable]) -> list[Any]:
    """The wanted values after calls ran one by one, where a machine is busy or can't do it."""
    return Lines(calls, values, wanted)(values, wanted)


class Differentiable(Replay):
    """Calls whose results have gradients: one node in the graph of the caller."""

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable]):
        sources = [x for x, like in zip((*given, *lasting),
                                        (*layouts, *(x.value for x in lasting)))
                   if like is not None and like.requires_grad]
        self.block, self.depends = block, dependents(calls, sources)
        at_hand = {*given, *lasting}
        self.roots = [x for x in wanted if x in self.depends and x not in at_hand]
        self.starts = [block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
                       for x in self.roots]
        self.all_sources, self.pullbacks = sources, {}
        backward, totals = self.backward_part(calls, self.starts)
        self.sources = [x for x, g in zip(sources, totals) if g is not None]
        self.grads = [g for g in totals if g is not None]
        written = {x for call in calls for x in call.writes()}
        read = dict.fromkeys(x for call in backward for x in call.reads())
        self.saved = [x for x in read if x in written and x not in at_hand]
        self.direct = [x for x in read if x in at_hand]
        self.whole_pullback = Pullback(
            backward, [*self.starts, *self.saved, *self.direct], self.grads)
        self.backward_calls = self.whole_pullback.calls
        self.plan_second(calls)
        super().__init__(block, calls, given, layouts, lasting,
                         [*wanted, *self.saved, *self.drawn])
        self.count = len(wanted)
        self.places = {x: i for i, x in enumerate(self.fed)}
        places = {x: i for i, x in enumerate(wanted)}
        self.root_places = [places[x] for x in self.roots]
        self.second: Differentiable | None = None

    def run(self, inputs: list[Tensor]) -> list[Any]:
        given = (*inputs, *self.values)
        sources = [given[self.places[x]] for x in self.sources]
        if is_grad_enabled():
            made = _Node.apply(self, given, *sources)
        else:
            with enable_grad():                  # as the function itself does
                made = _Node.apply(self, given, *sources)
        made = made if isinstance(made, tuple) else (made,)
        return [given[self.places[x]] if x in self.places else out        # no operation made it
                for x, out in zip(self.wanted, made)]

    def backward_part(self, calls: list[OpCall], starts: list[Variable | None]) -> tuple[
            list[OpCall], list[Variable | None]]:
        """The backward part of calls, and the gradients of all sources; `starts` are those of the
        roots, None for a root that has none. Raises: Unplanned."""
        block = self.block
        work = Backward(block, block, self.depends, visit_control)
        for x, g in zip(self.roots, starts):
            if g is not None:
                work.add(x, g)
        ops, block.ops = block.ops, []
        try:
            work.visit(calls)
            return block.ops, [work.total(x) for x in self.all_sources]
        except ProgramError as error:
            raise Unplanned(str(error)) from None
        finally:
            block.ops = ops

    def pullback(self, are_given: tuple[bool, ...]) -> "Pullback":
        """The backward part for those roots that have a gradient: what leads to the others is left
        out, as zeros are no gradient, and may become NaN on their way."""
        found = self.pullbacks.get(are_given)
        if found is None:
            with MAKING:
                calls, totals = self.backward_part(self.calls, [
                    g if is_given else None for g, is_given in zip(self.starts, are_given)])
            by_source = dict(zip(self.all_sources, totals))
            found = self.pullbacks[are_given] = Pullback(
                calls, self.whole_pullback.fed, [by_source[x] for x in self.sources])
        return found

    # ---- gradients that have gradients

    def plan_second(self, calls: list[OpCall]) -> None:
        """What a sweep with `create_graph` runs: the backward part, and before it those of the
        calls that lead from the sources to what it reads, once more.

        What they read of else is kept: numbers that were drawn, and all that has no gradient.
        """
        kept = {x for x in self.saved if x not in self.depends and not x.stack}
        pure = [call for call in calls if not call.in_place and call.type not in DRAWS
                and not all(x in kept for x in call.writes())]
        self.whole = without_dead([*pure, *self.backward_calls], self.grads, [])
        made = {x for call in self.whole for x in call.writes()} | set(self.starts)
        outside = [x for x in dict.fromkeys(x for call in self.whole for x in call.reads())
                   if x not in made]
        drawn = {x for call in calls if call.type in DRAWS for x in call.writes()}
        over = {x for call in calls if call.in_place for x in call.writes()}
        self.kept = [x for x in outside if x in kept]
        self.drawn = [x for x in outside if x not in kept and x in drawn]
        self.again = [x for x in outside if x not in kept and x not in drawn]
        self.written = [x for x in self.again if x in over]

    def gradients_with_graph(self, grads: list[Any], saved: list[Any], ctx: Any) -> list[Tensor]:
        """The gradients of the sources, as what can be differentiated."""
        if self.written:
            raise RuntimeError(f"compile: {self.written[0].name} is written in the compiled "
                               "function, so that its gradient can't be differentiated; "
                               "differentiate the function itself")
        given = [ctx.given[self.places[x]] for x in self.again]
        if [x._version for x in given] != ctx.versions:
            raise RuntimeError("compile: one of the variables needed for gradient computation has "
                               "been modified by an inplace operation after the compiled call")
        values = dict(zip((*self.saved, *self.drawn), saved))
        grads = [placeholder(x.shape, x.dtype) if g is None else g
                 for x, g in zip(self.roots, grads)]
        inputs = [*grads, *[values[x] for x in self.kept], *ctx.drawn, *given]
        kind = Signature((inputs,), {})
        if self.second is None or self.second_kind.tensors_of((inputs,), {}) is None:
            # a tensor that is given twice is one variable twice
            self.second_kind = kind
            self.second = Differentiable(
                self.block, self.whole, [*self.starts, *self.kept, *self.drawn, *self.again],
                inputs, [], list(dict.fromkeys(self.grads)))
        found = dict(zip(self.second.wanted, self.second.run(inputs)))
        return [found[x] for x in self.grads]


class Pullback:
    """Calls that give gradients, ready to run. fed: what they are given. grads: what they give,
    None for what has no gradient. Raises: Unplanned."""

    def __init__(self, calls: list[OpCall], fed: list[Variable],
                 grads: list[Variable | None]):
        self.fed, self.grads = fed, grads
        self.wanted = [g for g in grads if g is not None]
        self.calls = optimized(calls, self.wanted, fed)
        self.machine: Any = None
        self.plannable = True

    def run(self, given: list[Any]) -> list[Tensor | None]:
        """The gradients, for the values of what is fed."""
        inputs = tuple([value for value in given if value is not None])
        machine = self.machine
        if machine is None or not machine.fits(inputs):
            machine = self.machine = self.planned(given)
        if machine is None or machine.is_running:
            found = run_calls(self.calls, self.values_of(given), self.wanted)
        else:
            found = machine(inputs)
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


class _Node(Function):
    """The node of a replayed call."""

    @staticmethod
    def forward(ctx: Any, replay: Differentiable, given: Any, *sources: Tensor) -> Any:
        found = Replay.run(replay, given[:len(replay.given)])
        outputs, saved = found[:replay.count], found[replay.count:]
        tensors, ctx.nesting = packed(saved)
        ctx.replay, ctx.given = replay, given
        ctx.versions = [given[replay.places[x]]._version for x in replay.again]
        ctx.save_for_backward(*tensors, *[given[replay.places[x]] for x in replay.direct])
        ctx.set_materialize_grads(False)
        roots = set(replay.root_places)
        ctx.mark_non_differentiable(*[
            out for i, out in enumerate(outputs) if i not in roots])
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        replay = ctx.replay
        gs = [grads[place] for place in replay.root_places]
        are_given = [g is not None for g in gs]
        pullback = replay.whole_pullback if all(are_given) else replay.pullback(tuple(are_given))
        tensors = iter(ctx.saved_tensors)
        saved = unpacked(tensors, ctx.nesting)
        if is_grad_enabled():
            ctx.drawn = saved[len(replay.saved):]
            found = replay.gradients_with_graph(gs, saved, ctx)
            return None, None, *[None if g is None else x for g, x in zip(pullback.grads, found)]
        with no_grad():
            return None, None, *pullback.run([*gs, *saved[:len(replay.saved)], *tensors])


def packed(values: Any) -> tuple[list[Tensor], Any]:
    """The tensors in values and in stacks of them, and how they are nested."""
    found: list[Tensor] = []

    def nesting(value: Any) -> Any:
        if type(value) is Stack:
            return [nesting(x) for x in value]
        found.append(value)
        return None

    return found, [nesting(value) for value in values]


def unpacked(tensors: Any, nesting: Any) -> list[Any]:
    """The values of which `packed` gave the tensors, an iterator, and how they are nested."""
    return [next(tensors) if inner is None else Stack(unpacked(tensors, inner))
            for inner in nesting]
