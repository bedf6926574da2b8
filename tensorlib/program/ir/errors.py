"""The errors of programs."""

from tensorlib.ops.errors import DataDependent


class CaptureError(DataDependent):
    """A function does what no program can be made of. The message names the user's line."""

    __module__ = "tensorlib.program"


class ProgramError(ValueError, RuntimeError):
    """A program is not well formed. The message names the operation, the variable and the line."""

    __module__ = "tensorlib.program"


class Busy(RuntimeError):
    """A machine was to run that is running, on another thread or further up on this one."""

    __module__ = "tensorlib.program"
