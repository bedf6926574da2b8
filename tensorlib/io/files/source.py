"""The bytes of a file, mapped or read, and tensors over them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.mapping import Mapping

__all__ = ["Cursor", "Source", "bytes_of", "checked_array", "checked_bools", "flat", "placed",
           "readable", "shaped", "shapes_only"]

shapes_only = ContextVar("shapes_only", default=False)     # whether tensors are loaded onto meta


class Source:
    """The bytes of a file. If they are `shared`, tensors lie in mapped memory, else in their own.

    A mapping is private: who writes to a tensor has a page of his own, and the file stays. All
    else is read: touching mapped memory whose file has become shorter ends the process. So a file
    is mapped only where that was asked for.
    """

    def __init__(self, content: bytes | bytearray | memoryview | None, file: Any = None) -> None:
        self.content = None if content is None else memoryview(content).cast("B")
        self.file = file
        self.size = len(self.content) if self.content is not None else os.fstat(
            file.fileno()).st_size
        self.shared = False
        self.mapped: memoryview | None = None

    def fill(self, start: int, memory: Any) -> int:
        """Copies bytes from a place of the file into writable memory; how many there were."""
        view = memoryview(memory)
        if self.content is not None:
            found = self.content[start:start + len(view)]
            view[:len(found)] = found
            return len(found)
        self.file.seek(start)
        done = 0
        while done < len(view) and (count := self.file.readinto(view[done:])):
            done += count
        return done

    def read(self, start: int, stop: int) -> bytearray:
        """The bytes from one place of the file to another, as far as the file has them."""
        if self.content is not None:
            return bytearray(self.content[start:max(start, stop)])     # which fills no zeros first
        memory = bytearray(max(0, min(stop, self.size) - start))
        if self.fill(start, memory) < len(memory):
            raise LoadError(f"the file was cut off while it was read: it had {self.size} bytes")
        return memory

    def part(self, start: int, stop: int, itemsize: int = 16, in_map: bool = True) -> memoryview:
        """Writable bytes for a tensor: of the mapping, or its own.

        What is read now, and what is not aligned there, gets its own.
        """
        if not self.shared or start % itemsize or not in_map:
            return memoryview(self.read(start, stop))
        if self.mapped is None:
            self.mapped = memoryview(Mapping(self.file.fileno(), self.size))
        return self.mapped[start:stop]

    def check_size(self) -> None:
        """Raises LoadError if a file that is mapped has become shorter meanwhile."""
        if self.mapped is not None and os.fstat(self.file.fileno()).st_size < self.size:
            raise LoadError(f"the file was cut off while it was read: it had {self.size} bytes")


@contextmanager
def readable(file: str | os.PathLike[str] | IO[bytes]) -> Iterator[Source]:
    """The source of a path, which is open during the block, or of the rest of an open file."""
    if not hasattr(file, "read"):
        with open(file, "rb") as opened:
            yield Source(None, opened) if opened.seekable() else Source(opened.read())
        return
    content = file.read()
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError("load: the file must be open in binary mode, it gave "
                        f"{type(content).__name__}")
    yield Source(memoryview(content))


class Cursor:
    """A file to read over a source, which gives no more than the source has."""

    def __init__(self, source: Source) -> None:
        self.source, self.place = source, 0

    def read(self, size: int = -1) -> bytes:
        start, end = self.place, self.source.size
        if size is not None and 0 <= size < end - start:
            end = start + size
        self.place = max(start, end)
        return bytes(self.source.read(start, end))

    def readinto(self, memory: Any) -> int:
        count = self.source.fill(self.place, memory)
        self.place += count
        return count

    def readline(self) -> bytes:
        line = bytearray()
        while chunk := self.read(256):
            end = chunk.find(b"\n")
            if end >= 0:
                self.place -= len(chunk) - end - 1
                return bytes(line + chunk[:end + 1])
            line += chunk
        return bytes(line)

    def seek(self, place: int, whence: int = 0) -> int:
        self.place = (0, self.place, self.source.size)[whence] + place
        if self.place < 0:
            raise OSError("seek: before the beginning")
        return self.place

    def tell(self) -> int:
        return self.place

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: the bytes are its maker's."""


def checked_bools(memory: Any) -> None:
    """Raises LoadError unless each byte is 0 or 1, which kernels rely on."""
    if len(memory) and np.frombuffer(memory, np.uint8).max() > 1:
        raise LoadError("bools that are neither 0 nor 1")


def checked_array(array: Any) -> Any:
    """A NumPy array, if it has no bools but 0 and 1. Raises: LoadError."""
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise LoadError("bools that are neither 0 nor 1")
    return array


def flat(memory: Any, dtype: Any, count: int) -> Tensor:
    """A vector over writable memory, or over a copy of it where the elements are not aligned."""
    if not count:
        return placed(tl.empty(0, dtype=dtype))
    view = memoryview(memory)[:count * dtype.itemsize]
    if dtype is tl.bool:
        checked_bools(view)
    try:
        return placed(tl.frombuffer(view, dtype=dtype))
    except ValueError:                    # the elements are not aligned
        return placed(tl.frombuffer(bytearray(view), dtype=dtype))


def placed(x: Tensor) -> Tensor:
    """The tensor where `map_location` asks for it."""
    return x.to("meta") if shapes_only.get() else x


def shaped(vector: Tensor, shape: Sequence[int]) -> Tensor:
    """The vector in a shape of as many elements. Raises: LoadError."""
    try:
        return vector.reshape(tuple(shape))
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise LoadError(f"{len(vector)} elements don't have the shape {list(shape)}") from error


def bytes_of(tensor: Tensor) -> memoryview:
    """The elements of a tensor in order, as a pickle has them: no copy of contiguous ones."""
    reduced: Any = tensor.detach().__reduce_ex__(5)
    _, _, _, data, *_ = reduced[1]
    return memoryview(data.raw())
