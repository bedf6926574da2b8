"""Methods that Tensors have for NumPy's users."""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib._core.base.importing import deferred
from tensorlib.ops.declare import FUNCTIONS

vector_dot = FUNCTIONS["dot"]
dot = deferred("tensorlib.io.functions", "dot")
as_arrays = deferred("tensorlib.io.arrays", "as_arrays")


def dot_method(self, tensor, *, out=None):
    """Inner product of two vectors; with more dims the product that NumPy's `x.dot(y)` is.

    Raises: RuntimeError for inner dims or dtypes that differ.

    >>> tensorlib.ones(2, 3).dot(tensorlib.ones(3))
    tensor([3., 3.])
    """
    if out is not None or not isinstance(tensor, Tensor) or self.ndim == tensor.ndim == 1:
        return vector_dot(self, tensor, out=out)
    return dot(self, tensor)


def to_numpy(self):
    """`x.numpy()`, under the name that pandas gave it and that plotting libraries look for."""
    return self.numpy()


def flags(self):
    """NumPy's flags of the array that shares the memory of this tensor."""
    return as_arrays(self).flags


dot_method.__module__ = "tensorlib"      # as of every published method: examples of `vmap` have it
