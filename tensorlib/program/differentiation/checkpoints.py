"""Checkpoints in an appended backward: values between them are recomputed, not kept."""

from tensorlib.program.differentiation.backward import Backward
from tensorlib.program.ir.call_types import form_of_call
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.ir.nested import mapped


def visit_in_segments(work: Backward, calls: list[OpCall], kept: list[Variable]) -> None:
    """As `work.visit(calls)`; each segment up to a checkpoint runs again before its backward part.

    Values after the last checkpoint are not recomputed, as they have just been computed; nor are
    random draws and in-place writes, which would give other values.
    """
    last = list(segments(calls, set(kept)))
    for place, segment in reversed(list(enumerate(last))):
        if place < len(last) - 1:
            compute_again(work, segment, set(kept))
        work.visit(segment)
        work.again.clear()


def segments(calls: list[OpCall], kept: set[Variable]) -> list[list[OpCall]]:
    """The calls cut after each that writes a checkpoint."""
    found: list[list[OpCall]] = [[]]
    for call in calls:
        found[-1].append(call)
        if any(x in kept for x in call.writes()):
            found.append([])
    return found


def compute_again(work: Backward, segment: list[OpCall], kept: set[Variable]) -> None:
    """Appends the calls of a segment once more, with new output variables."""
    for call in segment:
        if call.in_place or call.blocks() or not repeats(call) or all(
                x in kept for x in call.writes()):
            continue
        inputs = mapped(call.inputs, lambda x: work.again.get(x, x))
        attributes = mapped(call.attributes, lambda x: work.again.get(x, x))
        outputs = []
        for x in call.outputs:
            copy = None
            if x is not None and x not in kept:
                copy = work.target.new_variable(f"{x.name}@AGAIN", x.shape, x.dtype)
                work.again[x] = copy
            outputs.append(copy)
        work.append(OpCall(call.type, inputs, tuple(outputs), attributes, call.line))


def repeats(call: OpCall) -> bool:
    """Whether a call has the same results when it runs again."""
    op = form_of_call(call).op
    return op is not None and not op.random
