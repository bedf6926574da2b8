"""Running a program call by call: a schedule is made once, with the last use of each value.

A `Line` is a call whose arguments were looked up in advance; it says which values are not read
after it. The `Lines` of a program are all that it runs for some variables, and are valid while its
calls stay the same.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import no_grad
from tensorlib.program.ir.call_types import form_of_call
from tensorlib.program.ir.interpreter import add_place, as_results, results_of, value_of
from tensorlib.program.ir.model import Block, OpCall, Variable, variables_in
from tensorlib.program.ir.nested import are_same, parts_of
from tensorlib.program.run.running_control import run_control

MOST_KEPT = 8               # sets of wanted variables for which the lines of a program are kept


class Values(dict[Variable, Any]):
    """The values of a run by variable; a persistable one that was not written yet has its earlier
    value."""

    def __missing__(self, x: Variable) -> Any:
        return value_of(x, {})


class Line:
    """A call that is ready to run.

    run: a function of the values. out: its only output, or None if there are other `outputs`.
    drops: the variables that are not read afterwards.
    """

    __slots__ = ("call", "run", "out", "outputs", "drops")

    def __init__(self, call: OpCall, run: Callable[[Values], Any], drops: list[Variable]):
        self.call, self.run, self.drops = call, run, drops
        self.outputs = call.outputs
        self.out = call.outputs[0] if len(call.outputs) == 1 else None


class Lines:
    """Calls that are ready to run for the `wanted` variables, which keep their values.

    inputs: the variables that have values before they run. parts: the objects that they were made
    from.
    """

    def __init__(self, calls: list[OpCall], inputs: Iterable[Variable],
                 wanted: Iterable[Variable], parts: Iterable[Any] = ()):
        self.parts, self.wanted = list(parts), set(wanted)
        self.blocks: dict[Block, list[Line]] = {}
        self.first = self.made(calls, inputs, ())

    def made(self, calls: list[OpCall], inputs: Iterable[Variable],
             outputs: Iterable[Variable]) -> list[Line]:
        """Calls made ready, from the last to the first."""
        lines: list[Line] = []
        own = {*inputs, *(x for call in calls if not call.in_place for x in call.writes())}
        own -= self.wanted
        own.difference_update(outputs)
        for call in reversed(calls):
            inner = call.blocks()
            over = [x for x in dict.fromkeys((*call.reads(), *call.writes())) if x in own]
            own.difference_update(over)
            for part in inner:
                self.blocks[part] = self.made(part.ops, part.inputs, part.outputs)
                over += [x for x in (*part.inputs, *part.outputs)
                         if x.block is part and x not in self.wanted]
            lines.append(Line(call, self.controlling(call) if inner else running(call), over))
        return lines[::-1]

    def controlling(self, call: OpCall) -> Callable[[Values], Any]:
        """A function that runs a call with blocks."""
        return lambda values: run_control(
            call, values, lambda block: self.run(self.blocks[block], values))

    def __call__(self, feed: Mapping[Variable, Any], wanted: Iterable[Any]) -> list[Any]:
        """The wanted values after all calls ran; items that are no variables are returned as they
        are."""
        values = Values(feed)
        with no_grad():
            self.run(self.first, values)
        return [values[x] if type(x) is Variable else x for x in wanted]

    def run(self, lines: list[Line], values: Values) -> None:
        """Runs calls, which write their results among the values."""
        for line in lines:
            try:
                result = line.run(values)
            except Exception as error:
                add_place(error, line.call)
                raise
            if line.out is not None and isinstance(result, Tensor):
                values[line.out] = result
            else:
                for x, value in zip(line.outputs, as_results(result)):
                    if x is not None:
                        values[x] = value
            result = value = None
            for x in line.drops:
                values.pop(x, None)


def parts_in(program: Any) -> list[Any]:
    """What calls and blocks of a program are made of, as `parts_of` gives it."""
    found: list[Any] = []
    for block in program.blocks:
        found += [block, *block.inputs, *block.outputs, *parts_of(block.ops)]
    return found


def running(call: OpCall) -> Callable[[Values], Any]:
    """A function that runs a call without blocks."""
    form = form_of_call(call)
    run, given = form.run, call.attributes
    args = [call.inputs.get(name) for name in form.arguments]
    assert run is not None
    if "likes" in given or form.op is not None and "wanted" in form.attributes or variables_in(
            [given, [x for x in args if type(x) is not Variable]]):
        return lambda values: results_of(call, values)
    if len(args) == 1 and type(args[0]) is Variable:
        (x,) = args
        return lambda values: run(values[x], **given)
    if len(args) == 2 and type(args[0]) is type(args[1]) is Variable:
        x, y = args
        return lambda values: run(values[x], values[y], **given)
    return lambda values: run(*[values[x] if type(x) is Variable else x for x in args], **given)


def lines_of(program: Any, wanted: list[Any], verify: Callable[[Any], None]) -> Lines:
    """The lines of a program for the `wanted` variables, among which may be what is none.

    Raises: ProgramError for a program that is not well formed, which is looked at where something
    in it is not as when its lines were made.
    """
    names = tuple(id(x) for x in wanted if type(x) is Variable)
    kept = program._lines
    lines: Lines | None = kept.get(names)
    parts = parts_in(program)
    if lines is None or not are_same(lines.parts, parts):
        verify(program)
        if len(kept) >= MOST_KEPT:
            kept.clear()
        lines = kept[names] = Lines(program.block.ops, program.inputs,
                                    [x for x in wanted if type(x) is Variable], parts)
    return lines
