"""Graphs of calls: lists of nodes, which are changed in place and written as Python's code.

>>> graph = tensorlib.fx.Graph()
>>> x = graph.placeholder("x")
>>> _ = graph.output(graph.call_function(tensorlib.relu, (x,)))
>>> print(graph)
graph():
    %x : [num_users=1] = placeholder[target=x]
    %relu : [num_users=1] = call_function[target=tensorlib.relu](args = (%x,), kwargs = {})
    return relu
"""

import builtins
import copy
import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from tensorlib import nn
from tensorlib._core.base.explained import explain

from .code import PythonCode, written
from .node import Argument, Node, Target, map_aggregate, map_arg

__all__ = ["Graph", "PythonCode"]

NUMBERED = re.compile(r"(.*)_(\d+)$")
RESERVED = {"inf", "nan", "NoneType", "torch", "tensorlib", "device"}


class Names:
    """Names that were given, so that each is given once: relu, relu_1, relu_2."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.last: dict[str, int] = {}

    def new(self, candidate: str) -> str:
        """The candidate, or the next number of it, as a name of Python's."""
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = NUMBERED.match(candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, 0)
        number = number or self.last.get(base, 0)
        while candidate in self.used or self.refused(candidate):
            number += 1
            candidate = f"{base}_{number}"
        self.used.add(candidate)
        self.last[base] = number
        return candidate

    @staticmethod
    def refused(name: str) -> bool:
        """Whether code could not use the name for a value of its own."""
        return keyword.iskeyword(name) or hasattr(builtins, name) or name in RESERVED


def snake_case(name: str) -> str:
    """The name in lower case, with _ before what was a capital letter."""
    parts = [f"_{c.lower()}" if c.isupper() and i and not name[i - 1].isupper()
             and name[i - 1] != "_" else c.lower() for i, c in enumerate(name)]
    return "".join(parts)


class NodeList:
    """The nodes of a graph in order; nodes may be added and erased while one goes through them."""

    def __init__(self, graph: "Graph", backwards: bool = False) -> None:
        self.graph, self.backwards = graph, backwards

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = root._prev if self.backwards else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if self.backwards else node._next

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self.graph, not self.backwards))


class Place(AbstractContextManager[None]):
    """Where new nodes go: from when it is made, until the end of a `with`."""

    def __init__(self, graph: "Graph", insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __exit__(self, *args: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """A list of nodes: arguments, then calls, then one output.

    owning_module: the module of which the attributes are.
    """

    def __init__(self, owning_module: nn.Module | None = None, tracer_cls: Any = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._tracer_extras = tracer_extras
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._names = Names()

    @property
    def nodes(self) -> NodeList:
        """The nodes in the order in which they run."""
        return NodeList(self)

    def create_node(self, op: str, target: Target, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """A new node, before the end or where `inserting_before` says.

        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        name: what the node is called, with a number if there is one of this name.
        type_expr: the type of its result, for the code.
        """
        if name is None:
            named = target if isinstance(target, str) else target.__name__
            if isinstance(target, str) and named.startswith("__") and named.endswith("__"):
                named = named[2:-2]
            name = snake_case(named)
        node = Node(self, self._names.new(name), op, target, () if args is None else args,
                    {} if kwargs is None else kwargs, type_expr)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, *default_value: Any) -> Node:
        """A node for an argument of the function; `*args` and `**kwargs` are names, too."""
        return self.create_node("placeholder", name, default_value, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A node for a value of the module, such as "layers.0.weight"."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any],
                      args: tuple[Argument, ...] | None = None,
                      kwargs: dict[str, Argument] | None = None, type_expr: Any = None,
                      name: str | None = None) -> Node:
        """A node for a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """A node for a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """A node for a call of a part of the module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The node for what the graph gives, in which nodes may be nested."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """The node for what the graph gives, which is the last one."""
        node = self._root._prev
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op {node.op}")
        return node

    def last_uses(self) -> dict[Node, list[Node]]:
        """For each node, the nodes of which it is the last user."""
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.nodes):
            unseen = [used for used in node.all_input_nodes if used not in seen]
            seen.update(unseen)
            last[node] = unseen
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, of any target or of one, in their order."""
        return [node for node in self.nodes
                if node.op == op and (target is None or node.target == target)]

    def inserting_before(self, n: Node | None = None) -> Place:
        """In a `with`, or from now on: new nodes go before `n`, or to the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        self._own(n)
        return Place(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> Place:
        """In a `with`, or from now on: new nodes go after `n`, or to the end."""
        if n is None:
            return self.inserting_before(self._root)
        self._own(n)
        last = n

        def insert(node: Node) -> None:
            nonlocal last
            last.append(node)
            last = node

        return Place(self, insert)

    def _own(self, node: Node) -> None:
        if node.graph is not self:
            raise AssertionError("Node to insert before/after is not in graph.")

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node that nobody uses out of the graph. Raises: RuntimeError for another."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had "
                               f"{len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if not to_erase._erased:
            to_erase._unlink()
            to_erase._erased = True
            to_erase._take((), {})

    def node_copy(self, node: Node,
                  arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """A copy of another graph's node.

        arg_transform: the node here for one there.
        """
        copied = self.create_node(node.op, node.target, map_arg(node.args, arg_transform),
                                  map_arg(node.kwargs, arg_transform), node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: "Graph", val_map: dict[Node, Node],
                   return_output_node: bool = False) -> Any:
        """Copies the nodes of another graph, and gives what that one gives.

        val_map: nodes here for nodes there; those that are in it are not copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Graph":
        graph = Graph(tracer_cls=self._tracer_cls)
        nodes: dict[Node, Node] = {}
        output = graph.graph_copy(self, nodes, return_output_node=True)
        if output is not None:
            graph.output(output[0], output[1].type).meta = copy.copy(output[1].meta)
        return graph

    def __reduce__(self) -> Any:
        index = {node: i for i, node in enumerate(self.nodes)}
        steps = [(node.op, node.target, map_arg(node.args, lambda n: Reference(index[n])),
                  map_arg(node.kwargs, lambda n: Reference(index[n])), node.name, node.type)
                 for node in self.nodes]
        return from_steps, (steps,)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Whether there were nodes of which nobody uses the result; they are erased.

        is_impure_node: whether a node has an effect of its own and stays.
        """
        impure, changed = is_impure_node or Node.is_impure, False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Checks that names are there once, arguments before their uses, and targets in the module.

        Raises: RuntimeError, ValueError.
        """
        seen: set[Node] = set()
        names: set[str] = set()

        def check(arg: Node) -> Node:
            if arg.graph is not self:
                raise RuntimeError(f"Argument '{arg}' of Node '{node}' does not belong to this "
                                   "Graph, but was used as an argument!")
            if arg not in seen:
                raise RuntimeError(f"Argument '{arg}' of Node '{node}' was used before it has been "
                                   "defined! Please check that Nodes in the graph are "
                                   f"topologically ordered\n{self}")
            return arg

        for node in self.nodes:
            if node.op not in ("placeholder", "call_method", "call_module", "call_function",
                               "get_attr", "output"):
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            map_arg((node.args, node.kwargs), check)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                place: Any = self.owning_module
                for part in node.target.split("."):  # type: ignore[union-attr]
                    if not hasattr(place, part):
                        raise RuntimeError(f"Node {node} target {node.target} references "
                                           f"nonexistent attribute {part} of {node.target}")
                    place = getattr(place, part)

    def python_code(self, root_module: str, *, verbose: bool = False) -> PythonCode:
        """The code of a function `forward`, and the values that it names.

        root_module: the name of the module in the code, "self".
        """
        return written(self, root_module)

    def print_tabular(self) -> None:
        """Prints a row for each node."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[node.op, node.name, str(node.target), str(node.args), str(node.kwargs)]
                 for node in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, ["-" * width for width in widths])
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            print("  ".join(cells).rstrip())

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "\n    ".join(["graph():", *filter(None, lines)])


class Reference(int):
    """A node in the arguments of a pickled graph, by its number."""


def from_steps(steps: list[tuple[Any, ...]]) -> Graph:
    """The graph of the nodes that were pickled."""
    graph, nodes = Graph(), []

    def node_of(arg: Argument) -> Argument:
        return nodes[arg] if isinstance(arg, Reference) else arg

    for op, target, args, kwargs, name, kind in steps:
        nodes.append(graph.create_node(op, target, map_aggregate(args, node_of),
                                       map_aggregate(kwargs, node_of), name, kind))
    return graph


explain(vars(), __all__)
