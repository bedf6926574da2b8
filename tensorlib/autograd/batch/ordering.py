"""Batching rules of operations along one dim: sorting, searching, scans."""

from tensorlib.autograd.batch.rules import along, check_dims
from tensorlib.autograd.batch.values import batch_of, batched, is_at
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations

batched(operations.argsort, operations.top_order, operations.kth_order, operations.mode_order,
        operations.running_extremes, operations.running_product, operations.logcumsumexp)(along)


@batched(operations.middle)
def middles(op, level, tensors, attributes):
    """The median of all elements of each example."""
    x, = tensors
    rows = x.value.reshape((level.size, x.numel()))
    return FUNCTIONS["nanmedian" if attributes["skip_nan"] else "median"](rows, 1)[0]


@batched(operations.searched)
def searched(op, level, tensors, attributes):
    """The values of each example in its own rows, or in a row that all share."""
    sequence, values = tensors
    if not is_at(sequence, level) and sequence.ndim == 1:
        return op.function(sequence, values.value, **attributes)
    sequence, values = batch_of(sequence, level), batch_of(values, level)
    shape = values.shape
    if sequence.ndim == 2:
        values = values.reshape((level.size, -1))
    return op.function(sequence, values, **attributes).reshape(shape)


@batched(operations.recurrence)
def recurring(op, level, tensors, attributes):
    """Along one dim of each example."""
    x, factors = tensors
    dim = check_dims(op.name, attributes["dim"], x.ndim)
    if not x.ndim:
        return batch_of(x, level)
    return op.function(batch_of(x, level), batch_of(factors, level), dim, attributes["reverse"])
