"""New arrays."""

import tensorlib as tl
from tensorlib.array_api.operands import as_shape, together


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """The numbers from `start` (0 where it stands alone) up to `stop`, which is left out."""
    if stop is None:
        start, stop = 0, start
    if (step > 0 and stop <= start) or (step < 0 and stop >= start):
        if dtype is None:
            whole = all(isinstance(value, int) for value in (start, stop, step))
            dtype = tl.int64 if whole else tl.get_default_dtype()
        return tl.empty((0,), dtype=dtype, device=device)
    return tl.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """Numbers, sequences and arrays of any library as an array.

    copy: None, where needed; False, an error where one is needed. Raises: ValueError.
    """
    return tl.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape, *, dtype=None, device=None):
    """An array whose elements are anything."""
    return tl.empty(as_shape(shape), dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """An array of the shape of `x` whose elements are anything."""
    return tl.empty_like(x, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A matrix with ones on its diagonal `k` above the main one, and zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return tl.eye(n_rows, n_cols, dtype=dtype, device=device)
    rows = tl.arange(n_rows, device=device)[:, None]
    columns = tl.arange(n_cols, device=device)
    k = max(-n_rows, min(k, n_cols))             # no diagonal is further away
    return (columns - rows == k).to(tl.get_default_dtype() if dtype is None else dtype)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of another library's, by DLPack."""
    return tl.from_dlpack(x, device=device, copy=copy)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of equal elements; of whole numbers it is int64, of others the default dtype."""
    return tl.full(as_shape(shape), fill_value, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """An array of equal elements, with the shape of `x`."""
    return tl.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` numbers at equal steps from `start` to `stop`, which may be left out."""
    if endpoint:
        return tl.linspace(start, stop, num, dtype=dtype, device=device)
    return tl.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays, indexing="xy"):
    """Arrays, each with the coordinates of one axis at all points of a grid."""
    if not arrays:
        return ()
    return tuple(tl.meshgrid(*together(*arrays), indexing=indexing))


def ones(shape, *, dtype=None, device=None):
    """An array of ones."""
    return tl.ones(as_shape(shape), dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """An array of ones with the shape of `x`."""
    return tl.ones_like(x, dtype=dtype, device=device)


def tril(x, /, *, k=0):
    """The lower triangles of matrices, with zeros above the diagonal `k`."""
    return tl.tril(x, k)


def triu(x, /, *, k=0):
    """The upper triangles of matrices, with zeros below the diagonal `k`."""
    return tl.triu(x, k)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros."""
    return tl.zeros(as_shape(shape), dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """An array of zeros with the shape of `x`."""
    return tl.zeros_like(x, dtype=dtype, device=device)
