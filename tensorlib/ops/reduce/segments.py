"""Reductions of segments: of runs of elements, one after the other, of lengths that differ."""

from math import inf, nan

from tensorlib._core.create.ranges import arange
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.index.replacing import scatter_reduce
from tensorlib.ops.late import declared
from tensorlib.ops.order.searching import searchsorted
from tensorlib.ops.publish import publish

# what each reduction is called by `scatter_reduce`, and that of nothing
KINDS = {"sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1), "max": ("amax", -inf),
         "min": ("amin", inf)}


def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None,
                   indices: Tensor | None = None, offsets: Tensor | None = None, axis: int = 0,
                   unsafe: bool = False, initial: float | None = None):
    """The sum, mean, product, maximum or minimum of each segment along `axis`.

    The segments are given by their `lengths`, or by `offsets`, where each begins and, last, where
    the last ends; the dims before the axis are those of both. initial: what each begins with.
    Shapes: (*B, N, *), (*B, S) -> (*B, S, *).
    Raises: RuntimeError for other reductions, an axis that is not the last dim of the lengths, and
    lengths that do not sum to N unless `unsafe`; NotImplementedError for `indices`.

    >>> x = tensorlib.tensor([1., 2., 3.])
    >>> tensorlib.segment_reduce(x, "sum", lengths=tensorlib.tensor([2, 0, 1]))
    tensor([3., 0., 3.])
    """
    if reduce not in KINDS:
        raise RuntimeError(f"segment_reduce: reduce must be one of {', '.join(KINDS)}, got "
                           f"{reduce!r}")
    if indices is not None:
        raise NotImplementedError("segment_reduce: indices are not supported; give lengths or "
                                  "offsets")
    given = offsets if lengths is None else lengths
    if given is None:
        raise RuntimeError("segment_reduce: either lengths or offsets must be given")
    axis = axis + data.ndim if axis < 0 else axis
    if axis != given.ndim - 1 or axis >= data.ndim:
        raise RuntimeError(f"segment_reduce: axis must be the last dim of lengths and offsets, "
                           f"{given.ndim - 1}, got {axis} for {data.ndim} dims")
    if data.shape[:axis] != given.shape[:-1]:
        raise RuntimeError(f"segment_reduce: dims before the axis differ: {tuple(data.shape)} and "
                           f"{tuple(given.shape)}")
    if lengths is not None:
        check_lengths(lengths, data.shape[axis], unsafe)
        offsets = lengths.new_zeros((*lengths.shape[:-1], lengths.shape[-1] + 1))
        offsets[..., 1:] = lengths.cumsum(-1)
    return reduced(data, reduce, offsets, axis, initial)


def check_lengths(lengths, size, unsafe):
    """Raises RuntimeError unless lengths are those of parts of `size` elements."""
    if not unsafe and ((lengths < 0).any() or (lengths.sum(-1) != size).any()):
        raise RuntimeError("segment_reduce: lengths must not be negative and must sum to the size "
                           f"along the axis, {size}, unless unsafe")


def reduced(data, reduce, offsets, axis, initial):
    """`segment_reduce` of segments that begin at offsets, of which there is one more."""
    kind, neutral = KINDS[reduce]
    count, size = offsets.shape[-1] - 1, data.shape[axis]
    places = arange(size).expand((*data.shape[:axis], size)).contiguous()
    which = searchsorted(offsets.contiguous(), places, right=True) - 1
    which = which.where((which >= 0) & (which < count), count)     # of no segment: one is added
    within = (..., *(None,) * (data.ndim - axis - 1))
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1:])
    start = data.new_full(shape, neutral if initial is None else initial)
    found = scatter_reduce(start, axis, which[within].expand(data.shape), data, kind)
    found = found.narrow(axis, 0, count)
    if reduce != "mean":
        return found
    lengths = offsets.diff(dim=-1)[within]
    mean = found / lengths.clamp(min=1)
    return mean.where(lengths > 0, nan) if initial is None else mean


publish("segment_reduce", segment_reduce, segment_reduce.__doc__, method=False)
declared(__name__)
