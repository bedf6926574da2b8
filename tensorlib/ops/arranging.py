"""Diagonals, windows and blocks; parts put into others; and what pairs and powers are made of."""

from itertools import combinations as combinations_of
from itertools import combinations_with_replacement
from operator import index as as_int

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.interpreters.foreign import stands_in
from tensorlib._core.base.shape import Size, wrap
from tensorlib._core.base.shape import broadcast_shapes as broadcast_two
from tensorlib._core.base.storage import check_room
from tensorlib._core.create.ranges import arange
from tensorlib._core.layout import overlapping
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import Tensors, composite, op, publish
from tensorlib.ops.joining import cat, stack
from tensorlib.ops.late import declared
from tensorlib.ops.ordering import integer, refuse_bools
from tensorlib.ops.foreign import members, within_memory
from tensorlib.ops.publish import FUNCTIONS
from tensorlib.ops.samples import given, given_pairs, refusals
from tensorlib.ops.stacking import meshgrid, sequences, refused_sequences, unpacked

WHOLE = slice(None)


# ---- diagonals -----------------------------------------------------------------------------------

def embedded(x, offset=0, dim1=-2, dim2=-1):
    """The reference of `diag_embed`."""
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@composite(tensors=("input",), reference=embedded,
           samples=given(((3,),), ((2, 3), 1), ((2, 3), -1, 0, 2), ((0,), 2),
                         ((2, 1, 2), 0, -1, 0)),
           errors=refusals((IndexError, ()), (RuntimeError, (2,), 0, 1, 1),
                           (IndexError, (2,), 0, 2), (TypeError, (2,), 1.5)))
def diag_embed(input: Tensor, offset=0, dim1=-2, dim2=-1):
    """Matrices in two new dims with the last dim of `input` on a diagonal, zeros elsewhere.

    Shapes: (*, N) -> (*, N + abs(offset), N + abs(offset)), these two where `dim1` and `dim2` say.
    Raises: IndexError for dims that are not there, RuntimeError for equal ones, TypeError.

    >>> tensorlib.tensor([1, 2]).diag_embed()
    tensor([[1, 0],
            [0, 2]])
    """
    offset = integer("diag_embed", "offset", offset)
    first, second = (wrap("diag_embed", dim, input.ndim + 1) for dim in (dim1, dim2))
    if input.ndim == 0:
        raise IndexError("diag_embed: expects a tensor with at least a dim")
    if first == second:
        raise RuntimeError(f"diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = input.shape[-1] + abs(offset)
    out = input.new_zeros((*input.shape[:-1], n, n))
    out.diagonal(offset, -2, -1).copy_(input)
    return out.movedim((-2, -1), (first, second))


@composite(tensors=("input",), reference=np.diagflat,
           samples=given(((3,),), ((2, 2), 1), ((), -1), ((0,),)),
           errors=refusals((TypeError, (2,), 1.5)))
def diagflat(input: Tensor, offset=0):
    """The matrix with all elements of `input` on a diagonal, zeros elsewhere.

    Shapes: N elements -> (N + abs(offset), N + abs(offset)). Raises: TypeError.
    """
    return input.reshape(-1).diag(integer("diagflat", "offset", offset))


# ---- one tensor put into another -----------------------------------------------------------------

def replaced(name, input, part, src):
    """A copy of `input` with `src` where a view of it lies, which `part` gives."""
    out = batched_like(input, src).clone()
    view = part(out)
    if tuple(view.shape) != tuple(src.shape):
        raise RuntimeError(f"{name}: expected src to have a size equal to the slice of self, got "
                           f"{list(src.shape)} and {list(view.shape)}")
    view.copy_(src)
    return out


def batched_like(input, src):
    """`input`, as an example of a batch where `src` is one: what differs is to be written there."""
    if stands_in(src) and not stands_in(input):
        return input + src.new_zeros(src.shape).sum().to(input.dtype)
    return input


def put_in_view(view):
    """The reference of a function that puts an array into another, where a view of it lies."""
    def reference(x, src, *args):
        x = x.copy()
        part = view(x, *args)
        part.flags.writeable = True
        part[...] = src
        return x
    return reference


@composite(tensors=("input", "src"), reference=put_in_view(np.diagonal),
           samples=given_pairs(((3, 4), (3,)), ((3, 4), (2,), -1), ((2, 3, 3), (2, 3), 0, 1, 2)),
           errors=lambda: iter([((np.ones((2, 2)), np.ones(3)), {}, RuntimeError)]))
def diagonal_scatter(input: Tensor, src: Tensor, offset=0, dim1=0, dim2=1):
    """A copy of `input` with `src` on the diagonal of two dims.

    Shapes: that of `input`, and that of its `diagonal` -> that of `input`.
    Raises: RuntimeError for another shape, IndexError.
    """
    return replaced("diagonal_scatter", input, lambda x: x.diagonal(offset, dim1, dim2), src)


@composite(tensors=("input", "src"), reference=put_in_view(
    lambda x, dim, index: x[(WHOLE,) * (dim % x.ndim) + (index, ...)]),
    samples=given_pairs(((2, 3), (3,), 0, 1), ((2, 3), (2,), -1, -1)),
    errors=lambda: iter([((np.ones((2, 2)), np.ones(3), 0, 0), {}, RuntimeError),
                         ((np.ones((2, 2)), np.ones(2), 0, 2), {}, IndexError)]))
def select_scatter(input: Tensor, src: Tensor, dim, index):
    """A copy of `input` with `src` at one index of a dim.

    Shapes: (*, N, *), (*, *) -> (*, N, *). Raises: RuntimeError for another shape, IndexError.
    """
    try:
        return replaced("select_scatter", input, lambda x: x.select(dim, index), src)
    except IndexError as error:
        raise IndexError(f"select_scatter: {str(error).removeprefix('select: ')}") from None


@composite(tensors=("input", "src"), reference=put_in_view(
    lambda x, dim=0, *bounds: x[(WHOLE,) * (dim % x.ndim) + (slice(*bounds, None, None),)]
    if len(bounds) < 2 else x[(WHOLE,) * (dim % x.ndim) + (slice(*bounds),)]),
    samples=given_pairs(((4, 3), (2, 3), 0, 1, 3), ((2, 4), (2, 2), 1, None, None, 2),
                        ((3,), (1,), 0, -1), ((2,), (2,))),
    errors=lambda: iter([((np.ones(3), np.ones(2), 0, 1), {"step": 0}, RuntimeError),
                         ((np.ones(3), np.ones(1), 0, 1), {}, RuntimeError)]))
def slice_scatter(input: Tensor, src: Tensor, dim=0, start=None, end=None, step=1):
    """A copy of `input` with `src` in a slice of a dim.

    Shapes: (*, N, *), (*, length of the slice, *) -> (*, N, *).
    Raises: RuntimeError for another shape or a step below 1, IndexError, TypeError.
    """
    dim, step = wrap("slice_scatter", dim, input.ndim), integer("slice_scatter", "step", step)
    if step < 1:
        raise RuntimeError(f"slice_scatter: slice step must be positive, got {step}")
    key = (WHOLE,) * dim + (slice(start, end, step),)
    return replaced("slice_scatter", input, lambda x: x[key], src)


# ---- views and copies of parts -------------------------------------------------------------------

@composite(tensors=("input",), reference=lambda x, dim, start, length: np.take(
    x, np.arange(start, start + length), dim), out=True, samples=given(((2, 4), 1, 1, 2)),
    errors=refusals((RuntimeError, (3,), 0, 2, 2)))
def narrow_copy(input: Tensor, dim, start, length):
    """A copy of what `narrow` gives. Raises: as `narrow`."""
    return input.narrow(dim, start, length).clone()


@composite(tensors=("input",), reference=lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
           samples=given(((2, 3),), ((2, 3), -1), ((2, 3, 4), 2, (1, -1)), ((2, 2), 4, (1, 0))),
           errors=refusals((RuntimeError, (2,)), (RuntimeError, (2, 2), 1, (0, 0)),
                           (RuntimeError, (2, 2), 1, (0,)), (IndexError, (2, 2), 1, (0, 2))))
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
    return input.flip(first).transpose(first, second) if k == 3 else input.clone()


def windowed(x, dim, size, step):
    """The reference of `unfold`."""
    if not x.ndim:
        return x.reshape(1)[:size]
    every = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return every[(WHOLE,) * dim + (slice(None, None, step),)]


@op(linear=True, view=True, public=False, reference=windowed,
    samples=given(((5,), 0, 2, 2), ((5,), 0, 3, 1), ((2, 4), 1, 2, 1), ((), 0, 1, 1)),
    errors=refusals((RuntimeError, (3,), 0, 4, 1), (RuntimeError, (3,), 0, 2, 0),
                    (IndexError, (3,), 1, 2, 1), (TypeError, (3,), 0, 1.5, 1)))
def unfold(input: Tensor, dimension, size, step):
    """Windows of `size` elements along a dim, `step` apart, as a last dim, as a view.

    Shapes: (*, N, *) -> (*, (N - size) // step + 1, *, size).
    Raises: RuntimeError for a size that is negative or larger than the dim and for a step below 1,
    IndexError, TypeError.
    """
    return overlapping.unfold(
        input, dimension, integer("unfold", "size", size), integer("unfold", "step", step))


@unfold.vjp("input")
def unfold_vjp(g, input_shape, dimension, size, step):
    """Each element's gradient is the sum over the windows that it is in."""
    if not input_shape:
        return g.sum()
    dim = wrap("unfold", dimension, len(input_shape))
    count = g.shape[dim]
    places = (arange(count) * step).unsqueeze(1) + arange(size)
    windows_last = g.movedim(-1, dim + 1)
    shape = (*input_shape[:dim], count * size, *input_shape[dim + 1:])
    return g.new_zeros(input_shape).index_add(dim, places.reshape(-1), windows_last.reshape(shape))


@unfold.jvp
def unfold_jvp(d_input, dimension, size, step):
    return d_input.unfold(dimension, size, step)


# ---- shapes and products -------------------------------------------------------------------------

def broadcast_shapes(*shapes):
    """The sizes to which tensors of these sizes broadcast.

    Each is an int or a sequence of ints. Raises: RuntimeError for sizes that do not, TypeError.

    >>> tensorlib.broadcast_shapes((2, 1), 3, (1, 3))
    tensorlib.Size([2, 3])
    """
    result = ()
    for shape in shapes:
        sizes = tuple(map(as_int, shape)) if isinstance(shape, (tuple, list)) else (as_int(shape),)
        if min(sizes, default=0) < 0:
            raise RuntimeError(f"broadcast_shapes: sizes must be 0 or more, got {sizes}")
        result = broadcast_two("broadcast_shapes", result, sizes)
    return Size(result)


publish("broadcast_shapes", broadcast_shapes, broadcast_shapes.__doc__, method=False)


def all_tuples(*xs):
    """The reference of `cartesian_prod`."""
    if len(xs) == 1:
        return xs[0]
    return np.stack([y.reshape(-1) for y in np.meshgrid(*xs, indexing="ij")], 1)


@composite(tensors=("tensors",), method=False, reference=all_tuples,
           samples=sequences(((2,), (3,)), ((2,),), ((2,), (1,), (2,))),
           errors=refused_sequences((RuntimeError, (2, 2), (3,)), (RuntimeError,)))
def cartesian_prod(*tensors: Tensors):
    """All tuples of an element of each vector, as rows; of one vector itself.

    Shapes: (M,), (N,), ... -> (M N ..., number of vectors).
    Raises: RuntimeError for what is no vector, or dtypes that differ, TypeError.

    >>> tensorlib.cartesian_prod(tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    tensors = unpacked("cartesian_prod", tensors)
    for x in tensors:
        if x.ndim != 1:
            raise RuntimeError(f"cartesian_prod: expects vectors, got shape {list(x.shape)}")
    if len({x.dtype for x in tensors}) != 1:
        raise RuntimeError("cartesian_prod: expects tensors of one dtype, at least one")
    if len(tensors) == 1:
        return tensors[0]
    return stack([x.reshape(-1) for x in meshgrid(*tensors)], 1)


@composite(tensors=("input",), method=False,
           reference=lambda x, r=2, with_replacement=False: np.array(list((
               combinations_with_replacement if with_replacement else combinations_of)(
                   x.tolist(), r)), x.dtype).reshape(-1, r) if r else x[:0],
           samples=given(((4,),), ((3,), 2, True), ((2,), 3), ((3,), 0), ((4,), 3)),
           errors=refusals((RuntimeError, (2, 2)), (RuntimeError, (2,), -1),
                           (TypeError, (2,), 1.5)))
def combinations(input: Tensor, r=2, with_replacement=False):
    """All combinations of r elements of a vector, as rows.

    Shapes: (N,) -> (number of combinations, r). Raises: RuntimeError for what is no vector and a
    negative r, TypeError.

    >>> tensorlib.combinations(tensorlib.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    r = integer("combinations", "r", r)
    if input.ndim != 1 or r < 0:
        raise RuntimeError("combinations: expects a vector and a number that is not negative, got "
                           f"shape {list(input.shape)} and {r}")
    if r == 0:
        return input[:0]
    make = combinations_with_replacement if with_replacement else combinations_of
    n, rows = input.shape[0], 1
    for i in range(min(r, n)):               # how many there are, without numbers without end
        rows = min(rows * (n + (i if with_replacement else -i)), 1 << 62)
        rows = rows // (i + 1)
    check_room("combinations", rows if n >= r or with_replacement else 0, 8 * r)
    places = within_memory("combinations", lambda: np.array(
        list(make(range(n), r)), np.int64).reshape(-1, r))
    return input[from_numpy(places)]


def blocks(*xs):
    """The reference of `block_diag`."""
    xs = [np.atleast_2d(x) for x in xs]
    out = np.zeros((sum(x.shape[0] for x in xs), sum(x.shape[1] for x in xs)))
    row = column = 0
    for x in xs:
        out[row:row + x.shape[0], column:column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return out.astype(xs[0].dtype)


@composite(tensors=("tensors",), method=False, reference=blocks,
           samples=sequences(((2, 3), (2,), ()), ((2, 2),), ((0, 2), (1, 1))),
           errors=refused_sequences((RuntimeError, (2, 2, 2))))
def block_diag(*tensors: Tensors):
    """The matrix with the matrices along its diagonal, zeros elsewhere.

    Shapes: (K, L), (M, N), ... -> (K + M + ..., L + N + ...). A vector is a row.
    Raises: RuntimeError for more than 2 dims, TypeError.

    >>> tensorlib.block_diag(tensorlib.tensor([[1, 2]]), tensorlib.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    tensors = unpacked("block_diag", tensors)
    for i, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError("block_diag: input tensors must have 2 or fewer dimensions, but "
                               f"tensor {i} has {x.ndim}")
    if not tensors:
        return FUNCTIONS["zeros"](1, 0)
    matrices = [x if x.ndim == 2 else x.reshape(1, x.numel()) for x in tensors]
    width, before, rows = sum(x.shape[1] for x in matrices), 0, []
    for x in matrices:
        height, columns = x.shape
        rows.append(cat([x.new_zeros((height, before)), x,
                         x.new_zeros((height, width - before - columns))], 1))
        before += columns
    return cat(rows, 0)


@composite(tensors=("x",), method=False, takes="integer floating", tolerance="reduction",
           reference=lambda x, N=None, increasing=False: np.vander(
               x if x.dtype.kind == "f" else x.astype(np.int64), N, increasing),
           samples=given(((3,),), ((3,), 2, True), ((2,), 0), ((2,), 4)),
           errors=refusals((RuntimeError, (2, 2)), (RuntimeError, (2,), -1)))
def vander(x: Tensor, N=None, increasing=False):
    """The matrix of the powers of a vector, the highest or, with `increasing`, the lowest first.

    Shapes: (M,) -> (M, N), N being M by default. Raises: RuntimeError for bools, for what is no
    vector and for a negative N, TypeError.

    >>> tensorlib.vander(tensorlib.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    refuse_bools("vander", x, RuntimeError)
    count = x.numel() if N is None else integer("vander", "N", N)
    if x.ndim != 1 or count < 0:
        raise RuntimeError("vander: expects a vector and a number that is not negative, got shape "
                           f"{list(x.shape)} and {count}")
    if count == 0:
        return x[:0].cumprod(0).new_zeros((x.shape[0], 0))
    check_room("vander", count, 8 * x.shape[0])
    factors = x.unsqueeze(1).expand((x.shape[0], count - 1))
    products = factors.cumprod(1)                        # of integers in int64
    powers = cat([products.new_ones((x.shape[0], 1)), products], 1)
    return powers if increasing else powers.flip(1)


# ---- small names ---------------------------------------------------------------------------------

@composite(tensors=("input",), reference=lambda x, sizes, dim=0: tuple(
    np.split(x, np.cumsum(sizes)[:-1], dim)), samples=given(((4, 3), [1, 3]), ((2, 3), [1, 2], 1)),
    errors=refusals((RuntimeError, (3,), [1, 1])))
def split_with_sizes(input: Tensor, split_sizes, dim=0):
    """`split` into parts of these sizes. Raises: as `split`."""
    return input.split(list(members("split_with_sizes", split_sizes)), dim)


@composite(tensors=("indices",), method=False, differentiable=False,
           reference=lambda x, shape: np.unravel_index(x, shape),
           samples=lambda rng: (((rng.integers(0, 6, size), shape), {})
                                for size, shape in (((4,), (2, 3)), ((), (6,)), ((2, 2), (3, 2)))))
def unravel_index(indices: Tensor, shape):
    """The positions in a tensor of sizes `shape` of positions in its elements as a vector.

    A tuple of a tensor of int64 for each dim. Shapes: those of `indices`.
    Raises: ValueError for negative sizes, TypeError for indices that are no integers.

    >>> tensorlib.unravel_index(tensorlib.tensor([5, 1]), (2, 3))
    (tensor([1, 0]), tensor([2, 1]))
    """
    sizes = tuple(map(as_int, shape)) if isinstance(shape, (tuple, list)) else (as_int(shape),)
    if indices.is_floating_point() or indices.dtype.name == "bool":
        raise TypeError(f"unravel_index: indices must be integers, got {indices.dtype}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"unravel_index: sizes must be 0 or more, got {sizes}")
    indices, places = indices.long(), []
    for size in reversed(sizes):
        places.append(indices % size)
        indices = indices // size
    return tuple(reversed(places))


declared(__name__)
