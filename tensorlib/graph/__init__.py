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

from tensorlib.graph.figures import Summary, summary
from tensorlib.graph.picture import dot, draw

__all__ = ["Summary", "dot", "draw", "summary"]


def __dir__():
    return sorted(__all__)
