"""Warnings that the library's compiled code gives: a capture is notified of them, as of others.

The profile by which it sees warnings in Python shows none of them.
"""

import os
import sys
import warnings
from _thread import _local as local   # of `threading`, which an import is not worth
from typing import Any

HOME = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
BETWEEN = tuple(os.path.join(HOME, name, "") for name in ("program", "_core"))   # what captures


class Listener(local):
    """The function that is called before each warning of this thread, or None."""

    callback: Any = None


listener = Listener()


def warn_of(message: str, category: type[Warning] = UserWarning, level: int = 1) -> None:
    """Warns as `warnings.warn` does with this `stacklevel`: at 1 in the line of Python code that
    calls this, or what calls this from compiled code. Frames of a capture do not count."""
    if listener.callback is None:
        warnings.warn(message, category, stacklevel=level + 1)
    else:
        warn_at(own(sys._getframe(1)), message, category, level)


def warn_at(frame: Any, message: Any, category: type[Warning] | None = None, level: int = 1,
            source: Any = None) -> None:
    """Warns at the line that a frame is at, or so many up, of which a capture's are none."""
    if listener.callback is not None:
        listener.callback()
    for _ in range(level - 1):
        if frame is not None:
            frame = own(frame.f_back)
    if frame is None:
        warnings.warn_explicit(message, category or UserWarning, "sys", 1, source=source)
        return
    around = frame.f_globals
    warnings.warn_explicit(
        message, category or UserWarning, frame.f_code.co_filename, frame.f_lineno,
        around.get("__name__") or "<string>", around.setdefault("__warningregistry__", {}),
        source=source)


def own(frame: Any) -> Any:
    """A frame, or the next one up that is not of what captures and calls; None where there is none.
    """
    while frame is not None and frame.f_code.co_filename.startswith(BETWEEN):
        frame = frame.f_back
    return frame
