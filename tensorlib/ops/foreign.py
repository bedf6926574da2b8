"""Calls of code from outside the library: users' forward functions, and NumPy's allocations."""

import functools

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.arrays.convert import as_tensor
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.settings import Held
from tensorlib._core.base.shape import listed
from tensorlib._core.base.storage import OutOfMemoryError, check_room
from tensorlib._core.graph.modes import _set_grad_enabled
from tensorlib._core.interpreters.foreign import elements_known
from tensorlib._core.tensor.tensor import Tensor


def outside_graph(name, fun):
    """Runs `fun` outside the graph, and makes its results new Tensors."""
    @functools.wraps(fun)
    def forward(*args, **kwargs):
        with Held((_set_grad_enabled,), (False,)):
            result = fun(*args, **kwargs)
        if isinstance(result, (tuple, list)):
            return tuple(own_tensor(name, x, args) for x in result)
        return own_tensor(name, result, args)
    return forward


def own_tensor(name, x, args):
    """A result as a Tensor that is neither an input nor a view in the graph of one."""
    if isinstance(x, (np.ndarray, np.generic, int, float, complex)):
        return as_tensor(x)
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: its forward returned {type_name(x)}, not a Tensor")
    return x.detach() if x.requires_grad or x._base is not None or any(x is a for a in args) else x


def within_memory(name, make):
    """The result of `make`; for sizes beyond memory an OutOfMemoryError that names the operation.

    For allocations by NumPy, which raises a plain MemoryError.
    """
    try:
        return make()
    except MemoryError as error:
        raise OutOfMemoryError(f"{name}: {error}") from None


def by_numpy(name, make, shape, dtype, *inputs):
    """A tensor of an array that NumPy computes from the elements of the inputs.

    If one of these is on `meta`, it is a tensor on `meta` of that shape and dtype.
    """
    if not elements_known(*inputs):
        return inputs[0].new_empty(shape, dtype=dtype)
    return from_numpy(within_memory(name, make))


def repeated_places(name, size, repeats):
    """The numbers below `size` as a NumPy array, each as often as `repeats` says (one int or more).

    NumPy sums the repeats without a check for overflow of int64.
    """
    if repeats.size not in (1, size):
        raise ValueError(f"{name}: expected one number of repeats, or one for each of {size} "
                         f"elements, got {repeats.size}")
    total = repeats.sum(dtype=np.float64) * (size if repeats.size == 1 else 1)
    if total >= 2**60:
        raise OutOfMemoryError(f"{name}: {total:.3g} repeated elements are too many")
    return within_memory(name, lambda: np.repeat(np.arange(size), repeats))


def members(name, sequence):
    """The items of a sequence, or the rows of a tensor, as a tuple. Raises: OutOfMemoryError."""
    if isinstance(sequence, Tensor) and sequence.ndim:
        check_room(name, sequence.shape[0], Tensor.__basicsize__)
    return within_memory(name, lambda: listed(sequence))
