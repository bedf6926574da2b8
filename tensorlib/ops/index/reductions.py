"""The reductions of elements that meet at a position, and their references by NumPy."""

import numpy as np

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
