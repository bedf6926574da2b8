"""The bytes of a file, mapped or read, and tensors over them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.io.files.errors import LoadError

__all__ = ["Cursor", "Source", "bytes_of", "flat"]


class Source:
    """All bytes of a file. If they are `shared`, tensors lie in them, else each has its own copy.

    A mapping is private: who writes to a tensor has a page of his own, and the file stays.
    """

    def __init__(self, data: memoryview, shared: bool) -> None:
        self.data, self.shared = data, shared

    @staticmethod
    def of(file: str | os.PathLike[str] | IO[bytes], shared: bool) -> Source:
        """The bytes of a path, mapped, or the rest of an open file, read."""
        if hasattr(file, "read"):
            content = file.read()
            if not isinstance(content, (bytes, bytearray, memoryview)):
                raise TypeError("load: the file must be open in binary mode, it gave "
                                f"{type(content).__name__}")
            return Source(memoryview(content), False)
        with open(file, "rb") as opened:
            if not os.fstat(opened.fileno()).st_size:
                return Source(memoryview(opened.read()), False)
            return Source(memoryview(mmap.mmap(
                opened.fileno(), 0, access=mmap.ACCESS_COPY)), shared)

    def part(self, start: int, stop: int) -> memoryview:
        """Bytes that a tensor may have: writable, and its own if they are not shared."""
        view = self.data[start:stop]
        return view if self.shared else memoryview(bytearray(view))


class Cursor:
    """A file to read over bytes in memory, without a copy of them all."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.place = data, 0

    def read(self, size: int = -1) -> bytes:
        start = self.place
        end = len(self.data) if size is None or size < 0 else min(start + size, len(self.data))
        self.place = max(start, end)
        return bytes(self.data[start:end])

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
        self.place = (0, self.place, len(self.data))[whence] + place
        if self.place < 0:
            raise OSError("seek: before the beginning")
        return self.place

    def tell(self) -> int:
        return self.place

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: the bytes are its maker's."""


def flat(memory: Any, dtype: Any, count: int) -> Tensor:
    """A vector over writable memory, or over a copy of it where the elements are not aligned."""
    if not count:
        return tl.empty(0, dtype=dtype)
    view = memoryview(memory)[:count * dtype.itemsize]
    if dtype is tl.bool and np.frombuffer(view, np.uint8).max() > 1:
        raise LoadError("bools that are neither 0 nor 1")     # kernels rely on it
    try:
        return tl.frombuffer(view, dtype=dtype)
    except ValueError:                    # the elements are not aligned
        return tl.frombuffer(bytearray(view), dtype=dtype)


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
