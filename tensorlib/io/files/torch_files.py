"""Files of `torch.save`: zip files with a pickle and the storages, and what came before them.

The caller says what reads the pickle: a `Reader` takes a function that finds storages, and
gives one that reads a pickle from a file.
"""

from __future__ import annotations

import sys
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib.io.files import options
from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.pickles import Interpreter
from tensorlib.io.files.source import Cursor, Source, checked_bools
from tensorlib.io.files.torch_names import (
    UNTYPED,
    Memory,
    Storage,
    StorageType,
    elements_follow,
    find,
)

__all__ = ["load_legacy", "load_zip"]

Reader = Callable[[Callable[[Any], Storage]], Callable[[Any], Any]]
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
LOCAL_HEADER = 30                    # bytes before the name in front of a member of a zip file


class Records:
    """The members of a zip file, none of them compressed: where in the file each lies."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.places: dict[str, tuple[int, int]] = {}
        self.checks: dict[str, int] = {}
        archive = zipfile.ZipFile(Cursor(source))
        end = 0
        for member in sorted(archive.infolist(), key=lambda member: member.header_offset):
            start, stop = self.place(member)
            if member.filename in self.places or member.header_offset < end:
                raise LoadError(f"the zip file has {member.filename!r} twice, or two members in "
                                "one place"[:300])
            end = stop
            self.places[member.filename] = start, stop
            self.checks[member.filename] = member.CRC
        pickles = [name for name in self.places if name.endswith("data.pkl")]
        self.folder = pickles[0].removesuffix("data.pkl")

    def place(self, member: zipfile.ZipInfo) -> tuple[int, int]:
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise LoadError(f"{member.filename!r} is compressed or encrypted; torch.save does "
                            "neither"[:300])
        head = self.source.read(member.header_offset, member.header_offset + LOCAL_HEADER)
        if len(head) < LOCAL_HEADER or not head.startswith(b"PK\x03\x04"):
            raise LoadError(f"{member.filename!r} is not where the zip file says"[:300])
        lengths = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        start = member.header_offset + LOCAL_HEADER + lengths
        stop = start + member.file_size
        if member.file_size != member.compress_size or stop > self.source.size:
            raise LoadError(f"{member.filename!r} goes beyond the end of the file"[:300])
        return start, stop

    def checked(self, name: str) -> bytearray:
        """The bytes of a member, whose checksum is right. Raises: LoadError."""
        if self.folder + name not in self.places:
            raise LoadError(f"the zip file has no {name!r}"[:300])
        start, stop = self.places[self.folder + name]
        data = self.source.read(start, stop)
        if zlib.crc32(data) != self.checks[self.folder + name]:
            raise LoadError(f"{name!r} is damaged: its checksum is another"[:300])
        return data

    def memory(self, name: str, in_map: bool) -> Memory:
        """The bytes of a storage; they are checked where they are read now, not where mapped."""
        if not (self.source.shared and in_map):
            return Memory(self.checked(name))
        if self.folder + name not in self.places:
            raise LoadError(f"the zip file has no {name!r}"[:300])
        return Memory(self.source.part(*self.places[self.folder + name]))


def is_big_endian(records: Records) -> bool:
    """Whether the elements lie in big-endian order: as the file says, else as is set."""
    if records.folder + "byteorder" in records.places:
        return bytes(records.checked("byteorder")) == b"big"
    default = options.get_default_load_endianness()
    return default == options.LoadEndianness.BIG or (
        default == options.LoadEndianness.NATIVE and sys.byteorder == "big")


def load_zip(source: Source, reader: Reader) -> Any:
    """A file of `torch.save` since version 1.6."""
    records = Records(source)
    swapped = is_big_endian(records)
    made: dict[str, Memory] = {}

    def storage(reference: Any) -> Storage:
        kind, key, count = checked_reference(reference)
        if key not in made:
            memory = records.memory(f"data/{key}", kind.dtype != "bool")
            if memory.data.nbytes != count * kind.itemsize:
                raise LoadError(f"storage {key} has {memory.data.nbytes} bytes, for {count} "
                                f"elements of a {kind.name}")
            made[key] = turned(memory, kind) if swapped else memory
        return Storage(made[key], kind)

    return reader(storage)(BytesIO(records.checked("data.pkl")))


def turned(memory: Memory, kind: StorageType) -> Memory:
    """The elements with their bytes in the other order."""
    if kind is UNTYPED:
        raise LoadError("an untyped storage in a big-endian file")
    elements = np.frombuffer(memory.data, f"u{min(kind.itemsize, 8)}")
    return Memory(bytearray(elements.byteswap().tobytes()))


def checked_reference(reference: Any) -> tuple[StorageType, str, int]:
    """The dtype, the key and the count of elements in a pickle's reference to a storage."""
    if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != "storage":
        raise LoadError("the pickle refers to something else than a storage")
    kind, key, count = reference[1], reference[2], reference[4]
    if not isinstance(kind, StorageType) or not isinstance(key, str) or type(count) is not int:
        raise LoadError("the pickle refers to a storage without a dtype, a key and a size")
    if count < 0 or (len(reference) > 5 and reference[5] is not None):
        raise LoadError(f"storage {key} has {count} elements, or is a part of another"[:300])
    return kind, key, count


def load_legacy(source: Source, reader: Reader) -> Any:
    """A file of `torch.save` before version 1.6, or without its zip format: pickles, then data."""
    file = Cursor(source)
    made: dict[str, tuple[Memory, StorageType]] = {}
    claimed = 0

    def storage(reference: Any) -> Storage:
        """Memory that is filled later, of no more bytes than the file has."""
        nonlocal claimed
        kind, key, count = checked_reference(reference)
        if key not in made:
            claimed += count * kind.itemsize
            if claimed > source.size:
                raise LoadError(f"storages of {claimed} bytes in a file of {source.size}")
            made[key] = Memory(bytearray(count * kind.itemsize)), kind
        return Storage(made[key][0], kind)

    def nothing(reference: Any) -> Any:
        raise LoadError("a storage where there is none")

    magic, protocol, machine = (Interpreter(find, nothing).run(file) for _ in range(3))
    if magic != LEGACY_MAGIC or protocol != LEGACY_PROTOCOL or not isinstance(machine, dict):
        raise LoadError("a pickle that torch.save did not write")
    if not machine.get("little_endian", True):
        raise LoadError("a file of a big-endian machine, in the format before zip files")
    token = elements_follow.set(True)
    try:
        content = reader(storage)(file)
    finally:
        elements_follow.reset(token)
    for key in Interpreter(find, nothing).run(file):
        memory, kind = made[key]
        count, nbytes = int.from_bytes(file.read(8), "little"), memory.data.nbytes
        there = min(nbytes, max(0, source.size - file.tell()))
        if count * kind.itemsize != nbytes or there < nbytes:
            raise LoadError(f"storage {key} has {there} of {nbytes} bytes")
        if file.readinto(memory.data) < nbytes:
            raise LoadError(f"storage {key} was cut off while it was read")
        if kind.dtype == "bool" or tl.bool in memory.vectors:
            checked_bools(memory.data)
    return content
