"""`summary`: counts of nodes, depth and saved bytes of a graph."""

import itertools
from collections import Counter

from tensorlib._core.graph.node import gradient_node
from tensorlib.graph.traversal import (
    graph_inside, kept_by, name_of, nodes_below, nodes_inside, roots_of,
)


class Summary:
    """What `summary` returns: its `nodes`, `by_operation`, `saved_bytes`, `depth`, as numbers.

    Memory that several operations keep, or one by several views, counts once in `saved_bytes`, and
    for each of these values in `saved_by_operation`.
    """

    def __init__(self, by_operation, saved_by_operation, saved_bytes, depth):
        self.nodes = sum(by_operation.values())
        self.by_operation = by_operation
        self.saved_by_operation = saved_by_operation
        self.saved_bytes = saved_bytes
        self.depth = depth

    def __repr__(self):
        rows = [("operation", "nodes", "bytes saved")] + [
            (name, f"{count:,}", f"{self.saved_by_operation[name]:,}")
            for name, count in sorted(self.by_operation.items(), key=lambda row: (-row[1], row[0]))]
        name, count, size = (max(map(len, column)) for column in zip(*rows))
        table = [f"{a:<{name}}  {b:>{count}}  {c:>{size}}" for a, b, c in rows]
        head = (f"{self.nodes:,} nodes, at most {self.depth:,} in a row; "
                f"{self.saved_bytes:,} bytes saved")
        return "\n".join([head, *table])


def summary(tensors):
    """The figures of the graph of one or more tensors: nodes by operation, saved bytes, depth.

    A composed operation (`ops.compose`) is a node, and so is every operation inside it: they count
    under their own names, and in the depth, the number of nodes on the longest way down, as if the
    way led through the composed operation's node and then through those inside.

    Raises: TypeError for something else than tensors, RuntimeError for one without a graph,
    ValueError for none.

    >>> w = tensorlib.ones(3, requires_grad=True)
    >>> figures = summary((w * w).sum())
    >>> figures.by_operation, figures.saved_bytes, figures.depth
    ({'sum': 1, 'mul': 1, 'accumulate_grad': 1}, 12, 3)
    """
    counts, saved, extents = Counter(), Counter(), []
    graphs = [nodes_below([gradient_node(x) for x in roots_of("summary", tensors)])]
    inner = {}                   # the number of the graph inside a node; greater than its own
    for nodes in graphs:         # which grows meanwhile
        for node in nodes:
            counts[name_of(node)] += 1
            for x in itertools.chain(*kept_by(node).values()):
                saved[name_of(node)] += x.nbytes
                extents.append(extent(x))
            inside = graph_inside(node)
            if inside is not None:
                inner[node] = len(graphs)
                graphs.append(nodes_inside(inside))
    depths = [0] * len(graphs)
    for i in reversed(range(len(graphs))):
        depths[i] = longest_way(
            graphs[i], lambda node: 1 + depths[inner[node]] if node in inner else 1)
    return Summary(dict(counts), saved, covered(extents), depths[0])


def longest_way(nodes, length):
    """The length of the longest way through nodes, given in order with their `next_functions`."""
    above, longest = {}, 0
    for node, below in nodes.items():
        here = above.get(node, 0) + length(node)
        longest = max(longest, here)
        for target, _ in below:
            if target is not None and above.get(target, 0) < here:
                above[target] = here
    return longest


def extent(x):
    """Where the elements of a tensor lie in memory: the first byte, and the one after the last."""
    ways = [(size - 1) * step for size, step in zip(x.shape, x.stride())] if x.numel() else []
    last = sum(way for way in ways if way > 0) + (x.numel() > 0)
    first = sum(way for way in ways if way < 0)
    start, size = x.data_ptr(), x.element_size()
    return start + first * size, start + last * size


def covered(extents):
    """How many bytes lie in one extent at least."""
    total, end = 0, 0
    for first, last in sorted(extents):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total
