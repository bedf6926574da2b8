"""Captures: interpreters that record what runs as the calls of a program."""

from tensorlib._core.base.settings import Held
from tensorlib._core.interpreters.stack import Interpreter, current_layer, set_stack, stack_with


class Capture(Interpreter):
    """An interpreter that notes the calls of a function.

    differentiates: what it notes may be differentiated, though nothing has a gradient as it runs.
    """

    differentiates = False

    def entered(self, x):
        """The leaf that a transform differentiates by in the place of a tensor."""
        return x.detach().requires_grad_()

    def left(self, x):
        """What a transform gives for a result of its function, outside of the graph."""
        return x.detach()

    def walked(self, starts, since):
        """Called when the graph of what runs is walked along, from nodes `starts`, none from
        before number `since`."""

    def ends_for(self, what):
        """Whether it ends where something is done that it has no note for."""
        return False

    def resumed(self):
        """A context under which this capture is on the stack, while it does a call."""
        return Held((set_stack,), (stack_with(self),))


NOTHING = Capture()          # enters and leaves a transform as where nothing is captured


def capture():
    """The innermost capture of this thread, or None."""
    layer = current_layer()
    while layer is not None and not isinstance(layer.interpreter, Capture):
        layer = layer.below
    return None if layer is None else layer.interpreter


def is_noted_for_gradients():
    """Whether what is done is recorded in a program, which can be differentiated later."""
    found = capture()
    return found is not None and found.differentiates


def may_be_differentiated(x):
    """Whether a gradient of a tensor may be asked for, now or later."""
    return x.requires_grad or is_noted_for_gradients()


def unseen():
    """A context under which operations are executed, and no interpreter of the thread sees them."""
    return Held((set_stack,), (None,))
