"""Anomaly mode: the stack trace that a node keeps, and the errors that show it."""

import os
import sys

from tensorlib._core.base.warned import warn_of
from tensorlib._core.base.importing import deferred

HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep

format_stack = deferred("traceback", "format_stack")


def first_notes(running):
    """The metadata of a new node: its stack trace, and the node whose gradient runs, or None."""
    notes = {"traceback_": format_stack(sys._getframe(1))}
    return notes if running is None else {**notes, "parent_": running}


def recorded_at(node):
    """The line at which a node was recorded, in brackets; empty if that is not known."""
    for frame in reversed(node.metadata.get("traceback_", ())):
        if HERE not in frame:
            return f" (recorded at {' '.join(frame.split())})"
    return ""


def check_nan(node, grads):
    """Raises RuntimeError if the gradient of an input of a node has a NaN."""
    for i, g in enumerate(grads):
        if g is not None and bool((g != g).any()):
            raise RuntimeError(
                f"backward: Function {node.name()!r} returned nan values in its {i}th output"
                f"{recorded_at(node)}")


def explain(node):
    """Warns where the operation ran whose gradient raises, and of which gradient it was part."""
    text = f"Error detected in {node.name()}. " + told(node, "caused the error")
    while "parent_" in node.metadata:
        node = node.metadata["parent_"]
        text += f"\nPrevious calculation was induced by {node.name()}. "
        text += told(node, "induced the previous calculation")
    warn_of(text, level=2)


def told(node, role):
    """The traceback of the operation that a node recorded, if it was recorded."""
    frames = node.metadata.get("traceback_")
    if frames:
        return f"Traceback of forward call that {role}:\n" + "".join(frames)
    return ("No forward pass information is available: enable detect_anomaly during the forward "
            "pass too.")
