"""Errors of transforms and of batches, which modules raise that are imported late.

They are public, so that `except tensorlib.DataDependent` is to import no more than this.
"""


class WrongArgument(ValueError, TypeError):
    """A leaf that is not a Tensor: ValueError as in PyTorch, and TypeError."""

    __module__ = "tensorlib"


class DataDependent(RuntimeError, TypeError):
    """Asked for is a value that differs between the examples: PyTorch's error, and Python's."""

    __module__ = "tensorlib"
