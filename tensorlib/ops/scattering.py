"""Copies of a tensor with other values put, or added, at positions along a dim; and in place."""

from tensorlib._core.arrays.operands import in_batch, stands_in
from tensorlib._core.base.shape import wrap
from tensorlib._core.index.keys import parse
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import in_place, publish
from tensorlib.ops.indexing import along, index_put, spread_index

# ---- slices along a dim --------------------------------------------------------------------------


def slices_at(name, input, dim, index):
    """The parsed key of the positions `index` along a dim, and the shape of what it picks.

    Raises: RuntimeError, IndexError.
    """
    dim = wrap(name, dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"{name}: index is supposed to be a vector, got {index.ndim} dims")
    index = index.reshape(-1)
    if input.ndim == 0:
        return parse(input.reshape(1), index), index.shape
    shape = input.shape[:dim] + index.shape + input.shape[dim + 1:]
    return parse(input, (slice(None),) * dim + (index,)), shape


def checked_source(name, input, shape, source):
    """The slices to put. Raises: RuntimeError for another shape or dtype."""
    if source.dtype != input.dtype:
        raise RuntimeError(f"{name}: self and source must have the same dtype, got {input.dtype} "
                           f"and {source.dtype}")
    if source.shape != shape and not (input.ndim == 0 and source.numel() == shape.numel()):
        raise RuntimeError(f"{name}: source must have the shape {tuple(shape)} of the slices that "
                           f"index picks, got {tuple(source.shape)}")
    return source.reshape(shape)


def put_at(input, key, values):
    """A copy of `input`, which may be 0-d, with `values` where the key picks."""
    if input.ndim:
        return index_put(input, values, key)
    return index_put(input.reshape(1), values, key).reshape(())


def index_copy(input, dim, index: Tensor, source: Tensor):
    """A copy of `input` with the slices of `source` at the positions of `index`, a vector.

    Raises: RuntimeError for other shapes or dtypes, IndexError.
    """
    if any(map(stands_in, (input, index, source))):
        return in_batch("index_copy", (input, dim, index, source))
    key, shape = slices_at("index_copy", input, dim, index)
    return put_at(input, key, checked_source("index_copy", input, shape, source))


def index_add(input, dim, index: Tensor, source: Tensor, *, alpha=1):
    """A copy of `input` with alpha * `source` added at the positions of `index`, a vector.

    Raises: RuntimeError for other shapes or dtypes, IndexError.
    """
    if any(map(stands_in, (input, index, source))):
        return in_batch("index_add", (input, dim, index, source * alpha if alpha != 1 else source))
    key, shape = slices_at("index_add", input, dim, index)
    source = checked_source("index_add", input, shape, source)
    added = spread_index(source, input.shape or (1,), key).reshape(input.shape)
    return input.add(added, alpha=alpha)


def index_fill(input, dim, index: Tensor, value):
    """A copy of `input` with a number, or a 0-d tensor, at the positions of `index`, a vector.

    Raises: RuntimeError for a value with dims, IndexError.
    """
    if any(map(stands_in, (input, index, value))):
        return in_batch("index_fill", (input, dim, index, value))
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError("index_fill: value must be a number or a 0-d tensor, got "
                           f"{value.ndim} dims")
    key, _ = slices_at("index_fill", input, dim, index)
    return put_at(input, key, value if isinstance(value, Tensor) else input.new_full((), value))


# ---- elements along a dim ------------------------------------------------------------------------

def elements_at(name, input, dim, index, src):
    """The parsed key of `index` along a dim, and the part of `src` (or a number) that goes there.

    Raises: RuntimeError, IndexError.
    """
    dim = wrap(name, dim, input.ndim)
    if not isinstance(src, Tensor):
        src = input.new_full((), src)
    elif src.dtype != input.dtype:
        raise RuntimeError(f"{name}: expected self.dtype to be equal to src.dtype, got "
                           f"{input.dtype} and {src.dtype}")
    elif input.ndim == 0:
        src = src.reshape(-1)[:index.numel()]
    elif src.ndim != index.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
        raise RuntimeError(f"{name}: size of index {list(index.shape)} exceeds that of src "
                           f"{list(src.shape)}")
    else:
        src = src[tuple(slice(n) for n in index.shape)]
    if input.ndim == 0:
        return parse(input.reshape(1), index.reshape(-1)), src
    return parse(input, along(name, dim, index, input.shape)), src


def scatter(input, dim, index: Tensor, src):
    """A copy of `input` with out[index[i][j]][j] = src[i][j] for dim 0, and so on.

    `src` is a tensor at least as large as `index`, or a number. Where positions meet, one wins.
    Raises: RuntimeError, IndexError.
    """
    if any(map(stands_in, (input, index, src))):
        return in_batch("scatter", (input, dim, index, src))
    key, src = elements_at("scatter", input, dim, index, src)
    return put_at(input, key, src)


def scatter_add(input, dim, index: Tensor, src: Tensor):
    """A copy of `input` with src[i][j] added to out[index[i][j]][j] for dim 0, and so on.

    Raises: RuntimeError, IndexError.
    """
    if any(map(stands_in, (input, index, src))):
        return in_batch("scatter_add", (input, dim, index, src))
    key, src = elements_at("scatter_add", input, dim, index, src)
    return input + spread_index(src, input.shape or (1,), key).reshape(input.shape)


for _function in (index_copy, index_add, index_fill, scatter, scatter_add):
    publish(_function.__name__, _function, _function.__doc__)
for _name in ("index_copy", "index_add", "index_fill", "masked_fill", "scatter", "scatter_add"):
    in_place(_name)
