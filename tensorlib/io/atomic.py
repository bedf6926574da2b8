"""Atomic replacement of files: a reader finds the old one or the new one, whole."""

from __future__ import annotations

import errno
import os
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
    process is killed. What is not an ordinary file, such as a pipe, is written to as it is.
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
    if not os.path.exists(folder):       # else the error would name the temporary file
        raise FileNotFoundError(errno.ENOENT, "Parent directory does not exist", folder)
    temporary = os.path.join(folder, f".{shortened(name)}.{os.urandom(8).hex()}.tmp")
    try:
        with opened(folder, temporary) as (file, named):
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            os.fsync(file.fileno())
            if not named:
                name_file(file.fileno(), folder, temporary)
        os.replace(temporary, target)
    except BaseException:     # an interrupt may come at any time: nobody notes how far this got
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def shortened(name: str) -> str:
    """The beginning of a name: a whole one may be as long as the file system takes."""
    return os.fsencode(name)[:100].decode(errors="ignore")


@contextmanager
def opened(folder: str, path: str) -> Iterator[tuple[IO[bytes], bool]]:
    """A new file without a name, where there can be one, else with that path; whether it has it."""
    try:
        file, named = open(folder, "wb", opener=nameless), False
    except OSError:                       # not on this system; another error comes up again
        file, named = open(path, "xb", opener=created), True
    with file:
        yield file, named


def created(path: str, flags: int) -> int:
    """An `opener` for `open`: a new file gets the permissions that the umask leaves."""
    return os.open(path, flags, 0o666)


def nameless(folder: str, flags: int) -> int:
    """The descriptor of a new file that has no name and can be given one. Raises: OSError."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        raise OSError(errno.EOPNOTSUPP, "no files without a name")
    return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)


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
