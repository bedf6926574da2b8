"""Replaces what looks like one graph by another, wherever it is in a module's graph."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorlib._core.base.explained import explain

from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node
from ._symbolic_trace import symbolic_trace

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A place that was replaced: its last node, and the nodes there for those of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


def same(pattern: Argument, found: Argument, nodes: dict[Node, Node]) -> bool:
    """Whether an argument is like the pattern's; adds the nodes that are alike."""
    if isinstance(pattern, Node):
        if not isinstance(found, Node):
            return False
        if pattern in nodes:
            return nodes[pattern] is found
        nodes[pattern] = found
        return pattern.op == "placeholder" or (
            pattern.op == found.op and pattern.target == found.target
            and same(pattern.args, found.args, nodes)
            and same(pattern.kwargs, found.kwargs, nodes))
    if isinstance(pattern, (tuple, list)):
        return isinstance(found, (tuple, list)) and len(pattern) == len(found) and all(
            same(a, b, nodes) for a, b in zip(pattern, found, strict=True))
    if isinstance(pattern, dict):
        return isinstance(found, dict) and pattern.keys() == found.keys() and all(
            same(pattern[key], found[key], nodes) for key in pattern)
    if isinstance(pattern, slice):
        return isinstance(found, slice) and same(
            (pattern.start, pattern.stop, pattern.step), (found.start, found.stop, found.step),
            nodes)
    return type(pattern) is type(found) and bool(pattern == found)


def matches(graph: Graph, pattern: Graph) -> list[Match]:
    """The places in a graph that are like a pattern, the last first, none of which share a node."""
    result = pattern.output_node().args[0]
    outputs = [result] if isinstance(result, Node) else list(result)
    taken: set[Node] = set()
    places = []
    for node in reversed(graph.nodes):
        nodes: dict[Node, Node] = {}
        if not same(outputs[0], node, nodes) or not all(
                out in nodes for out in outputs):
            continue
        inside = {there for there in pattern.nodes if there.op not in ("placeholder", "output")}
        own = {nodes[there] for there in inside if there in nodes}
        hidden = [nodes[there] for there in inside if there in nodes and there not in outputs]
        if own & taken or any(user not in own for there in hidden for user in there.users):
            continue
        taken |= own
        places.append(Match(node, nodes))
    return places


def replace_pattern(gm: GraphModule, pattern: Callable[..., Any] | GraphModule,
                    replacement: Callable[..., Any] | GraphModule) -> list[Match]:
    """Replaces calls that are like those of `pattern`, and says where they were.

    gm: the module of which the graph is changed.
    pattern, replacement: functions of the same arguments, or modules of graphs.
    """
    def graph_of(given: Any) -> Graph:
        return given.graph if isinstance(given, GraphModule) else symbolic_trace(given).graph

    old, new = graph_of(pattern), graph_of(replacement)
    inputs = [[node for node in graph.nodes if node.op == "placeholder"] for graph in (old, new)]
    places = matches(gm.graph, old)
    replaced: dict[Node, Node] = {}
    for place in places[::-1]:
        values = {there: replaced.get(place.nodes_map[here], place.nodes_map[here])
                  for here, there in zip(*inputs, strict=True)}
        outputs = old.output_node().args[0]
        before = [outputs] if isinstance(outputs, Node) else list(outputs)
        users = {user for there in before for user in place.nodes_map[there].users}
        first = next((node for node in gm.graph.nodes if node in users), place.anchor.next)
        with gm.graph.inserting_before(first):
            result = gm.graph.graph_copy(new, values)
        after = [result] if isinstance(result, Node) else list(result)
        for there, node in zip(before, after, strict=True):
            place.nodes_map[there].replace_all_uses_with(node)
            replaced[place.nodes_map[there]] = node
        for there in reversed(old.nodes):
            if there.op not in ("placeholder", "output"):
                gm.graph.erase_node(place.nodes_map[there])
    gm.recompile()
    return places[::-1]


explain(vars(), __all__)
