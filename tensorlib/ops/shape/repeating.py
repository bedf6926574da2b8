"""Tensors flipped, rotated, rolled and repeated."""

from operator import index as as_int

import numpy as np

from tensorlib._core.apply.operators import make_sized
from tensorlib._core.base.formats import contiguous_format
from tensorlib._core.base.shape import listed, settled_dims, wrap
from tensorlib._core.layout import rolling, views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer, require_dims
from tensorlib.ops.declare import FUNCTIONS, composite, op
from tensorlib.ops.foreign import repeated_places
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import given, refusals

MANY = 1 << 31               # slices, of which there may be more than there is memory for


# ---- turned round and shifted --------------------------------------------------------------------

@op(linear=True, maker=make_sized, kernel=views.flip, reference=np.flip,
    samples=given(((2, 3), (0,)), ((2, 3), (0, -1)), ((2, 3), ()), ((0, 3), (1,)), ((), ())),
    errors=refusals((RuntimeError, (2, 3), (0, -2)), (IndexError, (2, 3), 2)), complex=True)
def flip(input: Tensor, dims):
    """A copy of `input` with the order of elements reversed along each of `dims`.

    Shapes: (*) -> (*). Raises: RuntimeError for a dim given twice, IndexError.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).flip(1)
    tensor([[2, 1],
            [4, 3]])
    """


@flip.vjp("input")
def flip_vjp(g, dims):
    """A reversal is its own inverse and transpose."""
    return g.flip(dims)


@op(linear=True, kernel=rolling.roll,
    reference=lambda x, shifts, dims=None: np.roll(x, shifts, None if dims == () else dims),
    samples=given(((2, 3), 2), ((2, 3), -4, 1), ((2, 3), (1, 2), (0, 1)), ((0, 3), 1, 0),
                  ((), 3), ((4,), 5, ())),
    errors=refusals((RuntimeError, (2, 3), (1, 2), 0), (RuntimeError, (2, 3), (1, 2)),
                    (IndexError, (2, 3), 1, 2), (TypeError, (2, 3), 1.5)), complex=True)
def roll(input: Tensor, shifts, dims=None):
    """`input` shifted along dims, what leaves at one end coming in at the other.

    Without `dims` it is shifted as a vector. Shapes: (*) -> (*).
    Raises: RuntimeError for another number of shifts than dims, IndexError, TypeError.

    >>> tensorlib.arange(5).roll(2)
    tensor([3, 4, 0, 1, 2])
    """


@roll.vjp("input")
def roll_vjp(g, shifts, dims):
    """Rolled back."""
    shifts = settled_dims(shifts)
    return g.roll(tuple(-n for n in shifts) if isinstance(shifts, tuple) else -shifts, dims)


@composite(tensors=("input",), reference=lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
           samples=given(((2, 3),), ((2, 3), -1), ((2, 3, 4), 2, (1, -1)), ((2, 2), 4, (1, 0))),
           errors=refusals((RuntimeError, (2,)), (RuntimeError, (2, 2), 1, (0, 0)),
                           (RuntimeError, (2, 2), 1, (0,)), (IndexError, (2, 2), 1, (0, 2))),
                           complex=True)
def rot90(input: Tensor, k=1, dims=(0, 1)):
    """A copy turned k times by 90 degrees in the plane of two dims, from the first to the second.

    Shapes: (N, M) -> (M, N) for odd k. Raises: RuntimeError for other numbers of dims or equal
    ones, IndexError, TypeError.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).rot90()
    tensor([[2, 4],
            [1, 3]])
    """
    k, dims = integer("rot90", "k", k) % 4, tuple(dims)
    if len(dims) != 2 or input.ndim < 2:
        raise RuntimeError(f"rot90: expects 2 dims of at least 2, got {dims} of {input.ndim}")
    first, second = (wrap("rot90", dim, input.ndim) for dim in dims)
    if first == second:
        raise RuntimeError(f"rot90: expected rotation dims to be different, got {dims}")
    if k == 1:
        return input.flip(second).transpose(first, second)
    if k == 2:
        return input.flip((first, second))
    return input.flip(first).transpose(first, second) if k == 3 else input.clone(
        memory_format=contiguous_format)


@composite(reference=np.fliplr, samples=given(((2, 3),), ((2, 3, 2),)),
           errors=refusals((RuntimeError, (3,))), complex=True)
def fliplr(input):
    """A copy with the order of columns reversed. Raises: RuntimeError for less than 2 dims."""
    require_dims("fliplr", input, 2)
    return input.flip(1)


@composite(reference=np.flipud, samples=given(((2, 3),), ((3,),)),
           errors=refusals((RuntimeError, ())), complex=True)
def flipud(input):
    """A copy with the order of rows reversed. Raises: RuntimeError for no dims."""
    require_dims("flipud", input, 1)
    return input.flip(0)


# ---- repeated ------------------------------------------------------------------------------------

def repeated(name, input, counts):
    """`input` as often as `counts` says along each dim, the last of which are its own."""
    try:
        counts = tuple(map(as_int, counts))
    except TypeError:
        raise TypeError(f"{name}: expected ints, got {counts}") from None
    if min(counts, default=0) < 0:
        raise RuntimeError(f"{name}: expected numbers of 0 or more, got {counts}")
    sizes = (1,) * (len(counts) - input.ndim) + tuple(input.shape)
    if set(counts) <= {1}:
        return views.contiguous_copy(views.reshape(input, sizes))
    apart = views.reshape(input, [n for size in sizes for n in (1, size)])
    many = views.expand(apart, [n for pair in zip(counts, sizes) for n in pair])
    copied = views.clone(many) if 0 in many.shape else views.contiguous(many)
    return views.reshape(copied, [count * size for count, size in zip(counts, sizes)])


def summed_over_repeats(g, shape, counts):
    """The gradient of what was repeated to that of the result."""
    counts = (1,) * (len(shape) - len(counts)) + tuple(counts)
    sizes = (1,) * (len(counts) - len(shape)) + tuple(shape)
    apart = g.reshape([n for pair in zip(counts, sizes) for n in pair])
    return apart.sum(tuple(range(0, apart.ndim, 2))).reshape(shape)


@op(linear=True, maker=make_sized, public=False, reference=np.tile,
    samples=given(((2, 3), (2, 3)), ((2, 3), (2, 1, 1)), ((2, 3), (0, 1)), ((2, 3), (1, 1)),
                  ((), (2, 2)), ((), ()), ((0, 2), (3, 2))),
    errors=refusals((RuntimeError, (2, 3), 2), (RuntimeError, (2, 3), (2, -1)),
                    (TypeError, (2, 3), (2, 1.5))), complex=True)
def repeat(input: Tensor, repeats):
    """This tensor as often as `repeats` says along each dim, the last of which are its own.

    Shapes: (N, M) by (B, n, m) -> (B, N n, M m), and so on.
    Raises: RuntimeError for fewer numbers than dims, or negative ones, TypeError.
    """
    if len(repeats) < input.ndim:
        raise RuntimeError(f"repeat: needs a number for each of {input.ndim} dims, got {repeats}")
    return repeated("repeat", input, repeats)


@repeat.vjp("input")
def repeat_vjp(g, input_shape, repeats):
    """The sum over the copies."""
    return summed_over_repeats(g, input_shape, repeats)


@op(linear=True, maker=make_sized, reference=np.tile,
    samples=given(((2, 3), (2,)), ((2, 3), (2, 3)), ((2, 3), (2, 1, 1)), ((2, 3), ()), ((), (3,))),
    errors=refusals((RuntimeError, (2, 3), -1), (TypeError, (2, 3), (2, 1.5))), complex=True)
def tile(input: Tensor, dims):
    """`input` repeated as `dims` says; with fewer numbers the first dims stay as they are.

    Shapes: (N, M) by (m,) -> (N, M m); by (B, n, m) -> (B, N n, M m).
    Raises: RuntimeError for negative numbers, TypeError.

    >>> tensorlib.tensor([[1, 2]]).tile(2)
    tensor([[1, 2, 1, 2]])
    """
    dims = listed(dims)
    return repeated("tile", input, (1,) * (input.ndim - len(dims)) + dims)


@tile.vjp("input")
def tile_vjp(g, input_shape, dims):
    """The sum over the copies."""
    return summed_over_repeats(g, input_shape, dims)


@composite(tensors=("input",), reference=lambda x, repeats, dim=None: np.repeat(x, repeats, dim),
           samples=given(((2, 3), 2), ((2, 3), np.array([1, 0, 2]), 1), ((2, 3), np.array([2]), -1),
                         ((2, 3), 0, 0), ((), 3), ((0, 2), 2, 0)),
           errors=refusals((RuntimeError, (2, 3), np.array([1, 2]), 1), (RuntimeError, (2,), -1),
                           (IndexError, (2, 3), 2, 2), (TypeError, (2,), 1.5),
                           (TypeError, (2,), np.ones(2))), sized_by_values=True, checks_values=True,
                           complex=True)
def repeat_interleave(input: Tensor, repeats=None, dim=None, *, output_size=None):
    """Each slice of `input` along `dim` as often as `repeats` says: an int, or an int for each.

    Without `dim` the elements of `input` as a vector; without `repeats` the positions in `input`,
    each as often as its element says. output_size: the sum of repeats, checked.
    Shapes: (*, N, *) -> (*, sum of repeats, *).
    Raises: RuntimeError for negative numbers, another number of them than slices, or another
    output_size; TypeError for what are not ints; IndexError.

    >>> tensorlib.tensor([5, 6, 7]).repeat_interleave(tensorlib.tensor([1, 0, 2]))
    tensor([5, 7, 7])
    >>> tensorlib.repeat_interleave(tensorlib.tensor([1, 0, 2]))
    tensor([0, 2, 2])
    """
    if repeats is None:
        if input.ndim != 1:
            raise RuntimeError("repeat_interleave: repeats alone must be a vector, got shape "
                               f"{tuple(input.shape)}")
        positions = FUNCTIONS["arange"](input.numel())
        return repeat_interleave(positions, input, 0, output_size=output_size)
    if dim is None:
        input, dim = input if input.ndim == 1 else input.reshape(-1), 0
    dim, size = wrap("repeat_interleave", dim, input.ndim), input.size(dim)
    if type(repeats) is int and repeats > 1 and 0 < size * repeats < MANY and input.numel() and (
            output_size is None or output_size == size * repeats):
        before, after = input.shape[:dim], input.shape[dim + 1:]       # one copy, no positions
        spread = input.unsqueeze(dim + 1).expand((*before, size, repeats, *after))
        return spread.contiguous().reshape((*before, size * repeats, *after))
    if isinstance(repeats, (list, tuple)):       # NumPy may crash where a list changes meanwhile
        repeats = [as_int(n) if hasattr(n, "__index__") and not isinstance(n, bool) else n
                   for n in tuple(repeats)]
    counts = repeats.numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"repeat_interleave: repeats must be ints, got {repeats!r}")
    if counts.ndim > 1 or counts.size not in (1, size) or counts.size and counts.min() < 0:
        raise RuntimeError(f"repeat_interleave: repeats must be one int of 0 or more, or one for "
                           f"each of the {size} slices, got {repeats!r}")
    places = repeated_places("repeat_interleave", size, counts.astype(np.int64))
    if output_size is not None and output_size != places.size:
        raise RuntimeError(f"repeat_interleave: output_size is {output_size}, but the repeats sum "
                           f"to {places.size}")
    return input.index_select(dim, FUNCTIONS["from_numpy"](places))


declared(__name__)
