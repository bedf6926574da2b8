"""Frames that a captured function sees, in tracebacks of errors and below its own: without those
of the capture."""

import os
from typing import Any

from tensorlib.program.ir.call_forms import HOME

ROOM = f"{HOME}{os.sep}program{os.sep}"
RUNNERS = tuple(f"{ROOM}reads{os.sep}{name}.py" for name in ("hooks", "functions"))
RECORDERS = tuple(f"{ROOM}{name}{os.sep}" for name in ("building", "capture", "reads"))
AROUND = (*RECORDERS, f"{ROOM}compiled{os.sep}")


def frame_behind(frame: Any) -> Any:
    """The frame that called a frame, as in the eager call; None for none."""
    frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.startswith(AROUND):
        frame = frame.f_back
    return frame


def without_frames(error: BaseException | None) -> None:
    """Takes the frames of a capture out of the traceback of an error, and of those that led to it.

    A frame of what records stays if it is the last: the error is its own.
    """
    waiting, seen = [error], set()
    for x in waiting:
        if x is None or id(x) in seen:
            continue
        seen.add(id(x))
        waiting += x.__cause__, x.__context__, *getattr(x, "exceptions", ())
        links: list[Any] = []
        link = x.__traceback__
        while link is not None:
            links.append(link)
            link = link.tb_next
        last = None
        for link in reversed(links):
            path = link.tb_frame.f_code.co_filename
            if not path.startswith(RUNNERS) and (last is None or not path.startswith(RECORDERS)):
                link.tb_next = last
                last = link
        x.__traceback__ = last
