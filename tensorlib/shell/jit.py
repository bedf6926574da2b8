"""The names of the compiler TorchScript, which is not supported: functions run eagerly.

>>> @tensorlib.jit.script
... def f(x, n: int):
...     return x * n
>>> f(tensorlib.ones(2), 3)
tensor([3., 3.])
"""

import typing
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakSet

from tensorlib import nn

from tensorlib._core.base.explained import explain

from .futures import Future

__all__ = ["Attribute", "Final", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate",
           "export", "fork", "freeze", "ignore", "is_scripting", "is_tracing", "load",
           "optimize_for_inference", "save", "script", "script_if_tracing", "script_method",
           "trace", "trace_module", "unused", "wait"]

T = TypeVar("T")
__path__: list[str] = []
annotations = typing                       # PyTorch's module of that name has the same types
Error = Exception                  # what a script raises: functions run as they are, any error


class TracerWarning(Warning):
    """What PyTorch's tracer warns by; nothing is traced here, so that it can only be silenced.

    >>> issubclass(tensorlib.jit.TracerWarning, Warning)
    True
    """


_scripted: WeakSet[nn.Module] = WeakSet()


class _ScriptModuleType(type(nn.Module)):  # type: ignore[misc]
    """Has `isinstance` find what went through `script` or `trace`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is ScriptModule and type.__instancecheck__(nn.Module, instance)
            and instance in _scripted)


class ScriptModule(nn.Module, metaclass=_ScriptModuleType):
    """The base of classes that were written for TorchScript: a module like any other.

    Modules that went through `script`, `trace` or `trace_module` count as instances.
    """


def _as_scripted(obj: T) -> T:
    if type.__instancecheck__(nn.Module, obj):
        _scripted.add(obj)  # type: ignore[arg-type]
    return obj


class ScriptFunction:
    """The type of compiled functions, of which there are none."""


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """`obj`, a function, class or module, as it is. The other arguments change nothing."""
    return _as_scripted(obj)


def trace(func: T, *args: Any, **kwargs: Any) -> T:
    """`func`, a function or a module, as it is: what depends on elements goes on to do so."""
    return _as_scripted(func)


def trace_module(mod: T, *args: Any, **kwargs: Any) -> T:
    """`mod` as it is; no method is run."""
    return _as_scripted(mod)


def freeze(mod: T, *args: Any, **kwargs: Any) -> T:
    """The module as it is. Raises: RuntimeError for one in training mode."""
    if getattr(mod, "training", False):
        raise RuntimeError("freeze: expects a module in eval mode, call its eval() first")
    return mod


def optimize_for_inference(mod: T, *args: Any, **kwargs: Any) -> T:
    """The module as it is."""
    return mod


def export(fn: T) -> T:
    """The method as it is, as of all decorators here."""
    return fn


def script_method(fn: T) -> T:
    """The method as it is."""
    return fn


def _overload(fn: T) -> T:
    """The declaration as it is."""
    return fn


_overload_method = interface = _overload


def script_if_tracing(fn: T) -> T:
    """The function as it is."""
    return fn


_script_if_tracing = script_if_tracing

def unused(fn: T) -> T:
    """The method as it is."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function as it is; called with an option, a decorator that gives it as it is."""
    return drop if callable(drop) else _as_it_is


def _as_it_is(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """A future of what `func(*args, **kwargs)` gives, which is called at once.

    >>> tensorlib.jit.fork(tensorlib.ones, 2).wait()
    tensor([1., 1.])
    """
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """The result of a future that `fork` gave.

    >>> tensorlib.jit.wait(tensorlib.jit.fork(tensorlib.ones, 2))
    tensor([1., 1.])
    """
    return future.wait()


_fork, _wait = fork, wait


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def Attribute(value: T, type: Any) -> T:
    """The value."""
    return value


isinstance: Callable[[Any, Any], bool] = isinstance


def is_scripting() -> bool:
    """False: what runs was not compiled."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Raises RuntimeError: there are no compiled modules to be written."""
    raise RuntimeError("jit.save: there is no TorchScript here; tensorlib.save(m.state_dict(), f) "
                       "writes the parameters, tensorlib.onnx.export the program")


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises RuntimeError: compiled modules can't be read."""
    raise RuntimeError("jit.load: there is no TorchScript here; tensorlib.load reads the files of "
                       "torch.save, load_state_dict() the parameters in them")

explain(vars(), __all__)
