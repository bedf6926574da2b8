"""Captures: interpreters that note what runs as the calls of a program."""

from contextlib import contextmanager

from tensorlib._core.interpreters.stack import Interpreter, current_layer, set_stack


class Capture(Interpreter):
    """An interpreter that notes the calls of a function."""

    @contextmanager
    def resumed(self):
        """A context under which this capture is on the stack, while it does a call."""
        Interpreter.__enter__(self)
        try:
            yield
        finally:
            Interpreter.__exit__(self)


def capture():
    """The innermost capture of this thread, or None."""
    layer = current_layer()
    while layer is not None and not isinstance(layer.interpreter, Capture):
        layer = layer.below
    return None if layer is None else layer.interpreter


@contextmanager
def unseen():
    """A context under which operations are executed, and no interpreter of the thread sees them."""
    before = set_stack(None)
    try:
        yield
    finally:
        set_stack(before)
