"""`__torch_function__`, PyTorch's protocol for classes that do operations themselves.

A class that is not a Tensor is asked where a function would refuse it; a subclass of Tensor that
overrides the method is asked first.

>>> class Metres:
...     def __init__(self, value):
...         self.value = value
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         return cls(func(*[getattr(x, "value", x) for x in args], **(kwargs or {})))
>>> tensorlib.add(Metres(tensorlib.ones(2)), 1).value
tensor([2., 2.])
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import Any

import tensorlib
from tensorlib._core.interpreters import foreign
from tensorlib._core.interpreters.stack import Interpreter, current_layer
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS

# Of Tensor's attributes those that Python asks for, which no class is asked about.
OWN = frozenset("""__class__ __dict__ __weakref__ __new__ __init__ __init_subclass__ __doc__
    __getattribute__ __setattr__ __delattr__ __dir__ __sizeof__ __subclasshook__ __module__
    __torch_function__ __reduce__ __getstate__""".split())


class TorchFunctionMode(Interpreter):
    """A context in which `__torch_function__` of its class does the thread's operations.

    func: the public function that is called, with the arguments of the call; what it is made of is
    not seen.

    >>> class Names(tensorlib.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(tensorlib.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     y = tensorlib.add(tensorlib.ones(2), 1)
    tensorlib.add
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a call gives. Raises: NotImplementedError where a class has none of its own."""
        raise NotImplementedError(f"{type(self).__name__}: has no __torch_function__")

    takes_functions = True

    def called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What a public function gives. Raises: TypeError where no one does it."""
        args = foreign.in_one_form(function, args)
        given = foreign.overriding((*args, *kwargs.values()))
        done = self.__torch_function__(function, tuple(map(type, given)), args, kwargs)
        if done is NotImplemented:
            return foreign.dispatched(function, given, args, kwargs)
        return done

    def call(self, op: Any, args: Any, kwargs: Any) -> Any:
        """What an operation gives."""
        return self.called(Tensor.__getitem__ if op.name == "getitem" else op.function, args,
                           kwargs)

    def write(self, op: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Does what writes into its first tensor."""
        if name == "setitem":
            x, value, key = args
            self.called(Tensor.__setitem__, (x, key, value), kwargs)
            return x
        return self.called(getattr(Tensor, name), args, kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing, to derive others from."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments, or a mode of this thread, has a `__torch_function__`."""
    layer = current_layer()
    return layer is not None and isinstance(layer.interpreter, TorchFunctionMode) or (
        any(map(foreign.overrides, relevant_args)))


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any],
                          *args: Any, **kwargs: Any) -> Any:
    """What `__torch_function__` of the first argument that does not decline makes of a call.

    Raises: TypeError where all decline.
    """
    return foreign.dispatched(public_api, foreign.overriding(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of a function of one's own: the arguments that `dispatcher` gives may do it."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if any(map(foreign.overrides, relevant)):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)
        return wrapped
    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a Tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


# ---- which functions there are -------------------------------------------------------------------

def is_offered(function: Any) -> bool:
    """Whether a public function is given to classes that take part, and to modes."""
    return callable(function) and (
        hasattr(function, "op") or hasattr(function, "__wrapped__")
        or getattr(Tensor, getattr(function, "__name__", ""), None) is function)


@cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that may arrive at `__torch_function__`, by where they are.

    >>> tensorlib.add in get_overridable_functions()[tensorlib]
    True
    """
    found = {}
    for home in (tensorlib, tensorlib.nn.functional, tensorlib.linalg, tensorlib.fft,
                 tensorlib.special):
        values = [getattr(home, name) for name in dir(home) if name[0] != "_"]
        found[home] = [x for x in values if is_offered(x) and x not in get_ignored_functions()]
    members = {name: getattr(Tensor, name) for name in dir(Tensor) if name not in OWN}
    found[Tensor] = [x if callable(x) else x.__get__ for x in members.values()
                     if callable(x) or hasattr(x, "__get__")]
    return found


@cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The functions that are never given to `__torch_function__` of a class: they take no tensor.

    >>> tensorlib.zeros in get_ignored_functions()
    True
    """
    values = [getattr(tensorlib, name) for name in dir(tensorlib) if name[0] != "_"]
    return {x for x in values if callable(x) and not isinstance(x, type) and (
        not is_offered(x) or hasattr(x, "op") and not x.op.arguments and not x.op.variadic)}


@cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden one that takes its arguments and gives -1."""
    return {function: lambda *args, **kwargs: -1
            for functions in get_overridable_functions().values() for function in functions}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or the `__get__` of one of its properties."""
    name = getattr(func, "__name__", "")
    return name == "__get__" or func in get_overridable_functions()[Tensor]


def enable_reentrant_dispatch() -> AbstractContextManager[None]:
    """Nothing: functions that are called in a `__torch_dispatch__`, which there is not, dispatch.
    """
    return nullcontext()


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public name of a function, None for one that has none."""
    name = getattr(f, "__name__", "")
    if FUNCTIONS.get(name) is f:
        return f"tensorlib.{name}"
    return f"tensorlib.Tensor.{name}" if getattr(Tensor, name, None) == f else None


__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch",
           "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
           "handle_torch_function", "has_torch_function", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]
