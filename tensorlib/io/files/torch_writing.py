"""Files that `torch.load` opens: a zip file with a pickle, and each storage as a member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorlib.io.files.archive import Archive
from tensorlib.io.files.pickling import pickled
from tensorlib.io.files.source import bytes_of
from tensorlib.io.files.stream import Stream

__all__ = ["torch_file"]

ALIGNMENT = 64                 # of the storages in the file, so that they can be mapped


def torch_file(obj: Any) -> Callable[[Stream], None]:
    """Writes a file of `torch.save`; all that can be wrong with the object is noticed before."""
    text, storages = pickled(obj)

    def write_to(stream: Stream) -> None:
        archive = Archive(stream, ALIGNMENT)
        archive.add("archive/data.pkl", memoryview(text))
        archive.add("archive/byteorder", memoryview(b"little"))
        for key, storage in enumerate(storages):
            archive.add(f"archive/data/{key}", bytes_of(storage))
        archive.add("archive/version", memoryview(b"3\n"))
        archive.close()
    return write_to
