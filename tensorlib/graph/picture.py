"""The picture of a graph: text for Graphviz, and what Graphviz makes of it."""

import importlib
import os
from collections import Counter, defaultdict
from collections.abc import Mapping

from tensorlib._core.graph.node import gradient_node
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.graph.traversal import (
    graph_inside, kept_by, name_of, nodes_below, nodes_inside, place_of, roots_of,
)

LEAF = "accumulate_grad"
MOST_ARROWS = 400         # of a picture in a notebook: Graphviz takes seconds for more
SHOWN_INPUTS = 4          # of an operation on more tensors, such as `cat`
TEXT_FORMATS = (".dot", ".gv")

HEAD = """digraph tensorlib {
  graph [rankdir=TB, nodesep=0.3, ranksep=0.35, fontname="Helvetica", fontsize=11];
  node [shape=box, style="rounded,filled", fillcolor="#eef3fb", color="#5b7db1",
        fontname="Helvetica", fontsize=11, margin="0.2,0.06"];
  edge [color="#5f6368", fontname="Helvetica", fontsize=9];"""
ROOT_STYLE = 'shape=box, style=filled, fillcolor="#fbe7d3", color="#b5763a"'
LEAF_STYLE = 'shape=box, style=filled, fillcolor="#dff0dc", color="#5a9152"'
SUM_STYLE = 'shape=circle, style=filled, fillcolor=white, color="#5f6368", margin=0'
PORT_STYLE = 'shape=box, style=filled, fillcolor=white, color="#8a7bb0"'
INSIDE_STYLE = 'labeljust=l, style="rounded,filled", fillcolor="#f5f2fa", color="#8a7bb0"'


def dot(tensors, params=None):
    """The graph of one or more tensors as text for Graphviz, in the direction of the gradients.

    A box for each operation says its inputs and outputs and what it saves; a leaf has the name that
    `params` (a mapping, pairs of names and tensors, or `locals()`) gives it, or its own. Gradients
    that fan in meet in a sum, and are its parts: `w@GRAD@RENAME@0`, `w@GRAD@RENAME@1`. A composed
    operation is drawn around the graph inside it, with its outputs and with its inputs, some of
    them captured.

    Raises: TypeError for something else than tensors, RuntimeError for one without a graph,
    ValueError for none.

    >>> w = tensorlib.ones(3, requires_grad=True)
    >>> print(*[line.strip() for line in dot(w.exp(), {"w": w}).splitlines() if "->" in line])
    root0 -> n0; n0 -> n1;
    """
    return Dot("\n".join([HEAD, *Picture(roots_of("dot", tensors), params).lines(), "}", ""]))


class Dot(str):
    """Text for Graphviz, which a notebook shows as the picture that it is of."""

    def _repr_svg_(self):
        """The picture, or None where Graphviz is missing or there is more than anybody would read.
        """
        if self.count("->") > MOST_ARROWS:
            return None
        try:
            return importlib.import_module("graphviz").Source(self).pipe("svg", encoding="utf-8")
        except (ImportError, OSError, RuntimeError):       # no package, or no program
            return None


def draw(tensors, path, params=None):
    """The path of a picture of the graph of one or more tensors, after it was written.

    What `dot` says is drawn in the format of the ending (.svg, .png, .pdf); .dot and .gv take the
    text itself, and need nothing. The others need the graphviz package (`pip install
    'tensorlib[graph]'`) and Graphviz's program `dot`.

    Raises: ImportError where the package is missing, its own error where the program is, ValueError
    for a path without an ending.
    """
    return write_picture("graph.draw", dot(tensors, params), path)


def write_picture(name, picture, path):
    """The path, after what DOT says was drawn there in the format of its ending, for `name`."""
    path = os.fspath(path)
    ending = os.path.splitext(path)[1]
    if not ending:
        raise ValueError(f"{name}: {path!r} needs an ending that names a format, such as .svg")
    if ending in TEXT_FORMATS:
        picture = picture.encode()
    else:
        try:
            graphviz = importlib.import_module("graphviz")
        except ImportError:
            raise ImportError(
                f"{name}: {ending} needs the graphviz package: pip install 'tensorlib[graph]'; "
                "or draw a .dot file, which needs nothing") from None
        picture = graphviz.Source(picture).pipe(format=ending[1:])
    with open(path, "wb") as file:
        file.write(picture)
    return path


# ---- names ---------------------------------------------------------------------------------------

def names_of(params):
    """The name of each (node, output) that a mapping, or pairs of names and tensors, names.

    What is not a tensor is passed over, so that `locals()` will do; mappings in it are looked into.
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
                    found.setdefault(place_of(x), f"{prefix}{name}")
            elif isinstance(x, Mapping) and not any(x is names for names in entered):
                stack.append((f"{prefix}{name}.", x))
    return found


def layout_text(dtype, shape):
    """A dtype and a shape as they stand in boxes."""
    return f"{dtype.name} {tuple(shape)}"


def quoted(text):
    """A string as DOT writes it, where `&lt;` and the like would be something else."""
    shown = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
                    for c in text)
    for character, written in (("\\", r"\\"), ('"', r"\""), ("\n", r"\n"), ("&", "&amp;")):
        shown = shown.replace(character, written)
    return f'"{shown}"'


# ---- the picture ---------------------------------------------------------------------------------

class Subgraph:
    """One graph of a picture: that of the roots, or the one inside a composed operation.

    A place is a node and the number of one of its outputs. `starts` are what sends gradients into
    the graph: their id, label and the tensor they belong to. `ends` are the places where they leave
    an inside graph, with the id and the name of each. `inner` are the subgraphs of the nodes that
    have a graph inside.
    """

    def __init__(self, starts, nodes, ends=()):
        self.starts = starts
        self.nodes = nodes
        self.ends = dict(ends)
        self.inner = {}
        self.outputs = defaultdict(dict)       # the layout of each output of a node that is used
        self.arriving = defaultdict(list)      # what sends gradients to each place


class Picture:
    """What `dot` writes about each subgraph, outer subgraphs first."""

    def __init__(self, roots, params):
        self.given = names_of(params)
        self.ids, self.names, self.numbers = {}, {}, Counter()
        starts = [(f"root{i}", self.given.get(place_of(x)) or numbered("output", i, roots), x)
                  for i, x in enumerate(roots)]
        self.subgraphs = [Subgraph(starts, nodes_below([gradient_node(x) for x in roots]))]
        for subgraph in self.subgraphs:        # which grows meanwhile
            self.number(subgraph)
            self.enter(subgraph)
            self.connect(subgraph)

    def number(self, subgraph):
        """Gives an id and a name to each node of a subgraph."""
        for node in subgraph.nodes:
            is_leaf = node.operation == LEAF
            kind = "leaf" if is_leaf else name_of(node)
            self.ids[node] = f"n{len(self.ids)}"
            self.names[node] = (is_leaf and node.variable.name) or f"{kind}_{self.numbers[kind]}"
            self.numbers[kind] += 1

    def enter(self, subgraph):
        """Records the subgraphs inside the nodes of a subgraph."""
        for node, edges in subgraph.nodes.items():
            inside = graph_inside(node)
            if inside is None:
                continue
            number, starts, ends = self.ids[node], [], []
            for k, x in enumerate(inside.outputs):
                if x is not None:
                    starts.append((f"{number}_out{k}", numbered("output", k, inside.outputs), x))
            for i, x in enumerate(inside.inputs):
                if x is not None:
                    captured = i >= len(inside.names)
                    name = self.name(subgraph, edges[i]) if captured else inside.names[i]
                    ends.append((place_of(x), (f"{number}_in{i}", name, captured, x)))
            subgraph.inner[node] = Subgraph(starts, nodes_inside(inside), ends)
            self.subgraphs.append(subgraph.inner[node])

    def connect(self, subgraph):
        """Notes which gradients arrive at each place of a subgraph."""
        for number, _, x in subgraph.starts:
            self.send(subgraph, number, place_of(x), (x.dtype, x.shape))
        for node, edges in subgraph.nodes.items():
            number = self.ids[node]
            for i, (place, layout) in enumerate(zip(edges, node.input_layouts)):
                if place[0] is not None:
                    source = f"{number}_in{i}" if node in subgraph.inner else number
                    self.send(subgraph, source, place, layout)

    def send(self, subgraph, source, place, layout):
        """Notes one gradient on its way to a place."""
        subgraph.outputs[place[0]][place[1]] = layout
        subgraph.arriving[place].append(source)

    def name(self, subgraph, place):
        """The name of an output: that of an input of the subgraph, one given, or a number."""
        if place in subgraph.ends:
            return subgraph.ends[place][1]
        node, slot = place
        return self.given.get(place) or self.names[node] + (f".{slot}" if slot else "")

    def lines(self):
        """The boxes, those of a composed operation in a box of its own, and then the arrows."""
        boxes = {}
        for subgraph in reversed(self.subgraphs):         # the inner ones before those around them
            boxes[subgraph] = list(self.boxes(subgraph, boxes))
        yield from boxes[self.subgraphs[0]]
        for subgraph in self.subgraphs:
            yield from self.arrows(subgraph)

    def boxes(self, subgraph, inner):
        """The boxes of a subgraph, those of the subgraphs in it from `inner`."""
        style = PORT_STYLE if subgraph.ends else ROOT_STYLE
        for number, name, x in subgraph.starts:
            yield box(number, f"{name}\n{layout_text(x.dtype, x.shape)}", style)
        for node in subgraph.nodes:
            number = self.ids[node]
            if node in subgraph.inner:
                yield f"  subgraph cluster_{number} {{"
                yield f"  graph [label={quoted(self.title(subgraph, node))}, {INSIDE_STYLE}];"
                yield from inner[subgraph.inner[node]]
                yield "  }"
            elif node.operation == LEAF:
                yield box(number, self.leaf(subgraph, node), LEAF_STYLE)
            else:
                yield box(number, self.operation(subgraph, node))
        for number, name, captured, x in subgraph.ends.values():
            text = f"{name}, captured" if captured else name
            yield box(number, f"{text}\n{layout_text(x.dtype, x.shape)}", PORT_STYLE)
        for place, sources in subgraph.arriving.items():
            if len(sources) > 1:
                yield box(self.sum_at(subgraph, place), "+", SUM_STYLE)

    def leaf(self, subgraph, node):
        """What stands in the box of a leaf."""
        x = node.variable
        return (f"{self.name(subgraph, (node, 0))}\n{layout_text(x.dtype, x.shape)}\n"
                f"leaf, {x.nbytes:,} B")

    def title(self, subgraph, node):
        """The name of an operation, and those given to its outputs."""
        names = [self.given[node, slot] for slot in sorted(subgraph.outputs[node])
                 if (node, slot) in self.given]
        return f"{', '.join(names)} = {name_of(node)}" if names else self.names[node]

    def operation(self, subgraph, node):
        """What stands in the box of an operation: its name, inputs and outputs, what it saves."""
        inputs = [layout_text(*layout) for layout in node.input_layouts]
        if len(inputs) > SHOWN_INPUTS:
            inputs[SHOWN_INPUTS - 1:] = [f"{len(inputs) - SHOWN_INPUTS + 1} more"]
        outputs = [layout_text(*layout) for _, layout in sorted(subgraph.outputs[node].items())]
        lines = [self.title(subgraph, node), f"{', '.join(inputs)} \u2192 {', '.join(outputs)}"]
        saved = [f"{'tensor ' if name.isdigit() else ''}{name} {sum(x.nbytes for x in kept):,} B"
                 for name, kept in kept_by(node).items()]
        if saved:
            lines.append(f"saves {', '.join(saved)}")
        return "\n".join(lines)

    def target(self, subgraph, place):
        """The id of the box that takes the gradient of a place."""
        node, slot = place
        if place in subgraph.ends:
            return subgraph.ends[place][0]
        return f"{self.ids[node]}_out{slot}" if node in subgraph.inner else self.ids[node]

    def sum_at(self, subgraph, place):
        """The id of the sum of the gradients of a place."""
        return f"sum_{self.target(subgraph, place)}_{place[1]}"

    def arrows(self, subgraph):
        """The gradients of each tensor: from one source, or by a sum of several.

        One from one source has its name where it is one of several that an operation takes.
        """
        for place, sources in subgraph.arriving.items():
            target, name = self.target(subgraph, place), f"{self.name(subgraph, place)}@GRAD"
            if len(sources) > 1:
                total = self.sum_at(subgraph, place)
                for i, source in enumerate(sources):
                    yield arrow(source, total, f"{name}@RENAME@{i}")
                yield arrow(total, target, name)
            elif len(subgraph.outputs[place[0]]) > 1 and target == self.ids.get(place[0]):
                yield arrow(sources[0], target, name)
            else:
                yield arrow(sources[0], target)


def numbered(name, i, several):
    """A name with the number of what it names, where there are several."""
    return f"{name} {i}" if len(several) > 1 else name


def box(number, text, style=None):
    """A box as DOT writes it."""
    return f"  {number} [label={quoted(text)}{f', {style}' if style else ''}];"


def arrow(source, target, text=None):
    """An arrow as DOT writes it."""
    return f"  {source} -> {target}{'' if text is None else f' [label={quoted(text)}]'};"
