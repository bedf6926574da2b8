"""Views with any strides of a storage, and windows along a dim as such views."""

import math
from functools import lru_cache

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.shape import listed, wrap
from tensorlib._core.create.ranges import arange
from tensorlib._core.layout import overlapping
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import composite, op
from tensorlib.ops.foreign import within_memory
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import given, refusals

WHOLE = slice(None)


# ---- any strides ---------------------------------------------------------------------------------

def positions_at(sizes, strides, offset):
    """Where in the storage each element lies, as an array."""
    places = np.full((1,) * len(sizes), offset, np.int64)
    for d, (size, stride) in enumerate(zip(sizes, strides)):
        steps = np.arange(size, dtype=np.int64) * stride
        places = places + steps.reshape([-1 if k == d else 1 for k in range(len(sizes))])
    return np.broadcast_to(places, sizes)


KEPT = 1 << 10               # elements up to which their places are kept, which takes 8 kB for each
kept_positions = lru_cache(64)(positions_at)


def shown(x, size, stride, storage_offset=None):
    """The reference of `as_strided`."""
    return x.reshape(-1)[positions_at(size, stride, storage_offset or 0)]


@op(linear=True, view=True, public=False, method=False, kernel=overlapping.strided_view,
    reference=lambda x, place: shown(x, *place[:3]),
    samples=given(((1,), ((2, 1), (0, 0), 0, (1,))), ((), ((1,), (3,), 0, ()))))
def strided_view(input: Tensor, place):
    """The view of the storage of `input` that `as_strided` gives.

    place: sizes and strides of the view, its offset from the first element of `input`, and the
    strides of `input`.
    """


@composite(tensors=("input",), reference=shown,
           samples=given(((1,), (2, 1), (0, 0)), ((), (1,), (3,)), ((1, 1), (0, 3), (1, 1))),
           errors=refusals(
               (RuntimeError, (3,), (2,), (1, 1)), (RuntimeError, (3,), (4,), (1,)),
               (RuntimeError, (3,), (2,), (-1,)), (RuntimeError, (3,), (2,), (1,), 2),
               (RuntimeError, (3,), (2,), (1,), -1), (TypeError, (3,), (1.5,), (1,))), view="maybe",
               complex=True)
def as_strided(input: Tensor, size, stride, storage_offset=None):
    """The elements of the storage of `input` at places that are `stride` apart, as a view.

    storage_offset: the place of the first, by default that of `input`.
    Shapes: (*) -> size. Gradient: to the elements of `input` that are shown, each time they are.
    Raises: RuntimeError for sizes and strides of different numbers, negative ones, and places
    outside of the storage; TypeError.

    >>> tensorlib.arange(4).as_strided((2, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3]])
    """
    place = overlapping.place_of(input, size, stride, storage_offset)
    if place is None:
        sizes, strides, offset = place_of(size, stride, storage_offset)
        further = 0 if offset is None else offset - input.storage_offset()
        place = sizes, strides, further, tuple(input.stride())
    return strided_view(input, place)


def place_of(size, stride, storage_offset):
    """Sizes, strides and the offset, or None, as ints. Raises: TypeError."""
    return (tuple(integer("as_strided", "each size", n) for n in listed(size)),
            tuple(integer("as_strided", "each stride", n) for n in listed(stride)),
            storage_offset if storage_offset is None else integer(
                "as_strided", "storage_offset", storage_offset))


@as_strided.formula
def as_strided_formula(input, size, stride, storage_offset=None):
    """As if each example lay row by row."""
    sizes, strides, offset = place_of(size, stride, storage_offset)
    if len(sizes) != len(strides):
        raise RuntimeError("as_strided: sizes and strides must be of one length, got "
                           f"{sizes} and {strides}")
    return input.reshape(-1)[from_numpy(positions_at(sizes, strides, offset or 0))]


def in_order_of_memory(shape, strides):
    """The dims of a tensor whose elements lie without gaps, each for itself, the outermost first;
    None of another."""
    order = sorted((d for d, size in enumerate(shape) if size > 1), key=lambda d: -strides[d])
    expected = 1
    for d in reversed(order):
        if strides[d] != expected:
            return None
        expected *= shape[d]
    return order + [d for d, size in enumerate(shape) if size == 1]


def both_positions(shape, place):
    """Where the view and the input lie, counted from the first of all, and how many places."""
    sizes, strides, offset, own_strides = place
    view, own = within_memory("as_strided", lambda: (
        positions_at(sizes, strides, offset), positions_at(shape, own_strides, 0)))
    if not (view.size and own.size):
        return None
    first = min(view.min(), own.min())
    return (from_numpy((view - first).reshape(-1)), from_numpy((own - first).reshape(-1)),
            int(max(view.max(), own.max()) - first) + 1)


@strided_view.vjp("input")
def strided_view_vjp(g, input_shape, place):
    """What each place of the storage has, shared by the elements that lie there."""
    sizes, strides, offset, own_strides = place
    if 0 in sizes or 0 in input_shape:
        return g.new_zeros(input_shape)
    order = in_order_of_memory(input_shape, own_strides)
    if order is not None:
        view = within_memory("as_strided", lambda: positions_at(sizes, strides, offset)).reshape(-1)
        first, numel = min(int(view.min()), 0), math.prod(input_shape)
        length = max(int(view.max()) + 1, numel) - first
        storage = g.new_zeros((length,)).index_add(0, from_numpy(view - first), g.reshape(-1))
        own = storage[-first:numel - first].reshape([input_shape[d] for d in order])
        return own.permute([order.index(d) for d in range(len(order))])
    view, own, length = both_positions(tuple(input_shape), place)
    storage = g.new_zeros((length,)).index_add(0, view, g.reshape(-1))
    sharing = g.new_zeros((length,)).index_add(0, own, g.new_ones((own.numel(),)))
    return (storage[own] / sharing[own]).reshape(input_shape)


@strided_view.jvp
def strided_view_jvp(d_input, input_shape, place):
    """The same view of a storage that has the tangent at the places of the input."""
    found = both_positions(tuple(input_shape), place)
    if found is None:
        return d_input.new_zeros(place[0])
    view, own, length = found
    storage = d_input.new_zeros((length,)).index_copy(0, own, d_input.reshape(-1))
    return storage[view].reshape(place[0])


@composite(tensors=("input", "src"), reference=lambda x, src, size, stride, storage_offset=None: (
    put_at(x, src, size, stride, storage_offset or 0)),
    samples=lambda rng: (((rng.uniform(-2, 2, (2, 3)), rng.uniform(-2, 2, (2, 2)), (2, 2), (3, 1),
                           1), {}) for _ in range(1)),
    errors=lambda: iter([((np.ones(4), np.ones(3), (2,), (1,)), {}, RuntimeError)]), complex=True)
def as_strided_scatter(input: Tensor, src: Tensor, size, stride, storage_offset=None):
    """A copy of `input`, row by row, with `src` at the places that `as_strided` shows.

    Shapes: (*), size -> (*). Raises: RuntimeError for another shape of `src`, and as `as_strided`.
    """
    sizes = tuple(integer("as_strided_scatter", "each size", n) for n in listed(size))
    strides = tuple(integer("as_strided_scatter", "each stride", n) for n in listed(stride))
    offset = integer("as_strided_scatter", "storage_offset", storage_offset or 0)
    if tuple(src.shape) != sizes or len(strides) != len(sizes):
        raise RuntimeError("as_strided_scatter: expected src to have the sizes of the slice, got "
                           f"{list(src.shape)} for {sizes} and {strides}")
    furthest = offset + sum((n - 1) * step for n, step in zip(sizes, strides))
    if min((*sizes, *strides, offset), default=0) < 0 or 0 not in sizes and (
            furthest >= input.numel()):
        raise RuntimeError(f"as_strided_scatter: sizes {sizes}, strides {strides} and offset "
                           f"{offset} are negative or out of bounds for {input.numel()} elements")
    find = kept_positions if src.numel() <= KEPT else positions_at
    places = within_memory("as_strided_scatter", lambda: find(sizes, strides, offset))
    src = src.to(input.dtype).reshape(-1)
    return input.reshape(-1).scatter(0, from_numpy(places.reshape(-1)), src).reshape(input.shape)


def put_at(x, src, size, stride, offset):
    """The reference of `as_strided_scatter`."""
    flat = x.reshape(-1).copy()
    flat[positions_at(size, stride, offset)] = src
    return flat.reshape(x.shape)


# ---- windows along a dim -------------------------------------------------------------------------

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
    """The same windows of dx."""
    return d_input.unfold(dimension, size, step)


declared(__name__)
