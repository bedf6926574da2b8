"""Atomic replacement of files: a reader finds the old one or the new one, whole."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file to write, which takes the place of `path` when the block ends without an error.

    It is in the same folder, so that one rename replaces the old file, and is on the disk before
    that. Where the system can, it has no name until then, so that nothing is left of it if the
    process is killed. What is no ordinary file, such as a pipe, is written to as it is.
    """
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
    descriptor, named = nameless(folder), False
    if descriptor is None:
        descriptor, named = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), True
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            os.fsync(descriptor)
            if not named:
                name_file(descriptor, folder, temporary)
                named = True
        os.replace(temporary, target)
    except BaseException:
        if named:
            with suppress(OSError):
                os.unlink(temporary)
        raise
    sync_folder(folder)


def nameless(folder: str) -> int | None:
    """A new file without a name, or None where the system has none that can be given one."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:                       # not on this file system; another error comes up again
        return None


def name_file(descriptor: int, folder: str, path: str) -> None:
    """Gives a file without a name its first one."""
    place = os.open(folder, os.O_RDONLY)
    try:
        # with a src_dir_fd, Python calls linkat(), which follows the link that stands for the file
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=place, follow_symlinks=True)
    finally:
        os.close(place)


def sync_folder(folder: str) -> None:
    """Makes the new name last, where folders can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
