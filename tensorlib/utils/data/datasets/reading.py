"""Bytes of files, plain or compressed by gzip, of which no more is read than is asked for."""

import gzip
import os
import zlib
from typing import IO, Any

CHUNK = 1 << 20              # a size in a damaged file asks for no memory before there are bytes
GZIP = b"\x1f\x8b"


class DamagedFile(ValueError):
    """A file that does not hold what its own header, or its kind, says."""


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """A file, unpacked where it begins as gzip writes it, whatever it is called."""
    file = open(path, "rb")
    packed = file.read(2) == GZIP
    file.seek(0)
    return gzip.GzipFile(fileobj=file, mode="rb") if packed else file  # type: ignore[return-value]


def part(file: IO[bytes], count: int, where: str) -> bytes:
    """At most `count` of the next bytes; none at the end. Raises: DamagedFile."""
    try:
        return file.read(min(CHUNK, count))
    except (EOFError, OSError, zlib.error) as error:
        raise DamagedFile(f"{where}: the compressed file is damaged: {error}") from None


def read(file: IO[bytes], count: int, where: str) -> bytes:
    """The next `count` bytes. Raises: DamagedFile for fewer."""
    parts, left = [], count
    while left and (found := part(file, left, where)):
        parts.append(found)
        left -= len(found)
    if left:
        raise DamagedFile(f"{where}: the file ends after {count - left:,} of {count:,} bytes")
    return b"".join(parts)


def read_all(file: IO[bytes], where: str) -> bytes:
    """All bytes that are left. Raises: DamagedFile."""
    return b"".join(iter(lambda: part(file, CHUNK, where), b""))


def first_there(*paths: Any) -> Any:
    """The first of some paths that is a file, or None."""
    return next((path for path in paths if path.is_file()), None)
