"""Calls that are run again to build their graph, after tensors that they read were overwritten.

The graph of an eager call has the version of each value that it saves. If a value was overwritten
since, the sweep raises where a gradient needs it; where none does, its contents do not matter. So
the calls run on the present contents. The values that the replay's node has saved replace the
results of the calls, and a saved tensor that was overwritten is saved with its old version. If a
node would save something else that was computed from overwritten values, the graph cannot be built.
Nor can it where such a value decides which branch is taken, or whether a loop takes another step.
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
from tensorlib.program.passes.facts import CONTROL, lasting
from tensorlib.program.run.running_control import run_control


class Gone(Exception):
    """A value that a graph needs is no longer there."""


class Writes:
    """Where calls write into what they are given: `places` has for each of these variables the
    numbers of the calls that write into it, in place or by way of a view."""

    def __init__(self, calls: list[OpCall], given: list[Variable]):
        self.number = {id(call): i for i, call in enumerate(calls)}
        over = [(i, set(call.writes())) for i, call in enumerate(calls) if call.in_place]
        self.places: dict[Variable, list[int]] = {}
        for x in given if over else ():
            views = lasting(calls, [x], others=False)
            places = [i for i, written in over if not views.isdisjoint(written)]
            if places:
                self.places[x] = places


Saved = dict[Variable, Any]


def are_as_saved(values: dict[Variable, Any], saved: Saved) -> bool:
    """Whether values that were computed once more have the bits of those that were kept: else what
    they are computed of was overwritten without a new version."""
    return all(have_same_bits(values[x], kept) for x, kept in saved.items() if x in values)


def have_same_bits(value: Any, kept: Any) -> bool:
    """The same of one value, or of one for each step of a loop."""
    if isinstance(kept, Tensor):
        return value is kept or bits_of(value) == bits_of(kept)
    return len(value) == len(kept) and all(map(have_same_bits, value, kept))


class AfterWrites:
    """Has calls run on what is there now, and leaves the graph of then.

    values: of each variable, as far as it has one. run: runs calls on values. versions: of each
    variable that is given, its version after the calls ran for the first time. all_changed: any of
    them may have been overwritten without a new version, as by way of `data`. gone: what was
    kept and then overwritten, of which nodes are to keep what is there and its old version, or let
    go of, as nodes are to do as well.
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
        self.wrong: set[Variable] = set()     # computed from what was overwritten

    def run_all(self, calls: list[OpCall], saved: Saved, number: int = -1) -> None:
        """Runs calls. saved: what they gave, as far as it was kept. number: of the call that they
        are inside of, if there is one. Raises: Gone."""
        for call in calls:
            at = self.number[id(call)] if number < 0 else number
            late = self.late(call.reads(), at)
            if not (late or not self.wrong.isdisjoint(call.reads())):
                self.run([call], self.values)
                self.wrong.difference_update(call.writes())      # of the step before, in a loop
            elif call.blocks():
                self.run_blocks(call, saved, at)
            else:
                self.run_late(call, saved, late)

    def late(self, read: list[Variable], number: int) -> dict[int, int]:
        """The places of what is read that was overwritten since a call, and its version then."""
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
        """Runs a call without blocks that reads what was overwritten."""
        op, values, since = registered(call.type), self.values, recorded_so_far()
        if op is None or op.linearity == "composite" and not all(
                x.stop_gradient for x in call.writes()):         # whose parts have nodes
            raise Gone
        try:
            self.run([call], values)
        except Exception:
            raise Gone from None
        for x in call.writes():
            if storage_of(values[x]) not in self.after:       # else a view, which is read later
                self.put_right(x, saved)
        wrong = self.wrong
        right = {storage_of(y) for x, y in values.items()
                 if isinstance(y, Tensor) and x not in wrong}
        right.difference_update([storage_of(values[x]) for x in wrong if x in values])
        right.update([storage_of(values[x]) for x in self.gone if x in values])
        if not resave([values[x] for x in call.writes()], since, late, right):
            raise Gone

    def put_right(self, x: Variable, saved: Saved) -> None:
        """Replaces a result by what was kept of it, or else notes that it is wrong."""
        if x in saved:
            value = self.values[x]
            once = tuple([slice(1) if step == 0 else slice(None) for step in value.stride()])
            with no_grad():
                value.data[once] = saved[x][once]
            self.wrong.discard(x)
            whole, place = value._base, storage_of(value)
            if whole is None or whole.numel() == value[once].numel():    # all that is there
                self.wrong = {y for y in self.wrong
                              if y not in self.values or storage_of(self.values[y]) != place}
        else:
            self.wrong.add(x)

    def run_blocks(self, call: OpCall, saved: Saved, number: int) -> None:
        """Runs control flow that reads what was overwritten."""
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
            for x in block.inputs:           # a view of what the step before gave
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
        """Notes which of a block's inputs are wrong."""
        for x, is_wrong in zip(given, are_wrong):
            (self.wrong.add if is_wrong else self.wrong.discard)(x)

    def is_wrong(self, x: Any, number: int) -> bool:
        """Whether a value is another one than it was, since something was overwritten."""
        return type(x) is Variable and (x in self.wrong or bool(self.late([x], number)))

    def require_right(self, x: Any, number: int) -> None:
        """Raises: Gone where a value that decides on what runs is wrong."""
        if self.is_wrong(x, number):
            raise Gone
