"""Traversal of a graph by the public attributes of its nodes."""

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import listed
from tensorlib._core.graph.node import gradient_node
from tensorlib._core.index.keys import Index
from tensorlib._core.sweep.graph_reader import attributes
from tensorlib._core.sweep.python_nodes import payload_of
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.compose import InnerGraph


def roots_of(name, given):
    """The tensors at which a walk begins. Raises: TypeError, ValueError, RuntimeError."""
    if isinstance(given, Tensor):
        given = (given,)
    elif not isinstance(given, (tuple, list)):
        raise TypeError(f"graph.{name}: expected Tensors, got {type_name(given)}")
    tensors = listed(given)
    if not tensors:
        raise ValueError(f"graph.{name}: got no tensors")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"graph.{name}: expected Tensors, got {type_name(x)}")
        if not x.requires_grad:
            raise RuntimeError(f"graph.{name}: element {i} of tensors has no graph: "
                               "it does not require grad")
    return tensors


def place_of(x):
    """Where the gradient of a tensor goes: a node, and the number of one of its outputs."""
    return gradient_node(x), x.output_nr


def nodes_below(roots, border=frozenset()):
    """Every node of a graph and its `next_functions`, each before those that it leads to.

    The nodes of `border` are left out, and what lies beyond them. Iterative, as graphs may be
    millions of nodes deep: a node is finished when all below it are.
    """
    edges, finished = {}, []
    stack = [node for node in reversed(roots) if node not in border]
    while stack:
        node = stack.pop()
        if node is None:                   # a mark: the node under it is done
            finished.append(stack.pop())
        elif node not in edges:
            edges[node] = node.next_functions
            stack += (node, None)
            stack.extend(target for target, _ in edges[node]
                         if target is not None and target not in edges and target not in border)
    return {node: edges[node] for node in reversed(finished)}


def kept_by(node):
    """The names of what a node keeps, with the tensors of each: saved values, and positions."""
    kept = {name: (x,) for name, x in node.saved_values.items()}
    if isinstance(payload_of(node), dict):
        for name, value in attributes(node).items():
            tensors = value.tensors if isinstance(value, Index) else (value,)
            if tensors and isinstance(tensors[0], Tensor):
                kept[name] = tensors
    return kept


def graph_inside(node):
    """The graph in the node of a composed operation; None for other nodes, and once released."""
    payload = payload_of(node)
    return payload if isinstance(payload, InnerGraph) and payload.outputs is not None else None


def nodes_inside(inside):
    """The `nodes_below` the outputs of a graph inside a node, down to its inputs."""
    border = {gradient_node(x) for x in inside.inputs if x is not None}
    return nodes_below([gradient_node(x) for x in inside.outputs if x is not None], border)


def name_of(node):
    """The name of the operation that a node recorded, without that of a module."""
    return node.operation.rpartition(".")[2]
