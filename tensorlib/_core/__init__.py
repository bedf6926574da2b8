"""Tensors, memory, the autograd graph and the backward sweep, on which all else is built.

Importing it completes the types, to which its modules attach methods.
"""

from tensorlib import _kernels    # which finds the compiled modules
from tensorlib._core.base.garbage import without_collections

with without_collections():
    from tensorlib._core.arrays import pickling, printing
    from tensorlib._core.graph import node_properties
    from tensorlib._core.tensor import properties
