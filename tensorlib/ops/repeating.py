"""Tensors turned round, shifted, repeated, and the diagonals of matrices."""

from operator import index as as_int

import numpy as np

from tensorlib._core.apply.operators import make_sized
from tensorlib._core.base.shape import listed, settled_dims, wrap
from tensorlib._core.index.keys import parse, take
from tensorlib._core.layout import rolling, views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite, op
from tensorlib.ops.late import declared
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.foreign import repeated_places

WHOLE, BACKWARDS = slice(None), slice(None, None, -1)


# ---- turned round and shifted --------------------------------------------------------------------

@op(linear=True, maker=make_sized, reference=np.flip,
    samples=given(((2, 3), (0,)), ((2, 3), (0, -1)), ((2, 3), ()), ((0, 3), (1,)), ((), ())),
    errors=refusals((RuntimeError, (2, 3), (0, -2)), (IndexError, (2, 3), 2)))
def flip(input: Tensor, dims):
    """A copy of `input` with the order of elements reversed along each of `dims`.

    Shapes: (*) -> (*). Raises: RuntimeError for a dim given twice, IndexError.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).flip(1)
    tensor([[2, 1],
            [4, 3]])
    """
    turned = [wrap("flip", dim, input.ndim) for dim in settled_dims(dims)]
    if len(set(turned)) < len(turned):
        raise RuntimeError(f"flip: a dim appears multiple times in {turned}")
    key = tuple(BACKWARDS if dim in turned else WHOLE for dim in range(input.ndim))
    return views.clone(take(input, parse(input, key)))


@flip.vjp("input")
def flip_vjp(g, dims):
    return g.flip(dims)


@op(linear=True, kernel=rolling.roll,
    reference=lambda x, shifts, dims=None: np.roll(x, shifts, None if dims == () else dims),
    samples=given(((2, 3), 2), ((2, 3), -4, 1), ((2, 3), (1, 2), (0, 1)), ((0, 3), 1, 0),
                  ((), 3), ((4,), 5, ())),
    errors=refusals((RuntimeError, (2, 3), (1, 2), 0), (RuntimeError, (2, 3), (1, 2)),
                    (IndexError, (2, 3), 1, 2), (TypeError, (2, 3), 1.5)))
def roll(input: Tensor, shifts, dims=None):
    """`input` shifted along dims, what leaves at one end coming in at the other.

    Without `dims` it is shifted as a vector. Shapes: (*) -> (*).
    Raises: RuntimeError for another number of shifts than dims, IndexError, TypeError.

    >>> tensorlib.arange(5).roll(2)
    tensor([3, 4, 0, 1, 2])
    """


@roll.vjp("input")
def roll_vjp(g, shifts, dims):
    shifts = settled_dims(shifts)
    return g.roll(tuple(-n for n in shifts) if isinstance(shifts, tuple) else -shifts, dims)


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
        return views.clone(views.reshape(input, sizes))
    apart = views.reshape(input, [n for size in sizes for n in (1, size)])
    many = views.expand(apart, [n for pair in zip(counts, sizes) for n in pair])
    return views.reshape(views.contiguous(many),
                         [count * size for count, size in zip(counts, sizes)])


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
                    (TypeError, (2, 3), (2, 1.5))))
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
    return summed_over_repeats(g, input_shape, repeats)


@op(linear=True, maker=make_sized, reference=np.tile,
    samples=given(((2, 3), (2,)), ((2, 3), (2, 3)), ((2, 3), (2, 1, 1)), ((2, 3), ()), ((), (3,))),
    errors=refusals((RuntimeError, (2, 3), -1), (TypeError, (2, 3), (2, 1.5))))
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
    return summed_over_repeats(g, input_shape, dims)


@composite(tensors=("input",), reference=lambda x, repeats, dim=None: np.repeat(x, repeats, dim),
           samples=given(((2, 3), 2), ((2, 3), np.array([1, 0, 2]), 1), ((2, 3), np.array([2]), -1),
                         ((2, 3), 0, 0), ((), 3), ((0, 2), 2, 0)),
           errors=refusals((RuntimeError, (2, 3), np.array([1, 2]), 1), (RuntimeError, (2,), -1),
                           (IndexError, (2, 3), 2, 2), (TypeError, (2,), 1.5),
                           (TypeError, (2,), np.ones(2))))
def repeat_interleave(input: Tensor, repeats, dim=None, *, output_size=None):
    """Each slice of `input` along `dim` as often as `repeats` says: an int, or an int for each.

    Without `dim` the elements of `input` as a vector. output_size: the sum of repeats, checked.
    Shapes: (*, N, *) -> (*, sum of repeats, *).
    Raises: RuntimeError for negative numbers, another number of them than slices, or another
    output_size; TypeError for what are no ints; IndexError.

    >>> tensorlib.tensor([5, 6, 7]).repeat_interleave(tensorlib.tensor([1, 0, 2]))
    tensor([5, 7, 7])
    """
    if dim is None:
        return repeat_interleave(input.reshape(-1), repeats, 0, output_size=output_size)
    dim, size = wrap("repeat_interleave", dim, input.ndim), input.size(dim)
    if isinstance(repeats, (list, tuple)):       # NumPy may crash where a list changes meanwhile
        repeats = [as_int(n) if hasattr(n, "__index__") and not isinstance(n, bool) else n
                   for n in tuple(repeats)]
    counts = repeats.numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"repeat_interleave: repeats must be ints, got {repeats!r}")
    if counts.ndim > 1 or counts.size not in (1, size) or (counts < 0).any():
        raise RuntimeError(f"repeat_interleave: repeats must be one int of 0 or more, or one for "
                           f"each of the {size} slices, got {repeats!r}")
    places = repeated_places("repeat_interleave", size, counts.astype(np.int64))
    if output_size is not None and output_size != places.size:
        raise RuntimeError(f"repeat_interleave: output_size is {output_size}, but the repeats sum "
                           f"to {places.size}")
    return input.index_select(dim, FUNCTIONS["from_numpy"](places))


# ---- one slice, diagonals ------------------------------------------------------------------------

@composite(tensors=("input",), reference=lambda x, dim, index: np.take(x, index, dim),
           samples=given(((2, 3), 1, -1), ((2, 3), 0, 1), ((4,), 0, 2), ((2, 1, 3), -2, 0)),
           errors=refusals((IndexError, (2, 3), 0, 2), (IndexError, (2, 3), 2, 0),
                           (IndexError, (), 0, 0), (TypeError, (2, 3), 0, True),
                           (TypeError, (2, 3), 0, slice(1))))
def select(input: Tensor, dim, index):
    """`input` at one index of a dim, which goes away, as a view.

    Shapes: (*, N, *) -> (*, *). Raises: IndexError for a dim or index out of range, TypeError.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    if type(index) is not int and not is_place(index):
        raise TypeError(f"select: index must be an int, got {index!r}")
    try:
        return input[(WHOLE,) * wrap("select", dim, input.ndim) + (index,)]
    except IndexError as error:
        if input.ndim == 0:
            raise IndexError("select: cannot be applied to a 0-d tensor") from None
        raise IndexError(f"select: {str(error).removeprefix('getitem: ')}") from None


def is_place(index):
    """Whether a value is one position: an int, or a tensor of one."""
    if isinstance(index, Tensor):
        return index.ndim == 0 and not index.is_floating_point() and index.dtype.name != "bool"
    return hasattr(type(index), "__index__") and not isinstance(index, bool)


@composite(reference=np.diag, out=True,
           samples=given(((3,),), ((2,), 1), ((2,), -2), ((0,), 1), ((3, 4),), ((3, 4), -1),
                         ((3, 4), 9)),
           errors=refusals((RuntimeError, ()), (RuntimeError, (2, 2, 2)), (TypeError, (2,), 1.5)))
def diag(input: Tensor, diagonal=0):
    """The matrix with the vector `input` on a diagonal, or a copy of that diagonal of a matrix.

    Shapes: (N,) -> (N + abs(diagonal), N + abs(diagonal)); (N, M) -> (length of the diagonal,).
    Raises: RuntimeError for other numbers of dims, TypeError.

    >>> tensorlib.tensor([1, 2]).diag(1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    try:
        diagonal = as_int(diagonal)
    except TypeError:
        raise TypeError(f"diag: diagonal must be an int, got {diagonal!r}") from None
    if input.ndim == 2:
        return input.diagonal(diagonal).clone()
    if input.ndim != 1:
        raise RuntimeError(f"diag: expects a vector or a matrix, got {input.ndim} dims")
    size = input.numel() + abs(diagonal)
    matrix = input.new_zeros((size, size))
    matrix.diagonal(diagonal).copy_(input)
    return matrix


@composite(reference=lambda x: np.trace(x, dtype=x.dtype if x.dtype.kind == "f" else np.int64),
           tolerance="reduction",
           samples=given(((3, 3),), ((2, 4),), ((0, 0),)),
           errors=refusals((RuntimeError, (3,)), (RuntimeError, (2, 2, 2))))
def trace(input: Tensor):
    """The sum of the diagonal of a matrix.

    Shapes: (N, M) -> (). Raises: RuntimeError for other numbers of dims.

    >>> tensorlib.trace(tensorlib.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expects a matrix, got {input.ndim} dims")
    return input.diagonal().sum()


declared(__name__)
