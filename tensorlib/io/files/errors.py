"""The errors of files that can't be loaded."""

from pickle import UnpicklingError

__all__ = ["EmptyFile", "LoadError"]


class LoadError(RuntimeError, ValueError, UnpicklingError):
    """A file is damaged, is none of those that `load` reads, or names what `load` doesn't build."""

    __module__ = "tensorlib.serialization"


class EmptyFile(LoadError, EOFError):
    """A file has no bytes."""

    __module__ = "tensorlib.io.files.errors"
