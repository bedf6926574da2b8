"""Errors of transforms and of batches, which are raised by modules that are imported on first use.

They are public, and `except tensorlib.DataDependent` imports only this module.
"""


class WrongArgument(ValueError, TypeError):
    """A leaf that is not a Tensor: ValueError as in PyTorch, and TypeError."""

    __module__ = "tensorlib"


class DataDependent(RuntimeError, TypeError):
    """A value is needed that differs between the examples of a batch."""

    __module__ = "tensorlib"
