"""A file to write that takes all it is given, whatever the file of the user does."""

from __future__ import annotations

import io
from typing import Any

__all__ = ["Stream"]


class Stream:
    """Writes to a file from its place on, which counts as the beginning; it can't seek.

    A file may take a part of what it is given and say how much, as raw files and pipes do; the rest
    is written by further calls.
    """

    def __init__(self, file: Any) -> None:
        self.file, self.place = file, 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        left = view.cast("B") if view.nbytes else memoryview(b"")
        total = len(left)
        while len(left):
            written = self.file.write(left)
            if written is None and isinstance(self.file, io.RawIOBase):
                raise BlockingIOError("save: the file can't be written to without waiting")
            if type(written) is not int:          # many a file does not say it
                written = len(left)
            if not 0 < written <= len(left):
                raise OSError(f"save: the file took {written} of {len(left)} bytes")
            left = left[written:]
        self.place += total
        return total

    def tell(self) -> int:
        return self.place

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        flush = getattr(self.file, "flush", None)
        if flush is not None:
            flush()
