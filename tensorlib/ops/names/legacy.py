"""Functions and methods that only older scripts call."""

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.publish import attach_checked
from tensorlib.ops.samples import given, refusals

empty_like = FUNCTIONS["empty_like"]


# ---- filled --------------------------------------------------------------------------------------

@composite(tensors=("input",), method=False, reference=lambda x, value: np.full_like(x, value),
           samples=given(((2, 3), 2), ((), 1), ((0, 2), 3)),
           errors=refusals((RuntimeError, (2,), np.ones(2))), complex=True)
def fill(input: Tensor, value):
    """A copy of `input` whose elements are all `value`, a number or a tensor without dims.

    Gradient: of `value`. Raises: RuntimeError for a tensor with dims.

    >>> tensorlib.fill(tensorlib.ones(2), 3)
    tensor([3., 3.])
    """
    if input.requires_grad or isinstance(value, Tensor):
        return input.clone().fill_(value)
    return empty_like(input).fill_(value)


# ---- element by element in Python ----------------------------------------------------------------

def apply_(self, callable):
    """This tensor, with each element x replaced by callable(x), a number. It is slow.

    Raises: RuntimeError for a tensor that requires a gradient, TypeError.
    """
    return written("apply_", self, [callable(x) for x in elements("apply_", self)])


def map_(self, tensor: Tensor, callable):
    """This tensor, with each element x replaced by callable(x, y), y of `tensor`.

    Raises: RuntimeError for a tensor that requires a gradient or does not expand, TypeError for
    another dtype.
    """
    if tensor.dtype != self.dtype:
        raise TypeError(f"map_: tensor must be of dtype {self.dtype}, got {tensor.dtype}")
    others = elements("map_", tensor.detach().expand(self.shape))
    return written("map_", self, [callable(*pair) for pair in zip(elements("map_", self), others)])


def elements(name, x):
    """The elements of a tensor as a list. Raises: RuntimeError in a graph."""
    if x.requires_grad:
        raise RuntimeError(f"{name}: the tensor requires a gradient, which Python's functions do "
                           f"not have; call it on x.detach()")
    return x.flatten().tolist()


def written(name, x, values):
    """The tensor, filled with these numbers."""
    made = FUNCTIONS["tensor"](values, dtype=x.dtype) if values else x.new_empty(0)
    if made.ndim != 1:
        raise TypeError(f"{name}: the callable must return a number")
    return x.copy_(made.reshape(x.shape))


for _method in (apply_, map_):
    attach_checked(_method.__name__, _method)

declared(__name__)
