"""Reading the text of pictures of graphs, and an operation to draw."""

import re

import tensorlib as tl
from tensorlib import graph
from tensorlib.graph.picture import HEAD

BOX = re.compile(r'  (\w+) \[label="((?:[^"\\]|\\.)*)".*\];')
ARROW = re.compile(r'  (\w+) -> (\w+)(?: \[label="((?:[^"\\]|\\.)*)"\])?;')
AROUND = re.compile(r"  subgraph cluster_(\w+) {")


class Twice(tl.autograd.Function):
    """Two outputs, and a tensor saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + 3 * h


def picture(tensors, params=None):
    """The boxes (by number) and arrows of a graph's text, which must be all that is there."""
    boxes, arrows, _ = everything(tensors, params)
    return boxes, arrows


def everything(tensors, params=None):
    """Beside those: for each box around others, what stands on it and the numbers in it."""
    text = graph.dot(tensors, params)
    assert text.startswith(HEAD + "\n") and text.endswith("\n}\n")
    boxes, arrows, around, entered = {}, [], {}, []
    for line in text[len(HEAD) + 1:-3].split("\n"):
        if found := AROUND.fullmatch(line):
            entered.append(found[1])
            around[found[1]] = ["", set()]
        elif line == "  }":
            entered.pop()
        elif found := BOX.fullmatch(line):
            if found[1] == "graph":
                around[entered[-1]][0] = found[2]
                continue
            assert found[1] not in boxes
            boxes[found[1]] = found[2].split("\\n")
            for number in entered:
                around[number][1].add(found[1])
        else:
            arrows.append(ARROW.fullmatch(line).groups(default=""))
    assert not entered
    assert {end for source, target, _ in arrows for end in (source, target)} <= set(boxes)
    return boxes, arrows, around


def box(boxes, first):
    """The number and the further lines of the box with this first line."""
    (found,) = [(number, label[1:]) for number, label in boxes.items()
                if label[0] == first and not number.startswith("root")]
    return found
