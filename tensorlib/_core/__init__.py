"""Tensors, memory, the graph and its sweep: what the floors above are built on.

Importing it completes the types: these modules attach methods to them.
"""

from tensorlib import _kernels    # which finds the compiled modules
from tensorlib._core.base.garbage import without_collections

with without_collections():
    from tensorlib._core.arrays import pickling, printing
    from tensorlib._core.graph import node_properties
    from tensorlib._core.tensor import properties
