"""Files that `torch.load` opens: a zip file with a pickle, and each storage as a member."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from typing import Any

from tensorlib.io.files.pickling import pickled
from tensorlib.io.files.source import bytes_of
from tensorlib.io.files.stream import Stream

__all__ = ["torch_file"]

ALIGNMENT = 64                 # of the storages in the file, so that they can be mapped
LOCAL_HEADER = 30              # bytes before the name in front of a member of a zip file
LARGE_SIZES = 20               # bytes more there, for a member of some gigabytes
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def torch_file(obj: Any) -> Callable[[Stream], None]:
    """Writes a file of `torch.save`; all that can be wrong with the object is noticed before."""
    text, storages = pickled(obj)

    def write_to(stream: Stream) -> None:
        with zipfile.ZipFile(stream, "w") as archive:  # type: ignore[call-overload]
            add(archive, stream, "data.pkl", memoryview(text))
            add(archive, stream, "byteorder", memoryview(b"little"))
            for key, storage in enumerate(storages):
                add(archive, stream, f"data/{key}", bytes_of(storage))
            add(archive, stream, "version", memoryview(b"3\n"))
    return write_to


def add(archive: zipfile.ZipFile, stream: Stream, name: str, data: memoryview) -> None:
    """A member whose bytes begin at a multiple of the alignment, and are as they are."""
    member = zipfile.ZipInfo(f"archive/{name}", LONG_AGO)
    member.file_size = data.nbytes
    is_large = data.nbytes * 1.05 > zipfile.ZIP64_LIMIT
    start = stream.tell() + LOCAL_HEADER + len(member.filename) + 4 + LARGE_SIZES * is_large
    padding = -start % ALIGNMENT
    member.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(member, "w", force_zip64=is_large) as file:
        if data.nbytes:
            file.write(data)
