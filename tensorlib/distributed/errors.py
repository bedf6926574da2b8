"""The errors of distributed calls."""

__all__ = ["DistBackendError", "DistError", "DistTimeoutError", "NoGroupError"]


class DistError(RuntimeError):
    """A call of `tensorlib.distributed` that could not be done."""

    __module__ = "tensorlib.distributed"


class DistBackendError(DistError):
    """MPI reported an error."""

    __module__ = "tensorlib.distributed"


class DistTimeoutError(DistBackendError, TimeoutError):
    """Other processes did not take part within the timeout of the group."""

    __module__ = "tensorlib.distributed"


class NoGroupError(DistError, ValueError):
    """A call before `init_process_group`, or after `destroy_process_group`."""

    __module__ = "tensorlib.distributed"
