"""Traces modules and functions: runs them with values that record what is done with them.

>>> traced = tensorlib.fx.symbolic_trace(lambda x: tensorlib.relu(x) * 2)
>>> traced(tensorlib.tensor([-1.0, 2.0]))
tensor([0., 4.])
"""

import builtins
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import tensorlib
from tensorlib import Tensor, nn
from tensorlib._core.base.explained import explain

from .graph import Graph
from .graph_module import GraphModule
from .node import Argument
from .proxy import Proxy, Recording, TracerBase, found

__all__ = ["Tracer", "symbolic_trace", "wrap"]

F = TypeVar("F", bound=Callable[..., Any] | str)
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_tracer: ContextVar[Any] = ContextVar("tracer", default=None)


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracer.get() is not None


is_fx_symbolic_tracing = is_fx_tracing


def wrap(fn_or_name: F) -> F:
    """The function, or the name, as it is; tracers record its calls and do not look into it.

    Called where the function is defined, on top of the module, with a function of it or the name of
    one that it uses.

    Raises: RuntimeError for what is neither; NotImplementedError inside of a function.
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or "
                           "string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which calls with traced values become nodes."""
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = found((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result
    return call


class Patches:
    """Values that are replaced in modules until the trace is done."""

    def __init__(self) -> None:
        self.before: list[tuple[dict[str, Any], str, Any]] = []
        self.seen: set[int] = set()

    def put(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Replaces one."""
        self.before.append((names, name, names.get(name)))
        names[name] = value

    def record(self, names: dict[str, Any], ids: set[int]) -> None:
        """Replaces those functions among the names of a module that are in `ids`."""
        if id(names) not in self.seen:
            self.seen.add(id(names))
            for name, value in list(names.items()):
                if not name.startswith("_") and callable(value) and id(value) in ids:
                    self.put(names, name, recorded(value))

    def undo(self) -> None:
        """Puts back what was there."""
        for names, name, value in reversed(self.before):
            if value is None:
                names.pop(name, None)
            else:
                names[name] = value


class Tracer(TracerBase):
    """Records what a module does; parts for which `is_leaf_module` says so are one node each.

    autowrap_modules: modules of which the functions are nodes when they get a traced value.
    autowrap_functions: functions of which the same holds.
    """

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False) -> None:
        self._recorded = {id(value) for module in autowrap_modules
                          for name, value in vars(module).items()
                          if not name.startswith("_") and callable(value)}
        self._recorded.update(map(id, autowrap_functions))
        self._searched = autowrap_modules
        self.param_shapes_constant = param_shapes_constant
        self.root: nn.Module = nn.Module()
        self.tensor_attrs: dict[Tensor, str] = {}
        self._patches = Patches()

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a part is one node: layers of `nn` are, except for Sequential."""
        return m.__module__.startswith("tensorlib.nn.modules") and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The path of a part. Raises: NameError for what is no part of the module."""
        for name, part in self.root.named_modules():
            if part is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> Any:
        """What a call of a part gives: a node for a leaf, else what its `forward` gives."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of nodes; tensors and parts of the module are nodes."""
        if isinstance(a, Tensor):
            named = [*self.root.named_parameters(), *self.root.named_buffers(),
                     *((path, tensor) for tensor, path in self.tensor_attrs.items())]
            for path, tensor in named:
                if tensor is a:
                    return self.create_node("get_attr", path, (), {})
            if isinstance(a, nn.Parameter):
                raise NameError("parameter is not a member of this module")
            name = self.get_fresh_qualname("_tensor_constant")
            setattr(self.root, name, a)
            self.tensor_attrs[a] = name
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with this beginning that the module does not have yet."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | None = None
                             ) -> tuple[Callable[..., Any], list[Any]]:
        """The function, and a value for each of its parameters, by position.

        is_module: whether the first one is the module.
        concrete_args: values of parameters that are not traced.
        """
        function = inspect.unwrap(root_fn)
        code = function.__code__
        star = [("*", 0x04), ("**", 0x08)]
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        for sign, flag in star:
            if code.co_flags & flag:
                names.append(sign + code.co_varnames[len(names)])
        parameters = inspect.signature(function).parameters
        args: list[Any] = []
        fixed = 0
        for name in names:
            if is_module and not args:
                args.append(self.root)
                continue
            plain = name.lstrip("*")
            default = parameters[plain].default
            held = (concrete_args or {}).get(plain, inspect.Parameter.empty)
            given = (held if default is inspect.Parameter.empty else default,)
            if name != plain or given == (inspect.Parameter.empty,):
                given = ()
            if held is inspect.Parameter.empty:
                args.append(self.create_proxy("placeholder", name, given, {}, type_expr=(
                    function.__annotations__.get(plain))))
            else:
                args.append(held)
                fixed += 1
                self._hold(name, held, self.create_proxy("placeholder", f"{name}_{fixed}", given,
                                                         {}))
        if code.co_kwonlyargcount or code.co_flags & 0x0C:      # all of them by position
            root_fn = FunctionType(
                code.replace(co_argcount=len(names), co_posonlyargcount=0, co_kwonlyargcount=0,
                             co_flags=code.co_flags & ~0x0C),
                function.__globals__, function.__name__, None, function.__closure__)
        return root_fn, args

    def _hold(self, name: str, value: Any, proxy: Proxy) -> None:
        """Has the graph check that an argument is the value for which it was traced."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        elif isinstance(value, (bool, int, float, str)):
            self.create_proxy("call_function", tensorlib._assert, (proxy == value, message), {})
        else:
            warnings.warn(f"Was not able to add assertion to guarantee correct input {name} to "
                          "specialized function. It is up to the user to make sure that your "
                          "inputs match the inputs you specialized the function with.",
                          stacklevel=2)

    @contextmanager
    def _recording(self, names: dict[str, Any]) -> Iterator[None]:
        self._patches = Patches()
        token, usual = _tracer.set(self), nn.Module.__call__

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            tracer = _tracer.get()
            if tracer is None:                       # another thread's
                return usual(module, *args, **kwargs)
            forward = module.forward
            tracer._patches.record(getattr(forward, "__globals__", {}), tracer._recorded)
            return tracer.call_module(
                module, lambda *args, **kwargs: usual(module, *args, **kwargs), args, kwargs)

        nn.Module.__call__ = call  # type: ignore[method-assign]
        try:
            for (_, name), home in _wrapped.items():
                function = home.get(name, getattr(builtins, name, None))
                if function is not None:
                    self._patches.put(home, name, recorded(function))
            self._patches.record(names, self._recorded)
            for module in self._searched:
                self._patches.record(vars(module), self._recorded)
            with Recording():
                yield
        finally:
            nn.Module.__call__ = usual  # type: ignore[method-assign]
            self._patches.undo()
            _tracer.reset(token)

    def trace(self, root: nn.Module | Callable[..., Any],
              concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module, or of a function.

        concrete_args: values of parameters that are not traced.

        Raises: TraceError where the way of the code depends on a value.
        """
        function: Callable[..., Any]
        if isinstance(root, nn.Module):
            self.root, function = root, type(root).forward
            self.tensor_attrs = {
                value: f"{path}.{name}" if path else name
                for path, part in root.named_modules() for name, value in vars(part).items()
                if isinstance(value, Tensor)}
        else:
            self.root, function, self.tensor_attrs = nn.Module(), root, {}
        self.graph = Graph(tracer_cls=type(self))
        traced, args = self.create_args_for_root(function, isinstance(root, nn.Module),
                                                 concrete_args)
        with self._recording(getattr(inspect.unwrap(function), "__globals__", {})):
            result = self.create_arg(traced(*args))
        self.create_node("output", "output", (result,), {}, type_expr=getattr(
            function, "__annotations__", {}).get("return"))
        return self.graph


def symbolic_trace(root: nn.Module | Callable[..., Any],
                   concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module of which the code is what another one, or a function, does with its arguments.

    concrete_args: values of parameters that are not traced, by which code may go one way.

    Raises: TraceError where the way of the code depends on a value.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


explain(vars(), __all__)
