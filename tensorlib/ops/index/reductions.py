"""The reductions of elements that meet at a position, and their references by NumPy."""

import numpy as np

from tensorlib._core.create.ranges import arange
from tensorlib.ops.declare import FUNCTIONS

cat = FUNCTIONS["cat"]
UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum,
          "amin": np.minimum}


def keys_along(dim, index, shape):
    """NumPy's key for positions along a dim."""
    return tuple(index if d == dim % len(shape) else places
                 for d, places in enumerate(np.indices(index.shape)))


def combined_at(x, dim, index, src, reduce, include_self=True):
    """The reference of `scatter_reduce`."""
    base = np.atleast_1d(x).copy()
    key = keys_along(dim, np.atleast_1d(index), base.shape)
    src = np.atleast_1d(src)[tuple(map(slice, np.atleast_1d(index).shape))]
    counts = np.full(base.shape, int(include_self))
    np.add.at(counts, key, 1)
    if not include_self:
        base[key] = neutral(base.dtype, reduce)
    UFUNCS[reduce].at(base, key, src)
    if reduce == "mean":
        base = (base // np.maximum(counts, 1) if base.dtype.kind in "iu" else
                base / np.maximum(counts, 1))
    return base.reshape(x.shape).astype(x.dtype)


def neutral(dtype, reduce):
    """What changes nothing: the number that a reduction begins with."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    least = reduce == "amax"
    if dtype.kind == "f":
        return -np.inf if least else np.inf
    return np.iinfo(dtype).min if least else np.iinfo(dtype).max


def combined_slices(x, dim, index, source, reduce, include_self=True):
    """The reference of `index_reduce`."""
    sizes = [1] * x.ndim
    sizes[dim] = -1
    return combined_at(x, dim, np.broadcast_to(index.reshape(sizes), source.shape), source, reduce,
                       include_self)


def factors_at(input, src, place):
    """Elements and those of `src` that meet at places, as a row of factors for each place.

    Returns this matrix, filled up with ones, and where each factor is: row, column and order.
    """
    places = arange(input.numel())
    rows = cat((places, place.reshape(-1)))
    order = rows.argsort(stable=True)
    row, counts = rows[order], rows.bincount(minlength=input.numel())
    column = arange(row.numel()) - (counts.cumsum(0) - counts)[row]
    factors = cat((input.reshape(-1), src.reshape(-1)))[order]
    ones = factors.new_ones(input.numel(), int(counts.amax()) if input.numel() else 1)
    return ones.index_put((row, column), factors), row, column, order


def products_at(input, src, place):
    """The products of the elements and those of `src` that meet at places."""
    return factors_at(input, src, place)[0].prod(1).reshape(input.shape)


def products_of_others(input, src, place):
    """The products of all factors but one, for each element and each of `src`, that meet at places.

    They have all derivatives, also where several factors are zero: for each factor those before
    and after it are multiplied.
    """
    table, row, column, order = factors_at(input, src, place)
    one = table.new_ones(table.shape[0], 1)
    before = cat((one, table[:, :-1]), 1).cumprod(1)
    after = cat((table[:, 1:], one), 1).flip(1).cumprod(1).flip(1)
    found = (before * after)[row, column][order.argsort()]
    own, others = found.split((input.numel(), src.numel()))
    return own.reshape(input.shape), others.reshape(src.shape)
