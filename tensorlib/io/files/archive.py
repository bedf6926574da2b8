"""A zip file that is written from its first byte to its last, with members as they are.

`zipfile` takes four times as long for a few small members.
Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification", version 6.3.10, 4.3 and 4.5.
"""

from __future__ import annotations

import zlib
from struct import Struct

from tensorlib.io.files.stream import Stream

__all__ = ["Archive"]

LOCAL = Struct("<4s5H3L2H")             # in front of a member
ENTRY = Struct("<4s6H3L5H2L")           # of a member, in the directory at the end
END = Struct("<4s4H2LH")
LARGE_END = Struct("<4sQ2H2L4Q")
LOCATOR = Struct("<4sLQL")              # of the one before
EXTRA = Struct("<2H")                   # in front of a field of more bytes
LARGE = 0xFFFFFFFF                      # in place of a number of 64 bits, which is in such a field
LIMIT = LARGE                           # from which on numbers are there
MANY = 0xFFFF                           # in place of a number of members, which is there too
VERSION, LARGE_VERSION = 20, 45         # of the format, by ten
UNIX, MODE = 3 << 8, 0o600 << 16
DATE = 1 << 5 | 1                       # the first of January 1980


class Archive:
    """Members whose bytes begin at multiples of an alignment, and the directory of these."""

    def __init__(self, stream: Stream, alignment: int) -> None:
        self.stream, self.alignment = stream, alignment
        self.entries: list[bytes] = []

    def add(self, name: str, data: memoryview) -> None:
        """Writes a member."""
        path, size, place = name.encode(), data.nbytes, self.stream.tell()
        checksum = zlib.crc32(data)
        sizes = large(size, size) if size >= LIMIT else b""
        padding = -(place + LOCAL.size + len(path) + len(sizes) + EXTRA.size) % self.alignment
        extra = sizes + EXTRA.pack(0x4246, padding) + b"Z" * padding       # "FB", as PyTorch has it
        version, shown = (LARGE_VERSION, LARGE) if sizes else (VERSION, size)
        self.stream.write(LOCAL.pack(b"PK\3\4", version, 0, 0, 0, DATE, checksum, shown, shown,
                                     len(path), len(extra)) + path + extra)
        if size:
            self.stream.write(data)
        extra = large(*(number for number in (size, size, place) if number >= LIMIT))
        self.entries.append(ENTRY.pack(
            b"PK\1\2", UNIX | VERSION, LARGE_VERSION if extra else VERSION, 0, 0, 0, DATE, checksum,
            shown, shown, len(path), len(extra), 0, 0, 0, MODE,
            place if place < LIMIT else LARGE) + path + extra)

    def close(self) -> None:
        """Writes the directory."""
        directory, place, count = b"".join(self.entries), self.stream.tell(), len(self.entries)
        end, nbytes = place + len(directory), len(directory)
        if count >= MANY or end >= LIMIT:
            directory += LARGE_END.pack(b"PK\6\6", LARGE_END.size - 12, UNIX | LARGE_VERSION,
                                        LARGE_VERSION, 0, 0, count, count, nbytes, place)
            directory += LOCATOR.pack(b"PK\6\7", 0, end, 1)
            count, nbytes, place = MANY, LARGE, LARGE
        self.stream.write(directory + END.pack(b"PK\5\6", 0, 0, count, count, nbytes, place, 0))
        self.stream.flush()


def large(*numbers: int) -> bytes:
    """The field of numbers of 64 bits; nothing where there are none."""
    fields = b"".join(number.to_bytes(8, "little") for number in numbers)
    return EXTRA.pack(1, len(fields)) + fields if fields else b""
