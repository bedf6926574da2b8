"""Objects sent between processes; the memory of tensors and arrays is shared, not sent.

A message is a pickle, whose tensors and arrays give their memory as buffers. Small messages travel
through the socket. For larger ones the sender writes the buffers into a piece of memory that both
share, which has no name, only a file descriptor, and sends that. The receiver reads it into memory
of its own and closes it. So nothing is left over however the processes end, and a program that
keeps many batches keeps no open files: mapped memory would hold a descriptor each.
"""

from __future__ import annotations

import os
import pickle
import socket
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import tensorlib as tl

__all__ = ["Channel"]

INLINE = 1 << 15       # bytes up to which a message travels through the socket
ALIGNMENT = 64         # of each buffer, as of tensors' own memory


class Channel:
    """One end of a connection between two processes."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def fileno(self) -> int:
        return self.connection.fileno()

    def send(self, epoch: int, message: Any) -> None:
        """Sends a message and, apart from it, the epoch that it belongs to.

        Raises: OSError where the other end is closed, and what pickling raises.
        """
        buffers: list[pickle.PickleBuffer] = []
        text = pickle.dumps(message, 5, buffer_callback=buffers.append)
        parts = [memoryview(text), *(buffer.raw() for buffer in buffers)]
        sizes = [part.nbytes for part in parts]
        if sum(sizes) <= INLINE:
            copies = [bytearray(part) for part in parts]
            self.connection.send_bytes(pickle.dumps((epoch, None, copies)))
            return
        memory = unnamed_memory()
        try:
            write_all(memory, parts)
            self.connection.send_bytes(pickle.dumps((epoch, sizes, None)))
            send_descriptor(self.connection, memory)
        finally:
            os.close(memory)

    def receive(self) -> tuple[int, Callable[[], Any]]:
        """The epoch of the next message, and a function that unpickles it, which may fail.

        Raises: EOFError or OSError where the other end is closed.
        """
        epoch, sizes, parts = pickle.loads(self.connection.recv_bytes())
        if sizes is not None:
            memory = received_descriptor(self.connection)
            try:
                parts = read_all(memory, sizes)
            finally:
                os.close(memory)
        return epoch, lambda: pickle.loads(parts[0], buffers=parts[1:])

    def shut(self) -> None:
        """Ends the connection for both ends, also where other processes have inherited it."""
        if not self.connection.closed:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as end:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:           # the other end is gone
                    pass
            self.connection.close()


# As `multiprocessing.reduction` does it, but that from Python 3.14, and on macOS, it waits for an
# answer on the same socket, where messages of the other end may come first.

def send_descriptor(connection: Connection, descriptor: int) -> None:
    """Sends a file descriptor beside a byte."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        socket.send_fds(end, [b"f"], [descriptor])


def received_descriptor(connection: Connection) -> int:
    """The file descriptor that comes next. Raises: EOFError where none does."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        found = socket.recv_fds(end, 1, 1)[1]
    if not found:
        raise EOFError
    return found[0]


def unnamed_memory() -> int:
    """A file descriptor of memory without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tensorlib", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def starts_of(sizes: Sequence[int]) -> list[int]:
    """Where each of some parts begins in shared memory, and where the last ends."""
    starts = [0]
    for size in sizes:
        starts.append(-(-(starts[-1] + size) // ALIGNMENT) * ALIGNMENT)
    return starts


def write_all(memory: int, parts: Sequence[memoryview]) -> None:
    """Writes the parts to a file in memory, each at its aligned place."""
    starts = starts_of([part.nbytes for part in parts])
    os.ftruncate(memory, starts[-1])
    for start, part in zip(starts, parts):
        rest = part.cast("B")
        while rest.nbytes:                # a call writes 2 GiB at most
            written = os.pwrite(memory, rest, start)
            start, rest = start + written, rest[written:]


def read_all(memory: int, sizes: Sequence[int]) -> list[memoryview]:
    """The parts, which lie in one tensor: the allocator has such memory ready, and aligned."""
    starts = starts_of(sizes)
    block: Any = tl.empty(starts[-1], dtype=tl.uint8).numpy()
    whole = memoryview(block)
    place = 0
    while place < len(whole):
        read = os.preadv(memory, [whole[place:]], place)
        if not read:
            raise EOFError
        place += read
    return [whole[start:start + size] for start, size in zip(starts, sizes)]
