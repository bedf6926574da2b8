"""Batching rules of operations that occur in gradients alone."""

from tensorlib._core.index.batch_keys import lifted, ndim_picked
from tensorlib.autograd.batch.rules import check_dims
from tensorlib.autograd.batch.values import aligned, batch_of, batched, is_at
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations


@batched(operations.softmax_backward, operations.log_softmax_backward)
def softmax_gradient(op, level, tensors, attributes):
    """The gradient along the dim, which is not that of the batch."""
    g, result = [batch_of(x, level) for x in tensors]
    dim = check_dims(op.name, attributes["dim"], g.ndim - 1)
    if g.ndim == 1:
        return op.function(g.unsqueeze(1), result.unsqueeze(1), dim).squeeze(1)
    return op.function(g, result, dim)


@batched(operations.put_along)
def put(op, level, tensors, attributes):
    """Each example put at its own places."""
    x, places = tensors[0], batch_of(attributes["places"], level)
    return op.function(x.value, places, check_dims(op.name, attributes["dim"], x.ndim),
                       attributes["size"])


@batched(operations.gather)
def picked(op, level, tensors, attributes):
    """Elements of each example at positions that they share."""
    x, index = tensors[0], attributes["index"]
    if max(x.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("gather: index must have the same number of dimensions as input, got "
                           f"{index.ndim} and {x.ndim}")
    dim = check_dims(op.name, attributes["dim"], x.ndim)
    picked = op.function(aligned(x, max(x.ndim, 1)), dim,
                         batch_of(index if index.ndim else index.reshape(1), level))
    return picked if index.ndim else picked.reshape((level.size,))


@batched(operations.spread_along)
def spread_back(op, level, tensors, attributes):
    """The elements of each example back at its own positions; what has no dims is a vector."""
    g, index, shape = tensors[0].value, attributes["index"], tuple(attributes["shape"])
    if index.ndim == 0:
        g, index = g.reshape((level.size, 1)), index.reshape(1)
    back = op.function(g, (level.size, *(shape or (1,))),
                       check_dims(op.name, attributes["dim"], len(shape)), batch_of(index, level))
    return back if shape else back.reshape((level.size,))


@batched(operations.slices_taken)
def slices_taken(op, level, tensors, attributes):
    """The slices of each example at positions that they share."""
    x, = tensors
    return op.function(aligned(x, max(x.ndim, 1)), attributes["dim"] + 1, attributes["index"])


@batched(operations.scattered)
def written(op, level, tensors, attributes):
    """The elements of each example at positions that they share."""
    x, src = (batch_of(y, level) for y in tensors)
    index = batch_of(attributes["index"], level)
    x, src, index = (y if y.ndim > 1 else y.reshape((level.size, 1)) for y in (x, src, index))
    out = op.function(x, src, attributes["dim"] + 1, index, attributes["adds"])
    return out.reshape((level.size, *tensors[0].shape))


@batched(operations.copy)
def copied(op, level, tensors, attributes):
    """The source in the layout and dtype of the first, example by example."""
    x, source = tensors
    source = aligned(source, x.ndim) if is_at(source, level) else source
    return op.function(batch_of(x, level), source)


# ---- indexing ------------------------------------------------------------------------------------

@batched(operations.spread_index)
def spread_out(op, level, tensors, attributes):
    """The gradient of each example at the positions that its index picked."""
    return op.function(tensors[0].value, (level.size, *attributes["shape"]),
                       lifted(attributes["index"]))


@batched(operations.put_index, operations.add_index)
def put_in(op, level, tensors, attributes):
    """Values of each example put, or added, at the positions that its index picks."""
    (x, values), index = tensors, attributes["index"]
    count = ndim_picked(index, x.ndim)
    more = max(0, values.ndim - count)
    if more and set(values.shape[:more]) == {1}:           # which may stand in front
        values = values.reshape(tuple(values.shape)[more:])
    if is_at(values, level):
        values = aligned(values, count)
    return op.function(batch_of(x, level), values, lifted(index))


# ---- views ---------------------------------------------------------------------------------------

@batched(operations.strided_part)
def viewed(op, level, tensors, attributes):
    """A view of each example; the bases lie one after the other."""
    x, = tensors
    return op.function(x.value, lifted_place(level, x.shape, attributes["place"]))


@batched(operations.strided_view)
def shown(op, level, tensors, attributes):
    """What each example shows, as if it lay alone and row by row."""
    sizes, strides, offset, _ = attributes["place"]
    return FUNCTIONS["as_strided"](tensors[0], sizes, strides, offset).value


@batched(operations.spread_view)
def view_spread(op, level, tensors, attributes):
    """The gradient of a view of each example, in zeros like its base."""
    shape = tuple(attributes["shape"])
    return op.function(tensors[0].value, (level.size, *shape),
                       lifted_place(level, shape, attributes["place"]))


@batched(operations.view_scatter)
def view_written(op, level, tensors, attributes):
    """The base of each example with its view replaced."""
    x, value = tensors
    return op.function(batch_of(x, level), batch_of(value, level),
                       lifted_place(level, x.shape, attributes["place"]))


@batched(operations.linear_pieces)
def linked_in_steps(op, level, tensors, attributes):
    """The batch of both."""
    return op.function(*(batch_of(x, level) for x in tensors))


def lifted_place(level, shape, place):
    """The place of a batch of views, where the bases lie one after the other."""
    sizes, strides, offset, base_strides, base_offset = place
    step = 1 + sum((size - 1) * abs(stride) for size, stride in zip(shape, base_strides))
    return ((level.size, *sizes), (max(step, 1), *strides), offset,
            (max(step, 1), *base_strides), base_offset)
