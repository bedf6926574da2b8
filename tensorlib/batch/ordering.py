"""Batching rules of operations that look along one dim for an order: positions in it."""

from tensorlib.batch.rules import check_dims
from tensorlib.batch.values import aligned, rule


@rule("argsort", "top_order", "kth_order")
def ordered(op, level, tensors, attributes):
    """Along one dim of each example."""
    x, = tensors
    dim = check_dims(op.name, attributes["dim"], x.ndim)
    out = op.function(aligned(x, max(x.ndim, 1)), **{**attributes, "dim": dim})
    return out if x.ndim else out.squeeze(1)
