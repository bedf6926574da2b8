"""Warnings of the library's compiled code, of which captures are notified.

The profile function by which they notice warnings of Python code does not see these.
"""

import os
import sys
import warnings
from _thread import _local as local   # of `threading`, which an import is not worth
from typing import Any

HOME = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
BETWEEN = tuple(os.path.join(HOME, name, "") for name in ("program", "_core"))   # code of captures


class Listener(local):
    """The function that is called before each warning of this thread, or None."""

    callback: Any = None


listener = Listener()


def warn_of(message: str, category: type[Warning] = UserWarning, level: int = 1) -> None:
    """Warns as `warnings.warn` does with this `stacklevel`, where 1 is the line of Python code that
    called this, or called the compiled caller. Frames of captures do not count."""
    if listener.callback is None:
        warnings.warn(message, category, stacklevel=level + 1)
    else:
        warn_at(own(sys._getframe(1)), message, category, level)


def warn_at(frame: Any, message: Any, category: type[Warning] | None = None, level: int = 1,
            source: Any = None) -> None:
    """Warns at the line of a frame, or so many frames up, not counting those of captures."""
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
    """A frame, or the next one up that is not of a capture or of dispatch; None without one."""
    while frame is not None and frame.f_code.co_filename.startswith(BETWEEN):
        frame = frame.f_back
    return frame
