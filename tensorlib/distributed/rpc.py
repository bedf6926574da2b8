"""Calls of functions in other processes, which are not supported: each name raises when called."""

from typing import Any, NoReturn

__all__ = ["init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]


def is_available() -> bool:
    """False: libraries that ask have no use for the other names then."""
    return False


def init_rpc(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: processes share tensors by collectives alone."""
    raise NotImplementedError("rpc: there are no calls in other processes; tensorlib.distributed "
                              "has collectives, send and recv")


remote = rpc_async = rpc_sync = shutdown = init_rpc
