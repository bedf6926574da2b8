"""Captured calls that run again: as they are, or as one node of the caller's graph."""

from typing import Any

from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.function import Function
from tensorlib.autograd.modes import no_grad
from tensorlib.program.backward import Backward, dependents
from tensorlib.program.control_gradients import visit_control
from tensorlib.program.errors import ProgramError
from tensorlib.program.forms import DRAWS, Stack
from tensorlib.program.lines import Lines
from tensorlib.program.model import Block, OpCall, Variable
from tensorlib.program.passes import optimized
from tensorlib.program.passes.dead import without_dead
from tensorlib.program.plan import Unplanned
from tensorlib.program.segments import machine_for
from tensorlib.program.signatures import Signature


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
        self.depends = dependents(calls, sources)
        at_hand = {*given, *lasting}
        self.roots = [x for x in wanted if x in self.depends and x not in at_hand]
        work = Backward(block, block, self.depends, visit_control)
        self.starts = [block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
                       for x in self.roots]
        for x, g in zip(self.roots, self.starts):
            work.add(x, g)
        ops, block.ops = block.ops, []
        try:
            work.visit(calls)
            totals = [work.total(x) for x in sources]
        except ProgramError as error:
            raise Unplanned(str(error)) from None
        finally:
            backward, block.ops = block.ops, ops
        self.sources = [x for x, g in zip(sources, totals) if g is not None]
        self.grads = [g for g in totals if g is not None]
        written = {x for call in calls for x in call.writes()}
        read = dict.fromkeys(x for call in backward for x in call.reads())
        self.saved = [x for x in read if x in written and x not in at_hand]
        self.direct = [x for x in read if x in at_hand]
        self.backward_calls = optimized(backward, self.grads,
                                        [*self.starts, *self.saved, *self.direct])
        self.backward: Any = None
        self.plannable = True
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
        made = _Node.apply(self, given, *[given[self.places[x]] for x in self.sources])
        made = made if isinstance(made, tuple) else (made,)
        return [given[self.places[x]] if x in self.places else out        # no operation made it
                for x, out in zip(self.wanted, made)]

    def gradients(self, given: list[Any]) -> list[Tensor]:
        """The gradients of the sources, for the roots' gradients and what was kept."""
        fed = dict(zip((*self.starts, *self.saved, *self.direct), given))
        if self.plannable and (self.backward is None or not self.backward.fits(tuple(given))):
            try:
                self.backward = machine_for(self.backward_calls, fed, self.grads)
            except Unplanned:
                self.plannable = False
        if not self.plannable or self.backward is None or self.backward.is_running:
            return run_calls(self.backward_calls, fed, self.grads)
        found: list[Tensor] = self.backward(tuple(given))
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

    def gradients_with_graph(self, grads: list[Tensor], saved: list[Any], ctx: Any) -> list[Tensor]:
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
        roots = set(replay.root_places)
        ctx.mark_non_differentiable(*[
            out for i, out in enumerate(outputs) if i not in roots])
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        replay = ctx.replay
        gs = [grads[place] for place in replay.root_places]
        tensors = iter(ctx.saved_tensors)
        saved = unpacked(tensors, ctx.nesting)
        if is_grad_enabled():
            ctx.drawn = saved[len(replay.saved):]
            return None, None, *replay.gradients_with_graph(gs, saved, ctx)
        with no_grad():
            found = replay.gradients([*gs, *saved[:len(replay.saved)], *tensors])
        return None, None, *found


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
