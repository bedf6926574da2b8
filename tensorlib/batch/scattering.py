"""Batching rules of scatter operations, which write at positions along a dim.

A rule takes the level and the function's arguments. Elements along a dim are put by one call on the
batch, whose other dims go along; slices too, as elements where the positions differ.
"""

from tensorlib._core.base.shape import wrap
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.batch.values import batch_of, batched, batched_call, is_at
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.late import operations
from tensorlib.ops.index.indexing import fill_value, vector

def lifted(x, level, like):
    """The batch of `x`, with a dim where its examples or those of `like` are 0-d."""
    value = batch_of(x, level)
    return value if like.ndim and x.ndim else value.reshape((level.size, -1))


def elements(function):
    """The rule of `scatter` or `scatter_add`."""
    def rule(level, input, dim, index, src):
        dim = wrap(function.__name__, dim, input.ndim) + 1
        src = lifted(src, level, input) if isinstance(src, Tensor) else src
        out = function(lifted(input, level, input), dim, lifted(index, level, input), src)
        return out.reshape((level.size, *input.shape))
    return rule


def slices(function, of_elements):
    """The rule of `index_copy` or `index_add`; of_elements: the function that does it to each."""
    def rule(level, input, dim, index, source):
        name = function.__name__
        place = wrap(name, dim, input.ndim)
        index = vector(name, index)
        x, source = lifted(input, level, input), lifted(source, level, input)
        if not is_at(index, level):
            return function(x, place + 1, index, source).reshape((level.size, *input.shape))
        sizes = [1] * x.ndim
        sizes[0], sizes[place + 1] = level.size, index.numel()
        shape = (*x.shape[:place + 1], index.numel(), *x.shape[place + 2:])
        if source.shape != shape:
            raise RuntimeError(f"{name}: source must have the shape {shape[1:]} of the slices that "
                               f"index picks, got {tuple(source.shape[1:])}")
        index = index.value.reshape(sizes).expand(shape)
        return of_elements(x, place + 1, index, source).reshape((level.size, *input.shape))
    return rule


@batched_call(operations.scatter_reduce)
def reduced(level, input, dim, index, src, reduce, include_self):
    """As `scatter_add`, by another reduction."""
    dim = wrap("scatter_reduce", dim, input.ndim) + 1
    out = FUNCTIONS["scatter_reduce"](
        lifted(input, level, input), dim, lifted(index, level, input), lifted(src, level, input),
        reduce, include_self=include_self)
    return out.reshape((level.size, *input.shape))


@batched(operations.scatter_reduced)
def reduced_at(op, level, tensors, attributes):
    """The same of positions that were checked."""
    (x, src), index = tensors, attributes["index"]
    return op.function(lifted(x, level, x), lifted(src, level, x), attributes["dim"] + 1,
                       lifted(index, level, x), attributes["reduce"]).reshape(
                           (level.size, *x.shape))


@batched_call(operations.index_fill)
def filled(level, input, dim, index, value):
    """As `index_copy` of the value, repeated."""
    place = wrap("index_fill", dim, input.ndim)
    index, value = vector("index_fill", index), fill_value("index_fill", value, input)
    shape = (*input.shape[:place], index.numel(), *input.shape[place + 1:]) if input.ndim else (
        index.numel(),)
    return copied(level, input, dim, index, value.expand(shape))


scatter, scatter_add = FUNCTIONS["scatter"], FUNCTIONS["scatter_add"]
index_copy, index_add = FUNCTIONS["index_copy"], FUNCTIONS["index_add"]
batched_call(scatter)(elements(scatter))
batched_call(scatter_add)(elements(scatter_add))
batched_call(index_add)(slices(index_add, scatter_add))
copied = batched_call(index_copy)(slices(index_copy, scatter))
