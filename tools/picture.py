"""Draws the graph that docs/design.md shows.

    python -m tools.picture          needs the graphviz package and Graphviz
"""

from pathlib import Path

import tensorlib as tl

PATH = Path(__file__).parents[1] / "docs" / "graph.svg"


def loss_and_names():
    """The loss of one layer, a composed operation, with a weight decay; the names of its parts."""
    dense = tl.ops.compose("dense", lambda x, w, b: (x @ w + b).tanh())
    x = tl.ones(8, 4)
    w = tl.full((4, 3), 0.1, requires_grad=True)
    b = tl.zeros(3, requires_grad=True)
    h = dense(x, w, b)
    loss = (1 - h).square().mean() + 0.01 * w.square().sum()
    return loss, {"w": w, "b": b, "h": h, "loss": loss}


if __name__ == "__main__":
    loss, names = loss_and_names()
    print(tl.graph.draw(loss, PATH, names))
