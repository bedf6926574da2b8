"""Calls that are run again to build their graph, after tensors that they read were overwritten.

The graph of an eager call has the version of each value that it saves. If a value was overwritten
since, the sweep raises where a gradient needs it; where none does, its contents do not matter. So
the calls run on the present contents. The values that the replay's node has saved replace the
results of the calls, and a saved tensor that was overwritten is saved with its old version. If a
node would save anything else that was computed from overwritten values, the graph can't be built.
The same holds if such a value decides on a branch, or on whether a loop takes another step.
"""

from collections.abc import Callable
from typing import Any

from tensorlib._core.graph.node import recorded_so_far
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import no_grad
from tensorlib.program.compiled.rebuilt import resave
from tensorlib.program.compiled.states import bits_of
from tensorlib.program.guards.signatures import storage_of
from tensorlib.program.ir.call_types import registered
from tensorlib.program.ir.model import Block, OpCall, Variable
from tensorlib.program.passes.facts import CONTROL, sources
from tensorlib.program.run.running_control import run_control


class Gone(Exception):
    """A value that a graph needs is no longer there."""


class Writes:
    """The calls that write to their inputs. places: for each such variable the numbers of the calls
    that write to it, directly or through a view."""

    def __init__(self, calls: list[OpCall], given: list[Variable]):
        self.number = {id(call): i for i, call in enumerate(calls)}
        over = [(i, call.writes()) for i, call in enumerate(calls) if call.in_place]
        shown = sources(calls, given) if over else {}
        self.places: dict[Variable, list[int]] = {}
        for i, written in over:
            for x in {x for y in written for x in shown.get(y, ())}:
                self.places.setdefault(x, []).append(i)


Saved = dict[Variable, Any]


def are_as_saved(values: dict[Variable, Any], saved: Saved) -> bool:
    """Whether recomputed values have the bits of the saved ones. Otherwise an input was overwritten
    without a new version."""
    return all(have_same_bits(values[x], kept) for x, kept in saved.items() if x in values)


def have_same_bits(value: Any, kept: Any) -> bool:
    """The same for one value, or for a stack with one value for each step of a loop."""
    if isinstance(kept, Tensor):
        return value is kept or bits_of(value) == bits_of(kept)
    return len(value) == len(kept) and all(map(have_same_bits, value, kept))


class AfterWrites:
    """Runs calls on the present values, so that they make the graph that they made then.

    values: the values of variables, to which results are added. run: runs calls on values.
    versions: those of the inputs after the calls first ran. all_changed: any input may have been
    overwritten without a new version, for instance through `data`. gone: saved variables that were
    overwritten or released since; nodes save their present values, with the old versions.
    """

    def __init__(self, values: dict[Variable, Any], run: Callable[..., None], writes: Writes,
                 versions: dict[Variable, int], all_changed: bool, gone: set[Variable]):
        self.values, self.run, self.number, self.gone = values, run, writes.number, gone
        given = [(x, storage_of(values[x])) for x in versions]
        self.after = {place: versions[x] for x, place in given}
        self.changed = {place for x, place in given
                        if all_changed and not x.fixed or values[x]._version != versions[x]}
        self.written: dict[int, set[int]] = {}
        for x, place in given:
            self.written.setdefault(place, set()).update(writes.places.get(x, ()))
        self.wrong: set[Variable] = set()     # computed from overwritten values

    def run_all(self, calls: list[OpCall], saved: Saved, number: int = -1) -> None:
        """Runs calls. saved: their results, as far as these were saved. number: that of the call
        whose block they are in, if any. Raises: Gone."""
        for call in calls:
            at = self.number[id(call)] if number < 0 else number
            late = self.late(call.reads(), at)
            if not (late or not self.wrong.isdisjoint(call.reads())):
                self.run([call], self.values)
                self.wrong.difference_update(call.writes())      # wrong in the step before
            elif call.blocks():
                self.run_blocks(call, saved, at)
            else:
                self.run_late(call, saved, late)

    def late(self, read: list[Variable], number: int) -> dict[int, int]:
        """Of the read values that were overwritten after this call, the storages, each with its
        version at the time of the call."""
        found = {}
        for x in read:
            value = self.values.get(x)
            place = storage_of(value) if isinstance(value, Tensor) else None
            if place in self.after:
                to_come = sum(i > number for i in self.written[place])
                if to_come or place in self.changed:
                    found[place] = self.after[place] - to_come
        return found

    def run_late(self, call: OpCall, saved: Saved, late: dict[int, int]) -> None:
        """Runs a call without blocks that reads overwritten values."""
        op, values, since = registered(call.type), self.values, recorded_so_far()
        if op is None or op.linearity == "composite" and not all(
                x.stop_gradient for x in call.writes()):         # each of its parts has a node
            raise Gone
        try:
            self.run([call], values)
        except Exception:
            raise Gone from None
        for x in call.writes():
            if storage_of(values[x]) not in self.after:       # else it is a view of an input
                self.put_right(x, saved)
        wrong = self.wrong
        right = {storage_of(y) for x, y in values.items()
                 if isinstance(y, Tensor) and x not in wrong}
        right.difference_update([storage_of(values[x]) for x in wrong if x in values])
        right.update([storage_of(values[x]) for x in self.gone if x in values])
        if not resave([values[x] for x in call.writes()], since, late, right):
            raise Gone

    def put_right(self, x: Variable, saved: Saved) -> None:
        """Replaces a result by its saved value, or marks it as wrong if there is none."""
        if x in saved:
            value = self.values[x]
            once = tuple([slice(1) if step == 0 else slice(None) for step in value.stride()])
            with no_grad():
                value.data[once] = saved[x][once]
            self.wrong.discard(x)
            whole, place = value._base, storage_of(value)
            if whole is None or whole.numel() == value[once].numel():    # its whole memory is right
                self.wrong = {y for y in self.wrong
                              if y not in self.values or storage_of(self.values[y]) != place}
        else:
            self.wrong.add(x)

    def run_blocks(self, call: OpCall, saved: Saved, number: int) -> None:
        """Runs control flow that reads overwritten values."""
        if call.type not in CONTROL:
            raise Gone
        pred, init = call.inputs.get("pred"), [*call.inputs.get("init", ())]
        if pred is not None:
            self.require_right(pred, number)
        lists, steps = [*call.inputs.get("xs", ())], 0
        wrong_outputs: set[int] = set()
        carried = [self.is_wrong(x, number) for x in init]
        beside = [self.is_wrong(x, number) for x in lists]

        def run(block: Block) -> None:
            nonlocal carried, steps
            self.mark(block.inputs, [*carried, *beside])
            kept = {y: saved[x][steps] if x.stack and init else saved[x]
                    for x, y in zip(call.outputs, block.outputs)
                    if x in saved and (not init or x.stack)}
            if block is call.attributes.get("cond_block"):
                self.run_all(block.ops, {}, number)
                self.require_right(block.outputs[0], number)
                return
            for x in block.inputs:           # views of results of the step before
                if x in self.wrong and x in kept and storage_of(self.values[x]) not in self.after:
                    self.put_right(x, kept)
            self.run_all(block.ops, kept, number)
            found = [self.is_wrong(x, number) for x in block.outputs]
            carried = found[:len(init)]
            wrong_outputs.update(i for i, is_wrong in enumerate(found) if is_wrong)
            if init:
                wrong_outputs.difference_update(
                    i for i, is_wrong in enumerate(carried) if not is_wrong)
            steps += 1

        results = run_control(call, self.values, run)
        for i, (x, result) in enumerate(zip(call.outputs, results)):
            if x is None:
                continue
            self.values[x] = result
            if i in wrong_outputs or not steps and i < len(init) and carried[i]:
                self.put_right(x, {} if x.stack else saved)
            else:
                self.wrong.discard(x)

    def mark(self, given: list[Variable], are_wrong: list[bool]) -> None:
        """Marks which of a block's inputs are wrong."""
        for x, is_wrong in zip(given, are_wrong):
            (self.wrong.add if is_wrong else self.wrong.discard)(x)

    def is_wrong(self, x: Any, number: int) -> bool:
        """Whether a value differs from that of the first run, since something was overwritten."""
        return type(x) is Variable and (x in self.wrong or bool(self.late([x], number)))

    def require_right(self, x: Any, number: int) -> None:
        """Raises: Gone if a value that decides what runs is wrong."""
        if self.is_wrong(x, number):
            raise Gone
