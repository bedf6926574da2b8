"""Tensors turned round, shifted, repeated: made of views and copies that have gradients."""

from operator import index

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, publish, within_memory
from tensorlib.ops.shaping import cat

WHOLE = slice(None)


def as_ints(given):
    """Ints that were given one by one or as a sequence."""
    several = len(given) == 1 and isinstance(given[0], (tuple, list))
    return tuple(given[0] if several else given)


def flip(input, *dims):
    """A copy of `input` with the order of elements reversed along each of `dims`.

    Raises: RuntimeError for a dim given twice, IndexError.
    """
    wrapped = [wrap("flip", dim, input.ndim) for dim in as_ints(dims)]
    if len(set(wrapped)) < len(wrapped):
        raise RuntimeError(f"flip: a dim appears multiple times in {wrapped}")
    if input.ndim == 0:
        return input.clone()
    return input[tuple(slice(None, None, -1) if dim in wrapped else WHOLE
                       for dim in range(input.ndim))].clone()


def roll(input, shifts, dims=None):
    """`input` shifted along dims, what leaves at one end coming in at the other.

    Without `dims` it is shifted as a vector. Raises: RuntimeError, IndexError.
    """
    if dims is None:
        return roll(input.reshape(-1), shifts, 0).reshape(input.shape)
    shifts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = dims if isinstance(dims, (tuple, list)) else (dims,)
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"roll: shifts and dimensions must align, got {len(shifts)} and {len(dims)}")
    for shift, dim in zip(shifts, dims):
        size = input.size(dim)
        start = -index(shift) % size if size else 0
        input = cat((input.narrow(dim, start, size - start), input.narrow(dim, 0, start)), dim)
    return input


def repeat(self, *repeats):
    """This tensor as often as `repeats` says along each dim, the last of which are its own.

    Raises: RuntimeError for fewer numbers than dims, or negative ones.
    """
    counts = as_ints(repeats)
    if len(counts) < self.ndim:
        raise RuntimeError(f"repeat: needs a number for each of {self.ndim} dims, got {counts}")
    if min(counts, default=0) < 0:
        raise RuntimeError(f"repeat: expected numbers of 0 or more, got {counts}")
    sizes = (1,) * (len(counts) - self.ndim) + tuple(self.shape)
    if set(counts) <= {1}:
        return self.reshape(sizes).clone()
    apart = [n for size in sizes for n in (1, size)]
    spread = [n for pair in zip(counts, sizes) for n in pair]
    return self.reshape(apart).expand(spread).reshape(
        [count * size for count, size in zip(counts, sizes)])


def tile(input, *dims):
    """`input` repeated as `dims` says; with fewer numbers the first dims stay as they are.

    Raises: RuntimeError for negative numbers.
    """
    counts = as_ints(dims)
    return repeat(input, (1,) * (input.ndim - len(counts)) + counts)


def repeat_interleave(input, repeats, dim=None):
    """Each slice of `input` along `dim` as often as `repeats` says: an int, or an int for each.

    Without `dim` the elements of `input` as a vector. Raises: RuntimeError, IndexError.
    """
    if dim is None:
        return repeat_interleave(input.reshape(-1), repeats, 0)
    dim, size = wrap("repeat_interleave", dim, input.ndim), input.size(dim)
    counts = repeats.numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.ndim > 1 or counts.size not in (1, size) or (counts < 0).any():
        raise RuntimeError(f"repeat_interleave: repeats must be one int of 0 or more, or one for "
                           f"each of the {size} slices, got {repeats!r}")
    with within_memory("repeat_interleave"):
        places = FUNCTIONS["tensor"](np.repeat(np.arange(size), counts))
    return input.index_select(dim, places)


def select(input, dim, index):
    """`input` at one index of a dim, which goes away, as a view. Raises: IndexError."""
    if input.ndim == 0:
        raise IndexError("select: cannot be applied to a 0-d tensor")
    return input[(WHOLE,) * wrap("select", dim, input.ndim) + (index,)]


def diag(input, diagonal=0):
    """The matrix with the vector `input` on a diagonal, or a copy of that diagonal of a matrix.

    Raises: RuntimeError for other numbers of dims.
    """
    if input.ndim == 2:
        return input.diagonal(diagonal).clone()
    if input.ndim != 1:
        raise RuntimeError(f"diag: expects a vector or a matrix, got {input.ndim} dims")
    size = input.numel() + abs(diagonal)
    matrix = input.new_zeros((size, size))
    matrix.diagonal(diagonal).copy_(input)
    return matrix


def trace(input):
    """The sum of the diagonal of a matrix. Raises: RuntimeError for other numbers of dims."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expects a matrix, got {input.ndim} dims")
    return input.diagonal().sum()


for _function in (flip, roll, tile, repeat_interleave, select, diag, trace):
    publish(_function.__name__, _function, _function.__doc__)
publish("repeat", repeat, repeat.__doc__, public=False)
