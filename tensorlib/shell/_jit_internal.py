"""Decorators for the compiler TorchScript, which is not supported: each returns its argument."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from .jit import _overload, export, ignore, is_scripting, unused

__all__ = ["Final", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]

T = TypeVar("T")
_overload_method = _overload


def _copy_to_script_wrapper(fn: T) -> T:
    """The function as it is."""
    return fn


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any],
                     if_false: Callable[..., Any], module_name: str, func_name: str
                     ) -> Callable[..., Any]:
    """A function that calls one of two, as the argument of that name or place says."""
    def call(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if given else if_false)(*args, **kwargs)

    call.__name__, call.__module__ = func_name or call.__name__, module_name or __name__
    return call
