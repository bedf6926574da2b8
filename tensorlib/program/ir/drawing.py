"""The picture of a program: its calls in boxes, and the boxes of a block in one of its own."""

from collections.abc import Iterator
from typing import Any

from tensorlib.autograd.tree import flatten
from tensorlib.graph.picture import (
    HEAD,
    INSIDE_STYLE,
    LEAF_STYLE,
    PORT_STYLE,
    ROOT_STYLE,
    Dot,
    arrow,
    box,
    quoted,
    write_picture,
)
from tensorlib.program.ir.model import Block, OpCall, Variable, typed, variables_in
from tensorlib.program.ir.text import value_text

BACKWARD_STYLE = 'fillcolor="#fdf3e7", color="#b5763a"'
SHOWN = 60                   # characters of a call's attributes


def dot(program: Any) -> Dot:
    """A program as text for Graphviz, in the direction in which it runs.

    Boxes are calls, with what they write; those of a backward part have a colour of their own. The
    blocks of a call are boxes around its calls.
    """
    return Dot("\n".join([HEAD, *Picture(program).lines(), "}", ""]))


def draw(program: Any, path: Any) -> str:
    """The path of a picture of a program, after it was written; as `tensorlib.graph.draw`."""
    return write_picture("draw", dot(program), path)


class Picture:
    """The state of `dot` while it writes blocks."""

    def __init__(self, program: Any):
        self.program = program
        self.sources: dict[Variable, str] = {}       # the box in which a variable is written last
        self.count = 0
        self.arrows: list[str] = []

    def lines(self) -> Iterator[str]:
        """The boxes, then the arrows."""
        block = self.program.block
        for x in (*block.inputs, *self.program.persistables()):
            kind = "input" if not x.persistable else "parameter" if x.trainable else "constant"
            yield self.port(x, kind, LEAF_STYLE if x.trainable else PORT_STYLE)
        yield from self.block(block)
        for x in flatten(self.program.outputs)[0]:
            if type(x) is Variable:
                number = self.number()
                yield box(number, f"output {x.name}\n{typed(x)}", ROOT_STYLE)
                self.connect(x, number)
        yield from self.arrows

    def number(self) -> str:
        """The id of a new box."""
        self.count += 1
        return f"n{self.count}"

    def port(self, x: Variable, kind: str, style: str) -> str:
        """The box of a variable that no call writes."""
        self.sources[x] = self.number()
        return box(self.sources[x], f"{kind} {x.name}\n{typed(x)}", style)

    def connect(self, x: Variable, number: str) -> None:
        """Records that a box reads a variable."""
        if x in self.sources:
            self.arrows.append(arrow(self.sources[x], number))

    def block(self, block: Block) -> Iterator[str]:
        """The boxes of a block's calls."""
        for call in block.ops:
            number = self.number()
            for name, inner in call.attributes.items():
                if type(inner) is Block:
                    yield from self.inner(name, inner, number)
            yield box(number, self.title(call), BACKWARD_STYLE if is_backward(call) else None)
            for x in dict.fromkeys(variables_in((call.inputs, call.attributes))):
                self.connect(x, number)
            for x in call.writes():
                self.sources[x] = number

    def inner(self, name: str, block: Block, number: str) -> Iterator[str]:
        """A block of a call, in a box with its name, whose results go to the call."""
        back = "" if block.forward is None else f", backward of block {block.forward.index}"
        yield f"  subgraph cluster_{block.index} {{"
        yield (f"  graph [label={quoted(f'{name}: block {block.index}{back}')}, "
               f"{INSIDE_STYLE}];")
        for x in block.inputs:
            yield self.port(x, "each step's", PORT_STYLE)
        yield from self.block(block)
        yield "  }"
        for x in block.outputs:
            self.connect(x, number)

    def title(self, call: OpCall) -> str:
        """The text in the box of a call."""
        given = ", ".join(f"{name}={value_text(x)}" for name, x in call.attributes.items()
                          if type(x) is not Block and name != "likes")
        given = given if len(given) <= SHOWN else given[:SHOWN - 3] + "..."
        lines = [f"{call.type}({given})" if given else call.type]
        lines += [f"{x.name}: {typed(x)}" for x in call.writes()]
        return "\n".join(lines)


def is_backward(call: OpCall) -> bool:
    """Whether a call computes gradients."""
    return call.type.endswith("_gradient") or any("@GRAD" in x.name for x in call.writes())
