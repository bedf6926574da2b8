"""Looking at a graph: its picture, its text for Graphviz, its figures.

>>> w = tensorlib.ones(3, requires_grad=True)
>>> loss = (w * w).sum()
>>> tensorlib.graph.summary(loss)
3 nodes, at most 3 in a row; 12 bytes saved
operation        nodes  bytes saved
accumulate_grad      1            0
mul                  1           24
sum                  1            0
"""

import importlib
import os
from collections import Counter
from collections.abc import Mapping

from tensorlib._core.node import gradient_node
from tensorlib._core.tensor import Tensor

__all__ = ["Summary", "dot", "draw", "summary"]

LEAF = "accumulate_grad"
SHOWN_INPUTS = 4          # of an operation on more tensors, such as `cat`
TEXT_FORMATS = (".dot", ".gv")


# ---- going through a graph -----------------------------------------------------------------------

def roots_of(name, given):
    """The tensors that a graph is looked at from. Raises: TypeError, ValueError, RuntimeError."""
    if isinstance(given, Tensor):
        given = (given,)
    elif not isinstance(given, (tuple, list)):
        raise TypeError(f"graph.{name}: expected Tensors, got {type(given).__name__}")
    tensors = tuple(given)
    if not tensors:
        raise ValueError(f"graph.{name}: got no tensors")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"graph.{name}: expected Tensors, got {type(x).__name__}")
        if not x.requires_grad:
            raise RuntimeError(f"graph.{name}: element {i} of tensors has no graph: "
                               "it does not require grad")
    return tensors


def nodes_below(tensors):
    """Every node of a graph and its `next_functions`, each before those that it leads to.

    Iterative, as graphs may be millions of nodes deep: nodes are noted when all below them are.
    """
    edges, finished = {}, []
    stack = [gradient_node(x) for x in reversed(tensors)]
    while stack:
        node = stack.pop()
        if node is None:                   # a mark: the node under it is done
            finished.append(stack.pop())
        elif node not in edges:
            edges[node] = node.next_functions
            stack += (node, None)
            stack.extend(target for target, _ in edges[node]
                         if target is not None and target not in edges)
    return {node: edges[node] for node in reversed(finished)}


# ---- figures -------------------------------------------------------------------------------------

class Summary:
    """What `summary` returns: its `nodes`, `by_operation`, `saved_bytes`, `depth`, as numbers.

    Values that several operations keep count once in `saved_bytes`, and for each in
    `saved_by_operation`.
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

    Raises: TypeError for something else than tensors, RuntimeError for one without a graph.
    """
    counts, saved, distinct, depth = Counter(), Counter(), {}, {}
    edges = nodes_below(roots_of("summary", tensors))
    for node, below in edges.items():
        name = node.operation
        counts[name] += 1
        here = depth.setdefault(node, 1) + 1
        for target, _ in below:
            if target is not None and depth.get(target, 0) < here:
                depth[target] = here
        for x in node.saved_values.values():
            saved[name] += x.nbytes
            distinct[x.data_ptr(), tuple(x.shape), x.stride()] = x.nbytes
    return Summary(dict(counts), saved, sum(distinct.values()), max(depth.values()))


# ---- names ---------------------------------------------------------------------------------------

def names_of(params):
    """The name of each (node, output) that a mapping, or pairs of names and tensors, names.

    What is no tensor is passed over, so that `locals()` will do; mappings in it are looked into.
    """
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        try:
            params = dict(params)
        except (TypeError, ValueError):
            raise TypeError("graph: params must be a mapping from names to tensors, or pairs of "
                            f"them, not {type(params).__name__}") from None
    found, entered = {}, []
    stack = [("", params)]
    while stack:
        prefix, names = stack.pop()
        entered.append(names)
        for name, x in names.items():
            if isinstance(x, Tensor):
                if x.requires_grad:
                    found.setdefault((gradient_node(x), x.output_nr), f"{prefix}{name}")
            elif isinstance(x, Mapping) and not any(x is names for names in entered):
                stack.append((f"{prefix}{name}.", x))
    return found


# ---- the picture ---------------------------------------------------------------------------------

HEAD = """digraph tensorlib {
  graph [rankdir=TB, nodesep=0.3, ranksep=0.35];
  node [shape=box, style="rounded,filled", fillcolor="#eef3fb", color="#5b7db1",
        fontname="Helvetica", fontsize=11, margin="0.12,0.06"];
  edge [color="#5f6368", fontname="Helvetica", fontsize=9];"""
ROOT_STYLE = 'shape=box, style=filled, fillcolor="#fbe7d3", color="#b5763a"'
LEAF_STYLE = 'shape=box, style=filled, fillcolor="#dff0dc", color="#5a9152"'
SUM_STYLE = 'shape=circle, style=filled, fillcolor=white, color="#5f6368", margin=0'


def dot(tensors, params=None):
    """The graph of one or more tensors as text for Graphviz, in the direction of the gradients.

    A box for each operation says its inputs and outputs and what it saves; a leaf has the name that
    `params` (a mapping, pairs of names and tensors, or `locals()`) gives it. Gradients that fan in
    meet in a sum, and are its parts: `w@GRAD@RENAME@0`, `w@GRAD@RENAME@1`.

    Raises: TypeError for something else than tensors, RuntimeError for one without a graph.
    """
    return "\n".join([HEAD, *Picture(roots_of("dot", tensors), params).lines(), "}", ""])


class Picture:
    """What `dot` writes about each node. A place is a node and the number of one of its outputs."""

    def __init__(self, roots, params):
        self.roots = roots
        self.edges = nodes_below(roots)
        self.given = names_of(params)
        self.ids = {node: f"n{i}" for i, node in enumerate(self.edges)}
        self.outputs = {node: {} for node in self.edges}     # the layout of each that is used
        self.arriving = {}                                   # what sends gradients to each place
        for i, x in enumerate(roots):
            self.send(f"root{i}", gradient_node(x), x.output_nr, (x.dtype, x.shape))
        for node, below in self.edges.items():
            for (target, slot), layout in zip(below, node.input_layouts):
                if target is not None:
                    self.send(self.ids[node], target, slot, layout)
        seen = Counter()
        self.names = {}
        for node in self.edges:
            kind = "leaf" if node.operation == LEAF else node.operation
            self.names[node] = f"{kind}_{seen[kind]}"
            seen[kind] += 1

    def send(self, source, target, slot, layout):
        """Notes that `source` sends a gradient to output `slot` of a node."""
        self.outputs[target][slot] = layout
        self.arriving.setdefault((target, slot), []).append(source)

    def name(self, place):
        """The name that was given to an output; else the operation's with a number."""
        node, slot = place
        return self.given.get(place) or self.names[node] + (f".{slot}" if slot else "")

    def lines(self):
        """The boxes and the arrows."""
        for i, x in enumerate(self.roots):
            name = self.given.get((gradient_node(x), x.output_nr), "output")
            text = f"{name}\n{layout_text(x.dtype, x.shape)}"
            yield f"  root{i} [label={quoted(text)}, {ROOT_STYLE}];"
        for node, number in self.ids.items():
            if node.operation == LEAF:
                yield f"  {number} [label={quoted(self.leaf(node))}, {LEAF_STYLE}];"
            else:
                yield f"  {number} [label={quoted(self.operation(node))}];"
        for i, (place, sources) in enumerate(self.arriving.items()):
            yield from self.gradient(f"sum{i}", place, sources)

    def leaf(self, node):
        """What stands in the box of a leaf."""
        x = node.variable
        return f"{self.name((node, 0))}\n{layout_text(x.dtype, x.shape)}\nleaf, {x.nbytes:,} B"

    def operation(self, node):
        """What stands in the box of an operation: its name, inputs and outputs, what it saves."""
        names = [self.given[node, slot] for slot in sorted(self.outputs[node])
                 if (node, slot) in self.given]
        inputs = [layout_text(*layout) for layout in node.input_layouts]
        if len(inputs) > SHOWN_INPUTS:
            inputs[SHOWN_INPUTS - 1:] = [f"{len(inputs) - SHOWN_INPUTS + 1} more"]
        outputs = [layout_text(*layout) for _, layout in sorted(self.outputs[node].items())]
        lines = [f"{', '.join(names)} = {node.operation}" if names else self.names[node],
                 f"{', '.join(inputs)} \u2192 {', '.join(outputs)}"]
        saved = node.saved_values
        if saved:
            lines.append("saves " + ", ".join(f"{k} {x.nbytes:,} B" for k, x in saved.items()))
        return "\n".join(lines)

    def gradient(self, number, place, sources):
        """The arrows of the gradients of one tensor: from one source, or by a sum of several."""
        target, name = self.ids[place[0]], f"{self.name(place)}@GRAD"
        if len(sources) == 1:
            yield f"  {sources[0]} -> {target};"
            return
        yield f'  {number} [label="+", {SUM_STYLE}];'
        for i, source in enumerate(sources):
            yield f"  {source} -> {number} [label={quoted(f'{name}@RENAME@{i}')}];"
        yield f"  {number} -> {target} [label={quoted(name)}];"


def layout_text(dtype, shape):
    """A dtype and a shape as they are drawn."""
    return f"{dtype.name} {tuple(shape)}"


def quoted(text):
    """A string as DOT writes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def draw(tensors, path, params=None):
    """The path of a picture of the graph of one or more tensors, after it was written.

    What `dot` says is drawn in the format of the ending (.svg, .png, .pdf); .dot and .gv take the
    text itself, and need nothing. The others need the graphviz package (`pip install
    'tensorlib[graph]'`) and Graphviz's program `dot`.

    Raises: ImportError where the package is missing, its own error where the program is, ValueError
    for a path without an ending.
    """
    path = os.fspath(path)
    ending = os.path.splitext(path)[1]
    if not ending:
        raise ValueError(f"graph.draw: {path!r} needs an ending that names a format, such as .svg")
    picture = dot(tensors, params)
    if ending in TEXT_FORMATS:
        picture = picture.encode()
    else:
        try:
            graphviz = importlib.import_module("graphviz")
        except ImportError:
            raise ImportError(
                f"graph.draw: {ending} needs the graphviz package: pip install 'tensorlib[graph]'; "
                "or draw a .dot file, which needs nothing") from None
        picture = graphviz.Source(picture).pipe(format=ending[1:])
    with open(path, "wb") as file:
        file.write(picture)
    return path
