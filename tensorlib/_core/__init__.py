"""Tensors, memory, the graph and its sweep: what the floors above are built on.

Importing it completes the type: these modules attach their methods to it.
"""

from tensorlib import _compiled    # finds the compiled modules
from tensorlib._core.arrays import pickling, printing
from tensorlib._core.tensor import properties
