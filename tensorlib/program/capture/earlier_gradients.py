"""The `.grad` of captured leaves before a call.

Gradients that the call reads, or adds to, are additional inputs of each replay, since a training
loop makes new ones in each step, or adds to the same ones.
"""

from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.signatures import memory_of, storage_of
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.call_types import write_of
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import Variable


class EarlierGradients:
    """The earlier gradients found by a capture. given: the leaves whose gradients are inputs of
    replays, in order, each with the gradient that it had."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.by_id: dict[int, tuple[Tensor, Tensor]] = {}      # each with its leaf
        self.given: list[tuple[Tensor, Tensor]] = []

    def __contains__(self, x: Tensor) -> bool:
        return id(x) in self.by_id

    def meet(self, leaf: Tensor, grad: Tensor) -> None:
        """Records the gradient of a leaf. Raises: CaptureError if it can't be an input of
        replays."""
        recorder = self.recorder
        is_another = (self.by_id[id(grad)][0] is not leaf if grad in self
                      else memory_of(grad) in recorder.by_memory)
        self.by_id.setdefault(id(grad), (leaf, grad))
        if is_another or any(grad is x for x in recorder.arguments):
            raise CaptureError("grad: a gradient from before the call that is another tensor as "
                               f"well, or that of another one, can't be captured, {user_line()}")

    def only_looked_at(self) -> list[Tensor]:
        """The gradients whose elements were not read."""
        given = {id(grad) for _, grad in self.given}
        return [grad for _, grad in self.by_id.values() if id(grad) not in given]

    def feed(self, grad: Tensor) -> Variable:
        """The variable of a gradient whose elements are read. Raises: CaptureError."""
        if type(grad) is not Tensor or grad.requires_grad or grad.is_inference():
            raise CaptureError("grad: a gradient from before the call that is in a graph itself, "
                               f"or of another class, can't be captured, {user_line()}")
        x: Variable = self.recorder.block.new_variable("input", tuple(grad.shape), grad.dtype)
        self.recorder.feed(grad, x)
        self.given.append(self.by_id[id(grad)])
        return x

    def take(self, results: list[Any]) -> None:
        """Makes the gradients that the call returns inputs of replays."""
        for x in results:
            if isinstance(x, Tensor) and x in self:
                self.recorder.variable_of(x)

    def added(self, leaf: Tensor, old: Variable, g: Variable) -> None:
        """Records that a sweep added to the gradient of a leaf, in place."""
        grad = leaf.grad
        if grad not in self or self.by_id[id(grad)][0] is not leaf or grad.dtype is not g.dtype:
            self.recorder.fail("backward: a gradient that is not added in place to the one before "
                               f"can't be captured, {user_line()}")
            return
        self.recorder.writes.lasting.add(storage_of(grad))
        self.recorder.note(write_of("add_", [old, g], {}, user_line()))
