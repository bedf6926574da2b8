"""The errors of programs."""

from tensorlib.ops.errors import DataDependent


class CaptureError(DataDependent):
    """A function does what a program can't represent. The message names the line of user code."""

    __module__ = "tensorlib.program"


class ProgramError(ValueError, RuntimeError):
    """A program is not well formed. The message names the operation, the variable and the line."""

    __module__ = "tensorlib.program"


class Busy(RuntimeError):
    """A machine that should run is running already, on another thread or in an outer call."""

    __module__ = "tensorlib.program"
