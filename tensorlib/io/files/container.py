"""The safetensors format: a JSON header, then the elements of named tensors.

The file begins with the length of the header, 8 bytes, the lowest first. The header maps each name
to the dtype, the shape and the range of bytes of a tensor; ranges count from the end of the header,
follow each other without gaps, and end with the file. `__metadata__` maps strings to strings.
Source: https://github.com/huggingface/safetensors, "Format".

The format is this simple, and what is asked for here, mapped memory that bfloat16 tensors lie in
and one error for all that is wrong, is what the package of that name leaves to its users. So it is
read and written here; the tests hold the two to each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import IO, Any

import tensorlib as tl
from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.source import Source

__all__ = ["DTYPES", "ITEMSIZES", "NAMES", "Entry", "read_header", "write"]

LONGEST_HEADER = 100_000_000        # bytes, as in the safetensors package
MOST_DIMS = 64                      # more than any library has; sizes are multiplied
ALIGNMENT = 64                      # of the first tensor, in the file and so in mapped memory
METADATA = "__metadata__"

# the dtypes that tensorlib has, by the format's names, and the bytes of an element of each
OURS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16",
    "I32": "int32", "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16",
    "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64"}
DTYPES = {name: getattr(tl, ours) for name, ours in OURS.items() if hasattr(tl, ours)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ITEMSIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2,
    "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8}


@dataclass(frozen=True)
class Entry:
    """A named run of elements: what is written, or where to read it in the file."""

    dtype: str
    shape: tuple[int, ...]
    data: Any                       # the bytes; of a file that is read, their range in it

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * ITEMSIZES[self.dtype]


def write(file: IO[bytes], entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> None:
    """Writes a whole file. The header keeps the order of the entries."""
    # larger elements come first, so that each run is aligned to its elements
    order = sorted(entries, key=lambda name: -ITEMSIZES[entries[name].dtype])
    ends = list(accumulate(entries[name].nbytes for name in order))
    ranges = dict(zip(order, zip([0, *ends], ends)))
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    for name, entry in entries.items():
        header[name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": ranges[name]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"save: the names and the structure take {len(text)} bytes; the format "
                         f"takes {LONGEST_HEADER}")
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        if entries[name].nbytes:
            file.write(entries[name].data)


def read_header(source: Source) -> tuple[dict[str, Entry], dict[str, str]]:
    """The entries of a file, checked against each other and the file, and its metadata.

    The header begins with a brace, so that it is a JSON object if it is JSON.
    """
    size = source.size
    length = int.from_bytes(source.read(0, 8), "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        raise LoadError(f"the header should have {length} bytes, in a file of {size}")
    header = parsed(source.read(8, 8 + length))
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise LoadError("the metadata does not map strings to strings")
    start = 8 + length
    entries = {name: entry(name, value, start) for name, value in header.items()}
    check_ranges(entries, start, size)
    return entries, metadata


def parsed(text: bytearray | str) -> Any:
    """A value from JSON that has no name twice in an object. Raises: LoadError."""
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            raise LoadError("a name stands twice in the header")
        return out

    try:
        return json.loads(text if isinstance(text, str) else text.decode(),
                          object_pairs_hook=unique)
    except RecursionError as error:
        raise LoadError("the header is nested too deeply") from error
    except ValueError as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"the header is no JSON: {error}") from error


def is_count(value: Any) -> bool:
    """Whether a value of the header is an int from 0 to 2**63 - 1."""
    return type(value) is int and 0 <= value < 2**63


def entry(name: str, value: Any, start: int) -> Entry:
    """One entry of a header whose ranges count from `start`."""
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise LoadError(f"{name!r} has not just dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(shape, list) or not all(map(is_count, shape)):
        raise LoadError(f"the shape of {name!r} is not a list of sizes: {shape!r}"[:200])
    if len(shape) > MOST_DIMS:
        raise LoadError(f"the shape has {len(shape)} dims, where {MOST_DIMS} is the most: {name!r}"[
            :200])
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_count, offsets)):
        raise LoadError(f"the data_offsets of {name!r} are not two positions: {offsets!r}"[:200])
    if not isinstance(dtype, str) or dtype not in ITEMSIZES:
        raise LoadError(f"{name!r} has dtype {dtype!r}, which is not known"[:200])
    found = Entry(dtype, tuple(shape), (start + offsets[0], start + offsets[1]))
    if offsets[1] - offsets[0] != found.nbytes:
        raise LoadError(f"{name!r} has {offsets[1] - offsets[0]} bytes for a shape of {shape} and "
                        f"dtype {dtype}")
    return found


def check_ranges(entries: Mapping[str, Entry], start: int, size: int) -> None:
    """Raises LoadError unless the ranges follow each other from the header to the file's end."""
    ranges: Iterable[tuple[int, int]] = sorted(found.data for found in entries.values())
    for begin, end in ranges:
        if begin != start:
            raise LoadError(f"a tensor begins at byte {begin} of the file, the one before ends at "
                            f"{start}")
        start = end
    if start != size:
        raise LoadError(f"the tensors end at byte {start}, the file at {size}")
