"""Runs a graph node by node, for classes that look at the values or change them.

>>> traced = tensorlib.fx.symbolic_trace(lambda x: tensorlib.relu(x) * 2)
>>> tensorlib.fx.Interpreter(traced).run(tensorlib.tensor([-1.0, 2.0]))
tensor([0., 4.])
"""

from collections.abc import Iterator
from typing import Any

from tensorlib import nn
from tensorlib._core.base.explained import explain

from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy
from ._symbolic_trace import Tracer

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the nodes in their order; its methods are what subclasses do otherwise.

    garbage_collect_values: whether values are freed after their last use.
    graph: another graph than the module's.
    """

    def __init__(self, module: nn.Module, garbage_collect_values: bool = True,
                 graph: Graph | None = None) -> None:
        self.module, self.submodules = module, dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph  # type: ignore[assignment]
        self.env: dict[Node, Any] = {}
        self.name, self.garbage_collect_values = "Interpreter", garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = self.graph.last_uses()

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None,
            enable_io_processing: bool = True) -> Any:
        """What the graph gives for these arguments.

        initial_env: values of nodes that are not to run.
        enable_io_processing: changes nothing; graphs take their arguments as they are.
        """
        self.env = {} if initial_env is None else initial_env
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}")
                raise
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, []):
                    del self.env[used]
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """What the graph gives for the arguments in a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """What a node gives, by the method for its `op`."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...],
                    kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default. Raises: RuntimeError if there is none."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was "
                               "not passed in!") from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A value of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...],
                      kwargs: dict[str, Any]) -> Any:
        """What a function gives."""
        if isinstance(target, str):
            raise AssertionError(f"target should not be a str, got {target}")
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...],
                    kwargs: dict[str, Any]) -> Any:
        """What a method of the first argument gives."""
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...],
                    kwargs: dict[str, Any]) -> Any:
        """What a part of the module gives."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """A value of the module at a path. Raises: RuntimeError for one that is not there."""
        place: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(place, part):
                raise RuntimeError("Node referenced nonexistent target "
                                   f"{'.'.join(parts[:i + 1])}")
            place = getattr(place, part)
        return place

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, dict[str, Any]]:
        """The arguments of a node, with the values of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Arguments with the values of nodes in their places."""
        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run "
                                   "Graph.lint() to diagnose such issues")
            return self.env[node]
        return map_arg(args, value)


class Transformer(Interpreter):
    """Makes a new graph from what its methods give for the nodes of another."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()

        class Following(Tracer):
            def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = Following()
        self.tracer.graph, self.tracer.root = self.new_graph, module

    def placeholder(self, target: Target, args: tuple[Argument, ...],
                    kwargs: dict[str, Any]) -> Any:
        """The argument, in the new graph."""
        return Proxy(self.new_graph.placeholder(str(target), None, *args[:1]), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The value of the module, in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...],
                    kwargs: dict[str, Any]) -> Any:
        """The part's call, in the new graph."""
        return self.tracer.call_module(self.fetch_attr(str(target)), lambda *args: None, args,
                                       kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...],
                      kwargs: dict[str, Any]) -> Any:
        """The function's call, in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = super().run()
        self.new_graph.output(map_aggregate(
            result, lambda x: x.node if isinstance(x, Proxy) else x))
        return GraphModule(self.module, self.new_graph)


explain(vars(), __all__)
