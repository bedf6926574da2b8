"""Values that stand for the results of nodes while a function is traced.

What is done with a `Proxy` is recorded by its tracer, and gives a further one.

>>> graph = tensorlib.fx.Graph()
>>> x = tensorlib.fx.Proxy(graph.placeholder("x"))
>>> (tensorlib.relu(x) + 1).node.args
(relu, 1)
"""

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorlib
from tensorlib import Tensor
from tensorlib._core.base.explained import explain
from tensorlib.overrides import TorchFunctionMode

from .code import OPERATORS, SIGNS
from .graph import Graph
from .node import Argument, Node, Target, base_types

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """What a traced function does that depends on values, which are not there yet."""


class TracerBase:
    """What records: it makes the nodes, and says what may be an argument of one."""

    graph: Graph
    record_stack_traces = False
    proxy_buffer_attributes = False

    def create_node(self, kind: str, target: Target, args: tuple[Argument, ...],
                    kwargs: dict[str, Argument], name: str | None = None,
                    type_expr: Any = None) -> Node:
        """A new node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> "Proxy":
        """The value that stands for a node's result."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...],
                     kwargs: dict[str, Any], name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], "Proxy"] | None = None) -> "Proxy":
        """Records an operation: makes the node, with the arguments that `create_arg` gives.

        proxy_factory_fn: makes the value for the node, instead of `proxy`.
        """
        given = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, *given, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of nodes. Raises: NotImplementedError for unknown types."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            parts = [self.create_arg(part) for part in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(part) for part in a]
        if isinstance(a, dict):
            for key in a:
                if isinstance(key, Proxy):
                    raise RuntimeError("Keys for dictionaries used as an argument cannot contain a "
                                       f"Node. Got key: {key.node}")
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if isinstance(a, base_types) or a is None or a is ... or isinstance(a, type):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: "Proxy") -> bool:
        """The truth of a value, by which code goes one way or another. Raises: TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: "Proxy") -> Iterator[Any]:
        """What a loop over the value goes through. Raises: TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors")

    def keys(self, obj: "Proxy") -> Any:
        """The keys of a value that is given as `**value`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Records at the end of a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """The result of a node, which there is when the graph runs.

    tracer: what records; without one, nodes go to the end of the node's graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> "Attribute":
        if k in ("node", "tracer"):               # of a copy that is being made
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        for step in dis.get_instructions(frame.f_code):
            if step.offset == frame.f_lasti and step.opname == "UNPACK_SEQUENCE":
                return (self[i] for i in range(step.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope")

    def __contains__(self, item: Any) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys, for `**value`."""
        return self.tracer.keys(self)

    def __abs__(self) -> "Proxy":
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        proxy = found((args, kwargs))
        return NotImplemented if proxy is None else record(proxy.tracer, func, args, kwargs or {})


class Attribute(Proxy):
    """An attribute of a value; as a method that is called it needs no node of its own."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node for the attribute, which is made when it is used."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def found(values: Any) -> Proxy | None:
    """The first `Proxy` in nested values."""
    if isinstance(values, Proxy):
        return values
    if isinstance(values, slice):
        values = (values.start, values.stop, values.step)
    parts = values.values() if isinstance(values, dict) else values
    if isinstance(values, (tuple, list, dict)):
        for part in parts:
            proxy = found(part)
            if proxy is not None:
                return proxy
    return None


def record(tracer: TracerBase, function: Any, args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Proxy:
    """The result of a function of the library; one that only Tensor has is a method's."""
    name = function.__name__
    if function is getattr(Tensor, name, None) and function is not getattr(tensorlib, name, None):
        return tracer.create_proxy("call_method", name, args, kwargs)
    return tracer.create_proxy("call_function", function, args, kwargs)


class Recording(TorchFunctionMode):
    """Has functions recorded that get a traced value, be it as a size."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        proxy = found((args, kwargs))
        if proxy is None:
            return func(*args, **(kwargs or {}))
        return record(proxy.tracer, func, args, kwargs or {})


def _recorded(name: str, reflected: bool) -> Callable[..., Proxy]:
    function = getattr(operator, name)

    def method(self: Proxy, *args: Any) -> Proxy:
        given = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", function, given, {})
    return method


for _name in OPERATORS:
    setattr(Proxy, f"__{_name.rstrip('_')}__", _recorded(_name, False))
for _name in SIGNS:
    setattr(Proxy, f"__r{_name.rstrip('_')}__", _recorded(_name, True))

explain(vars(), __all__)
