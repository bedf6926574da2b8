"""The `.grad` of captured leaves before a call, and tensors in slots.

Gradients that the call reads, or adds to, are additional inputs of each replay, since a training
loop makes new ones in each step, or adds to the same ones. So are the tensors of places in which
calls found one after the other (guards/slots.pyx).
"""

from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.signatures import can_be_given, memory_of, storage_of
from tensorlib.program.guards.slots import Slot
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.call_types import write_of
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import Variable


class EarlierGradients:
    """The earlier gradients found by a capture. given: the leaves whose gradients are inputs of
    replays, and slots, in order, each with the gradient that it had, or the tensor in it.
    in_slots: these tensors by their ids, each with its slot."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.by_id: dict[int, tuple[Tensor, Tensor]] = {}      # each with its leaf
        self.in_slots: dict[int, tuple[Slot, Tensor]] = {}
        self.given: list[tuple[Any, Tensor]] = []

    def __contains__(self, x: Tensor) -> bool:
        return id(x) in self.by_id or id(x) in self.in_slots

    def meet_in_slot(self, slot: Slot, x: Any) -> bool:
        """Records what a read found in a slot; whether it is given to replays."""
        recorder, parts = self.recorder, slot.parts(x)
        if len({memory_of(y) for _, y in parts if can_be_given(y)}) < max(len(parts), 1):
            return False
        if any(y in self or memory_of(y) in recorder.by_memory or recorder.is_inside(y)
               for _, y in parts):
            return False
        self.in_slots.update((id(y), (each, y)) for each, y in parts)
        return True

    def meet(self, leaf: Tensor, grad: Tensor) -> None:
        """Records the gradient of a leaf. Raises: CaptureError if it can't be an input of
        replays."""
        recorder = self.recorder
        is_another = (self.by_id[id(grad)][0] is not leaf if id(grad) in self.by_id
                      else memory_of(grad) in recorder.by_memory)
        self.by_id.setdefault(id(grad), (leaf, grad))
        if is_another or any(grad is x for x in recorder.arguments):
            raise CaptureError("grad: a gradient from before the call that is another tensor as "
                               f"well, or that of another one, can't be captured, {user_line()}")

    def only_looked_at(self) -> list[Tensor]:
        """The gradients whose elements were not read."""
        given = {id(x) for _, x in self.given}
        return [grad for _, grad in self.by_id.values() if id(grad) not in given]

    def feed(self, grad: Tensor) -> Variable:
        """The variable of a gradient whose elements are read. Raises: CaptureError."""
        if type(grad) is not Tensor or grad.requires_grad or grad.is_inference():
            raise CaptureError("grad: a gradient from before the call that is in a graph itself, "
                               f"or of another class, can't be captured, {user_line()}")
        x: Variable = self.recorder.block.new_variable("input", tuple(grad.shape), grad.dtype)
        self.recorder.feed(grad, x)
        self.given.append(self.in_slots.get(id(grad)) or self.by_id[id(grad)])
        return x

    def take(self, results: list[Any]) -> None:
        """Makes the gradients that the call returns inputs of replays, and what is in slots."""
        for x in (*results, *(x for _, x in self.in_slots.values())):
            if isinstance(x, Tensor) and x in self:
                self.recorder.variable_of(x)

    def added(self, leaf: Tensor, old: Variable, g: Variable) -> None:
        """Records that a sweep added to the gradient of a leaf, in place."""
        grad = leaf.grad
        if self.by_id.get(id(grad), (None,))[0] is not leaf or grad.dtype is not g.dtype:
            self.recorder.fail("backward: a gradient that is not added in place to the one before "
                               f"can't be captured, {user_line()}")
            return
        self.recorder.writes.lasting.add(storage_of(grad))
        self.recorder.note(write_of("add_", [old, g], {}, user_line()))
