"""Captures: interpreters that record what runs as the calls of a program."""

from tensorlib._core.base.settings import Held
from tensorlib._core.interpreters.stack import Interpreter, current_layer, set_stack, stack_with


class Capture(Interpreter):
    """An interpreter that records the calls of a function.

    differentiates: whether the recorded program may be differentiated later.
    """

    differentiates = False

    def entered(self, x):
        """The leaf with respect to which a transform differentiates, in place of a tensor."""
        return x.detach().requires_grad_()

    def left(self, x):
        """The result of a transform for an output of its function, outside the graph."""
        return x.detach()

    def walked(self, starts, since):
        """Called when a transform walks the graph from the nodes `starts` back to the sequence
        number `since`."""

    def ends_for(self, what):
        """Whether it ends at actions that it cannot record."""
        return False

    def resumed(self):
        """A context with this capture on the stack, while it handles a call."""
        return Held((set_stack,), (stack_with(self),))


NOTHING = Capture()          # for transforms outside of captures


def capture():
    """The innermost capture of this thread, or None."""
    layer = current_layer()
    while layer is not None and not isinstance(layer.interpreter, Capture):
        layer = layer.below
    return None if layer is None else layer.interpreter


def is_noted_for_gradients():
    """Whether calls are recorded in a program, which can be differentiated later."""
    found = capture()
    return found is not None and found.differentiates


def may_be_differentiated(x):
    """Whether a gradient of a tensor may be asked for, now or later."""
    return x.requires_grad or is_noted_for_gradients()


def unseen():
    """A context in which operations are executed, hidden from the interpreters of the thread."""
    return Held((set_stack,), (None,))
