"""Programs with control flow: the straight-line segments between branches and loops are planned.

The calls of a block are cut where one has blocks of its own. Each run of plain calls becomes a
machine, planned when it is first reached; the interpreter chooses the branch and counts the steps
(running_control.py), and has the blocks run in the same way.
"""

from collections.abc import Iterable
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import no_grad
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.building.builder import twin_of
from tensorlib.program.ir.errors import Busy
from tensorlib.program.ir.interpreter import Values, run_call, value_of
from tensorlib.program.ir.model import Block, OpCall, Variable, place_of
from tensorlib.program.passes.facts import CONTROL, changes, values_read
from tensorlib.program.run.executor import Machine
from tensorlib.program.run.plan import Unplanned, plan
from tensorlib.program.run.running_control import is_of_gradient, run_control


class Part:
    """Plain calls in a row.

    reads: what they take from before. gives: what of theirs is read later.
    """

    def __init__(self, calls: list[OpCall], gives: list[Variable], layouts: "Layouts"):
        written = {x for call in calls for x in call.writes() if not call.in_place}
        self.calls, self.gives = calls, gives
        self.reads = list(dict.fromkeys(
            x for call in calls for x in values_read(call) if x not in written))
        # planned on tensors like those that will come, so that what can't be planned is known now
        self.machine = plan(calls, {x: layouts.like(x) for x in self.reads}, gives)
        layouts.add(gives, self.machine.places(), self.reads)

    def run(self, values: Values) -> None:
        """Runs the calls on what is among the values, and puts there what they give."""
        given = tuple(value_of(x, values) for x in self.reads)
        machine = self.machine
        if not machine.fits(given):
            machine = self.machine = plan(self.calls, dict(zip(self.reads, given)), self.gives)
        try:
            values.update(zip(self.gives, machine(given)))
        except Busy:                       # on another thread
            for call in self.calls:
                run_call(call, values)


class Layouts:
    """How the variables of a block lie in memory, as far as its calls were planned.

    likes: a tensor that is laid out as each. places: in the memory of which variable each lies (a
    number for memory of its own), and how many bytes after it.
    """

    def __init__(self, fed: dict[Variable, Tensor]):
        self.likes = dict(fed)
        self.places: dict[Variable, tuple[Any, int]] = {x: (x, 0) for x in fed}
        self.count = 0                     # of memories that the calls may have made
        self.numbers: dict[Any, int] = {}
        self.unknown: set[Variable] = set()                    # whose strides are not known

    def like(self, x: Variable) -> Tensor:
        """A tensor that is laid out as a variable. Raises: Unplanned."""
        if x not in self.likes:            # what control flow gives is packed: see `owned`
            self.likes[x] = x.value if x.persistable else likeness(x)
        return self.likes[x]

    def add(self, given: Iterable[Variable | None], places: list[tuple[int, int, Any]],
            reads: list[Variable]) -> None:
        """Takes up what a machine that is fed `reads` gives, from where it says that these lie."""
        unknown = not self.unknown.isdisjoint(reads)
        for x, (root, offset, strides) in zip(given, places):
            if x is None:
                continue
            if strides is None or unknown and any(size != 1 for size in x.shape):
                self.unknown.add(x)
                continue
            self.likes[x] = FUNCTIONS["empty_strided"](x.shape, strides, dtype=x.dtype,
                                                       device="meta")
            if root < 0:
                self.places[x] = self.count - root, offset
            else:
                memory, before = self.places.get(reads[root], (reads[root], 0))
                self.places[x] = memory, before + offset
        self.count += len(places) + len(reads)

    def place(self, x: Variable, fed: list[Variable]) -> tuple[int, int, Any]:
        """Where a variable lies, as a machine says it that is fed these."""
        memory, offset = self.places.get(x, (x, 0))
        number = place_of(memory, fed) if type(memory) is Variable else -1
        if number < 0:
            number = -1 - self.numbers.setdefault(memory, len(self.numbers))
        return number, offset, None if x in self.unknown else list(self.like(x).stride())


class Segments:
    """What a machine is for calls some of which have blocks. It is used as a machine is."""

    is_running = False

    def __init__(self, calls: Iterable[OpCall], fed: dict[Variable, Tensor],
                 outputs: Iterable[Variable]):
        self.fed, self.outputs = list(fed), list(outputs)
        self.bodies: dict[Block, Segments] = {}
        self.parts: list[Part | OpCall] = []
        calls = list(calls)
        self.changes = any(map(changes, calls))
        later = {x for x in self.outputs}
        found: list[tuple[list[OpCall], set[Variable]] | OpCall] = []
        plain: list[OpCall] = []
        for call in reversed(calls):
            if is_plain(call):
                if not plain:
                    found.append((plain, set(later)))
                plain.append(call)
            else:
                plain = []
                found.append(call)
            later.update(call.reads())
        layouts = Layouts(fed)
        for part in reversed(found):
            if type(part) is tuple:
                run, wanted = part[0][::-1], part[1]
                gives = [x for call in run if not call.in_place for x in call.writes()
                         if x in wanted]
                self.parts.append(Part(run, gives, layouts))
            else:
                self.parts.append(part)                       # type: ignore[arg-type]
                for block in part.blocks():                   # type: ignore[union-attr]
                    self.bodies[block] = Segments(
                        block.ops, {**layouts.likes, **{x: likeness(x) for x in block.inputs
                                                        if not x.stack}}, block.outputs)
                self.take_up(part, layouts)                   # type: ignore[arg-type]
        self.lies = [(-1, 0, None) if x.stack else layouts.place(x, self.fed)
                     for x in self.outputs]

    def places(self) -> list[tuple[int, int, Any]]:
        """As of a machine; None for strides that are not known."""
        return self.lies

    def take_up(self, call: OpCall, layouts: Layouts) -> None:
        """Notes how the results of a call with blocks lie, as far as that is known."""
        bodies = [self.bodies[block] for block in call.blocks()]
        if not bodies or call.type in CONTROL and not is_of_gradient(call):
            return
        if not layouts.unknown.isdisjoint(call.reads()):
            layouts.unknown.update(x for x in call.writes() if not x.stack)
        elif call.type not in CONTROL:
            arguments = [y for x in call.inputs.values() for y in (x if type(x) is tuple else (x,))]
            bound = dict(zip(call.blocks()[0].inputs, arguments))
            layouts.add(call.outputs, bodies[0].places(),
                        [bound.get(x, x) for x in bodies[0].fed])
        else:
            self.compare_ways(call, bodies, layouts)

    def compare_ways(self, call: OpCall, bodies: list["Segments"], layouts: Layouts) -> None:
        """Notes which results of a gradient of control flow do not lie row by row in each way that
        it can go."""
        carried = call.inputs.get("init", ())
        for i, x in enumerate(call.outputs):
            if x is None or x.stack or i >= len(carried) and call.type != "cond":
                continue                   # what each step gave is stacked: a new tensor
            ways = [body.lies[i][2] for body in bodies]
            ways += [list(layouts.like(y).stride()) for y in carried[i:i + 1]]
            if any(way != list(likeness(x).stride()) for way in ways):
                layouts.unknown.add(x)

    @property
    def beyond(self) -> list[Any]:
        """As of a machine: of all its parts."""
        return [x for part in self.parts for x in (
            part.machine.beyond if isinstance(part, Part)
            else (y for block in part.blocks() for y in self.bodies[block].beyond))]

    def fits(self, given: tuple[Any, ...]) -> bool:
        """True: each machine is planned anew where its tensors are laid out in another way."""
        return True

    def __call__(self, given: tuple[Any, ...]) -> list[Any]:
        """The outputs, tensors and stacks, for what is fed."""
        values: Values = dict(zip(self.fed, given))
        with no_grad():
            self.perform(values)
        return [value_of(x, values) for x in self.outputs]

    def run(self, given: tuple[Any, ...], retries: bool = False) -> list[Any] | None:
        """As a machine: the outputs, or None where the run failed and changed nothing."""
        try:
            return self(given)
        except Exception:
            if retries and not self.changes:
                return None
            raise

    def perform(self, values: Values) -> None:
        """Runs all calls."""
        for part in self.parts:
            if type(part) is Part:
                part.run(values)
            else:
                assert type(part) is OpCall
                self.control(part, values)

    def control(self, call: OpCall, values: Values) -> None:
        """Runs a call that has blocks, or works on stacks."""
        if not call.blocks():
            run_call(call, values)
            return
        results = run_control(call, values, lambda block: self.bodies[block].perform(values))
        for x, result in zip(call.outputs, results):
            if x is not None:
                values[x] = result


def is_plain(call: OpCall) -> bool:
    """Whether a machine can do a call: it has no blocks, and all that it works on are tensors."""
    if call.blocks():
        return False
    for x in call.reads():
        if x.stack:
            return False
    for x in call.writes():
        if x.stack:
            return False
    return True


def likeness(x: Variable) -> Tensor:
    """A tensor without memory of a variable's shape. Raises: Unplanned for a size not known."""
    if None in x.shape:
        raise Unplanned(f"{x.name} has a size that is known only when it runs")
    return twin_of(x, 0)


def machine_for(calls: list[OpCall], fed: dict[Variable, Tensor],
                outputs: Iterable[Variable]) -> "Machine | Segments":
    """What runs calls without Python between them, as far as they have no control flow.

    Raises: Unplanned.
    """
    made = plan if all(map(is_plain, calls)) else Segments
    return made(calls, fed, outputs)
