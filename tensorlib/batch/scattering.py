"""Batching rules of functions that put values at positions along a dim.

A rule takes the level and the function's arguments. Elements along a dim are put by one call on the
batch, whose other dims go along; slices too, as elements where the positions differ.
"""

from functools import partial

from tensorlib._core.base.shape import wrap
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.batch.values import is_at, rule, batch_of
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.index.indexing import fill_value, vector

ELEMENTS = {"index_copy": "scatter", "index_add": "scatter_add"}


def lifted(x, level, like):
    """The batch of `x`, with a dim where its examples or those of `like` are 0-d."""
    value = batch_of(x, level)
    return value if like.ndim and x.ndim else value.reshape((level.size, -1))


def elements(name, level, input, dim, index, src):
    """`scatter` and `scatter_add`."""
    dim = wrap(name, dim, input.ndim) + 1
    src = lifted(src, level, input) if isinstance(src, Tensor) else src
    out = FUNCTIONS[name](lifted(input, level, input), dim, lifted(index, level, input), src)
    return out.reshape((level.size, *input.shape))


def slices(name, level, input, dim, index, source):
    """`index_copy` and `index_add`."""
    place = wrap(name, dim, input.ndim)
    index = vector(name, index)
    x, source = lifted(input, level, input), lifted(source, level, input)
    function = FUNCTIONS[name]
    if is_at(index, level):
        function = FUNCTIONS[ELEMENTS[name]]
        sizes = [1] * x.ndim
        sizes[0], sizes[place + 1] = level.size, index.numel()
        shape = (*x.shape[:place + 1], index.numel(), *x.shape[place + 2:])
        if source.shape != shape:
            raise RuntimeError(f"{name}: source must have the shape {shape[1:]} of the slices that "
                               f"index picks, got {tuple(source.shape[1:])}")
        index = index.value.reshape(sizes).expand(shape)
    return function(x, place + 1, index, source).reshape((level.size, *input.shape))


@rule("scatter_reduce")
def reduced(level, input, dim, index, src, reduce, include_self):
    """As `scatter_add`, by another reduction."""
    dim = wrap("scatter_reduce", dim, input.ndim) + 1
    out = FUNCTIONS["scatter_reduce"](
        lifted(input, level, input), dim, lifted(index, level, input), lifted(src, level, input),
        reduce, include_self=include_self)
    return out.reshape((level.size, *input.shape))


@rule("scatter_reduced")
def reduced_at(op, level, tensors, attributes):
    """The same of positions that were checked."""
    (x, src), index = tensors, attributes["index"]
    return op.function(lifted(x, level, x), lifted(src, level, x), attributes["dim"] + 1,
                       lifted(index, level, x), attributes["reduce"]).reshape(
                           (level.size, *x.shape))


@rule("index_fill")
def filled(level, input, dim, index, value):
    """As `index_copy` of the value, repeated."""
    place = wrap("index_fill", dim, input.ndim)
    index, value = vector("index_fill", index), fill_value("index_fill", value, input)
    shape = (*input.shape[:place], index.numel(), *input.shape[place + 1:]) if input.ndim else (
        index.numel(),)
    return slices("index_copy", level, input, dim, index, value.expand(shape))


for _name in ("scatter", "scatter_add"):
    rule(_name)(partial(elements, _name))
for _name in ELEMENTS:
    rule(_name)(partial(slices, _name))
