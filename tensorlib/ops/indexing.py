"""Reading and writing parts of a tensor by index expressions."""

import numpy as np

from tensorlib._core.arrays.operands import refuse_batch, stands_in
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.ranges import arange
from tensorlib._core.index.gather import add_along, positions, take_along
from tensorlib._core.index.keys import parse, put, take
from tensorlib._core.layout import views
from tensorlib._core.reduce.masks import nonzero as true_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.comparison import where
from tensorlib.ops.declare import op, publish
from tensorlib.ops.samples import given, given_pairs

BOOL = BY_NAME["bool"]


# Keys to try, on a tensor of sizes (3, 4), each with the sizes that it picks.
KEYS = ((0, (4,)), ((slice(None), slice(None, None, -2)), (3, 2)), ((..., None), (3, 4, 1)),
        ([0, 2, 0], (3, 4)), (([0, 1], [1, 1]), (2,)))


def added_at(values, shape, key):
    """The reference of `spread_index`."""
    base = np.zeros(shape, values.dtype)
    np.add.at(base, key, values)
    return base


def put_at(x, values, key):
    """The reference of `index_put`."""
    x = x.copy()
    x[key] = values
    return x


@op(linear=True, public=False, method=False, reference=lambda x, key: x[key],
    prepare=lambda x, key: (x, parse(x, key)),
    samples=given(*(((3, 4), key) for key, _ in KEYS)))
def getitem(input: Tensor, index):
    """The elements that a parsed index expression picks: `x[key]`."""
    return take(input, index)


@getitem.vjp("input")
def getitem_vjp(g, input_shape, index):
    return spread_index(g, input_shape, index)


@op(linear=True, public=False, method=False, reference=added_at,
    prepare=lambda x, shape, key: (x, shape, parse(views.zeros(shape, x.dtype), key)),
    samples=given(*((picked, (3, 4), key) for key, picked in KEYS)))
def spread_index(input: Tensor, shape, index):
    """Zeros of sizes `shape` with `input` added where the index expression picks."""
    base = views.zeros(shape, input.dtype)
    put(base, index, input, True)
    return base


@spread_index.vjp("input")
def spread_index_vjp(g, index):
    return getitem(g, index)


@op(linear=True, public=False, method=False, reference=put_at,
    prepare=lambda x, values, key: (x, values, parse(x, key)),
    samples=given_pairs(*(((3, 4), picked, key) for key, picked in KEYS),
                        ((3, 4), (4,), slice(1, 3)), ((3, 4), (), ...)))
def index_put(input: Tensor, values: Tensor, index):
    """A copy of `input` with `values` where the index expression picks, as `x[key] = values`."""
    base = views.clone(input)
    put(base, index, views.to_dtype(values, input.dtype), False)
    return base


@index_put.vjp("input")
def index_put_vjp_input(g, values_shape, index):
    return index_put(g, g.new_zeros(()), index)


@index_put.vjp("values")
def index_put_vjp_values(g, index):
    picked = getitem(g, index)
    if not picks_twice(index):
        return picked
    # of values put at one place the last remains
    order = arange(picked.numel()).reshape(picked.shape)
    last = views.zeros(g.shape, order.dtype)
    put(last, index, order, False)
    return picked.where(take(last, index) == order, 0.0)


def picks_twice(index):
    """Whether an index expression picks an element more than once."""
    place = 0
    for one in index.places:
        array = one.numpy().reshape(-1)
        place = place * (array.max(initial=0) + 1) + array
    return bool(index.places) and np.bincount(place).max(initial=0) > 1


# ---- by position ---------------------------------------------------------------------------------

def nonzero(input, *, as_tuple=False):
    """The positions of the elements that are not zero: int64 (n, ndim), or a tuple of a vector for
    each dim."""
    refuse_batch("nonzero", input)
    places = true_places(input.detach())
    if not as_tuple:
        return places
    return places.reshape(-1, 1).unbind(1) if input.ndim == 0 else places.unbind(1)


def masked_select(input, mask: Tensor):
    """The elements where the mask holds, as a vector; both broadcast."""
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return input.expand(shape)[mask.expand(shape)]


def masked_fill(input, mask: Tensor, value):
    """A copy of `input` with `value` where the mask holds."""
    if input.dtype is BOOL and isinstance(value, int):
        value = bool(value)                      # a number does not change the dtype
    return where(mask, value, input)


def index_select(input, dim, index: Tensor):
    """The slices of `input` along `dim` at the positions of `index`, a vector."""
    dim = wrap("index_select", dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_select: index is supposed to be a vector, got {index.ndim} dims")
    return input[(slice(None),) * dim + (index if index.ndim else index.reshape(1),)]


def along(name, dim, index, shape):
    """The key that picks, along `dim`, the position that `index` holds at each of its places."""
    if index.ndim != len(shape):
        raise RuntimeError(
            f"{name}: index must have the same number of dimensions as input, got {index.ndim} and "
            f"{len(shape)}")
    for d, (size, limit) in enumerate(zip(index.shape, shape)):
        if d != dim and size > limit:
            raise RuntimeError(
                f"{name}: size of index {list(index.shape)} exceeds input {list(shape)} apart from "
                f"dimension {dim}")
    key = []
    for d in range(index.ndim):
        if d == dim:
            key.append(index)
        else:
            sizes = [1] * index.ndim
            sizes[d] = -1
            key.append(arange(index.shape[d]).reshape(sizes))
    return tuple(key)


def added_along(values, shape, dim, index):
    """The reference of `spread_along`."""
    base = np.zeros(shape, values.dtype)
    np.add.at(base, tuple(index if d == dim else places
                          for d, places in enumerate(np.indices(index.shape))), values)
    return base


# An index of every element, and a shorter one, each with its dim.
PLACES = ((0, np.array([[0, 2, 1, 0], [2, 2, 0, 1]])), (1, np.array([[3, 0], [1, 1], [0, 2]])))


@op(linear=True, public=False, method=False,
    reference=lambda x, dim, places: np.take_along_axis(x[:, :places.shape[1]] if dim == 0 else x,
                                                        places, dim),
    prepare=lambda x, dim, places: (x, dim, positions(x, dim, places)),
    samples=given(*(((3, 4), dim, places) for dim, places in PLACES)))
def gather(input: Tensor, dim, index):
    """The elements that checked positions pick along a dim."""
    return take_along(input, dim, index)


@gather.vjp("input")
def gather_vjp(g, input_shape, dim, index):
    return spread_along(g, input_shape, dim, index)


@op(linear=True, public=False, method=False, reference=added_along,
    samples=given(*((places.shape, (3, 4), dim, places) for dim, places in PLACES)))
def spread_along(input: Tensor, shape, dim, index):
    """Zeros of sizes `shape` with `input` added at checked positions along a dim."""
    return add_along(input, shape, dim, index)


@spread_along.vjp("input")
def spread_along_vjp(g, dim, index):
    return gather(g, dim, index)


_gather = gather


def gather(input, dim, index: Tensor):
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on: elements picked along a dim.

    Raises: RuntimeError, IndexError.
    """
    dim = wrap("gather", dim, input.ndim)
    if input.ndim == 0:
        return input.reshape(1)[index.reshape(-1)].reshape(index.shape)
    if stands_in(input) or stands_in(index):     # who knows how to index knows how to gather
        return input[along("gather", dim, index, input.shape)]
    return _gather(input, dim, positions(input, dim, index, input.requires_grad))


def take_along_dim(input, indices: Tensor, dim):
    """`gather` with broadcasting of the other dims."""
    return gather(input, dim, indices)


for _function in (nonzero, masked_select, masked_fill, index_select, gather, take_along_dim):
    publish(_function.__name__, _function, _function.__doc__)
