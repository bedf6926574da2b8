"""The autograd graph as a picture, as text for Graphviz, and as a summary in numbers.

>>> w = tensorlib.ones(3, requires_grad=True)
>>> loss = (w * w).sum()
>>> tensorlib.graph.summary(loss)
3 nodes, at most 3 in a row; 12 bytes saved
operation        nodes  bytes saved
accumulate_grad      1            0
mul                  1           24
sum                  1            0
"""

from typing import TYPE_CHECKING

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import deferred, on_first_use
from tensorlib._core.tensor.tensor import attach

if TYPE_CHECKING:
    from tensorlib.graph.graph_summary import Summary, summary
    from tensorlib.graph.picture import dot, draw

__all__ = ["Summary", "dot", "draw", "summary"]

__getattr__, __dir__ = on_first_use(__name__, {
    "Summary": "graph_summary", "summary": "graph_summary", "dot": "picture", "draw": "picture"})

explain(vars(), __all__)

attach("_repr_html_", deferred("tensorlib.graph.html", "tensor_html"))      # for notebooks
