"""Graphs of the Python calls that a module makes, under the names of `torch.fx`.

`tensorlib.fx` is this package. `symbolic_trace` runs a module with values that record what is done
with them. The nodes of the graph may be changed, and `GraphModule` runs them as Python's code. The
other programs of `tensorlib.program` have the operations of a function, which know their shapes.

>>> def f(x):
...     return tensorlib.relu(x) + 1
>>> traced = tensorlib.fx.symbolic_trace(f)
>>> [node.name for node in traced.graph.nodes]
['x', 'relu', 'add', 'output']
>>> traced(tensorlib.tensor([-1.0, 2.0]))
tensor([1., 3.])
"""

from tensorlib._core.base.importing import parts_of

from . import _symbolic_trace as _symbolic_trace
from . import graph as graph
from . import graph_module as graph_module
from . import interpreter as interpreter
from . import node as node
from . import passes as passes
from . import proxy as proxy
from . import subgraph_rewriter as subgraph_rewriter
from .graph import Graph as Graph
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .graph_module import GraphModule as GraphModule
from .node import Node as Node
from .node import has_side_effect as has_side_effect
from .node import map_arg as map_arg
from .proxy import Proxy as Proxy
from .subgraph_rewriter import replace_pattern as replace_pattern
from ._symbolic_trace import Tracer as Tracer
from ._symbolic_trace import symbolic_trace as symbolic_trace
from ._symbolic_trace import wrap as wrap

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap"]

parts_of(__name__, "experimental", "proxy_tensor")


def get_proxy_mode() -> None:
    """None: no operations of tensors are traced."""
