"""Batching rules of scatter operations, which write at positions along a dim.

Elements along a dim are put by one call on the batch, whose other dims go along; slices too, as
elements where the positions differ.
"""

from tensorlib._core.base.shape import wrap
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch.values import batch_of, batched, batched_call, is_at
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations
from tensorlib.ops.index.indexing import fill_value, vector


def lifted(x, level, like):
    """The batch of `x`, with a dim where its examples or those of `like` are 0-d."""
    value = batch_of(x, level)
    return value if like.ndim and x.ndim else value.reshape((level.size, -1))


@batched_call(operations.scatter)
def put_elements(op, level, input, dim, index, src=None, *, value=None, reduce=None):
    """By one call on the batch, whose other dims go along."""
    if (src is None) == (value is None) or reduce not in (None, "multiply"):
        return NotImplemented                    # refused there, or done by others
    if reduce is not None:
        raise RuntimeError("scatter: reduce='multiply' has no batching rule")
    return of_elements(op, level, input, dim, index, value if src is None else src)


@batched_call(operations.scatter_add)
def of_elements(op, level, input, dim, index, src, **options):
    """As `scatter`."""
    dim = wrap(op.name, dim, input.ndim) + 1
    src = lifted(src, level, input) if isinstance(src, Tensor) else src
    out = op.function(lifted(input, level, input), dim, lifted(index, level, input), src, **options)
    return out.reshape((level.size, *input.shape))


@batched_call(operations.scatter_reduce)
def reduced(op, level, input, dim, index, src, reduce, *, include_self=True):
    """As `scatter`, by another reduction."""
    return of_elements(op, level, input, dim, index, src, reduce=reduce, include_self=include_self)


@batched(operations.scatter_reduced)
def reduced_at(op, level, tensors, attributes):
    """The same of positions that were checked."""
    (x, src), index = tensors, attributes["index"]
    return op.function(lifted(x, level, x), lifted(src, level, x), attributes["dim"] + 1,
                       lifted(index, level, x), attributes["reduce"]).reshape(
                           (level.size, *x.shape))


def slices(op, level, input, dim, index, source, of_each):
    """The rule of `index_copy` or `index_add`; of_each: what does it to elements."""
    place = wrap(op.name, dim, input.ndim)
    index = vector(op.name, index)
    x, source = lifted(input, level, input), lifted(source, level, input)
    if not is_at(index, level):
        return op.function(x, place + 1, index, source).reshape((level.size, *input.shape))
    sizes = [1] * x.ndim
    sizes[0], sizes[place + 1] = level.size, index.numel()
    shape = (*x.shape[:place + 1], index.numel(), *x.shape[place + 2:])
    if source.shape != shape:
        raise RuntimeError(f"{op.name}: source must have the shape {shape[1:]} of the slices that "
                           f"index picks, got {tuple(source.shape[1:])}")
    index = index.value.reshape(sizes).expand(shape)
    return of_each(x, place + 1, index, source).reshape((level.size, *input.shape))


@batched_call(operations.index_copy)
def copied(op, level, input, dim, index, source):
    """Slices as elements where the positions differ."""
    return slices(op, level, input, dim, index, source, FUNCTIONS["scatter"])


@batched_call(operations.index_add)
def added(op, level, input, dim, index, source, *, alpha=1):
    """As `index_copy`."""
    source = source * alpha if alpha != 1 else source
    return slices(op, level, input, dim, index, source, FUNCTIONS["scatter_add"])


@batched_call(operations.index_fill)
def filled(op, level, input, dim, index, value):
    """As `index_copy` of the value, repeated."""
    place = wrap("index_fill", dim, input.ndim)
    index, value = vector("index_fill", index), fill_value("index_fill", value, input)
    shape = (*input.shape[:place], index.numel(), *input.shape[place + 1:]) if input.ndim else (
        index.numel(),)
    return copied(operations.index_copy, level, input, dim, index, value.expand(shape))
