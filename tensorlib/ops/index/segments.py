"""`segment_reduce`: sums, products, means and extremes of pieces of a dim."""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.arrays.convert import as_tensor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.ranges import arange
from tensorlib._core.index.scatter_reduce import segment_reduced
from tensorlib._core.interpreters.capture import capture
from tensorlib._core.interpreters.foreign import elements_known, is_looked_at_alone
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite
from tensorlib.ops.index.replacing import neutral, scatter_reduce
from tensorlib.ops.lazy import declared
from tensorlib.ops.order.searching import searchsorted
from tensorlib.ops.samples import calls, real, refused_calls

REDUCTIONS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "amax": "amax",
              "min": "amin", "amin": "amin"}
UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum,
          "amin": np.minimum}


def reduced_pieces(x, reduce, *, lengths=None, offsets=None, axis=0, initial=None):
    """The reference of `segment_reduce`."""
    ufunc = UFUNCS[REDUCTIONS[reduce]]
    first = neutral(x.dtype, REDUCTIONS[reduce]) if initial is None else initial
    ends = np.cumsum(lengths, -1) if offsets is None else offsets[..., 1:]
    starts = ends - lengths if offsets is None else offsets[..., :-1]
    out = np.empty((*ends.shape, *x.shape[axis + 1:]), x.dtype)
    for place in np.ndindex(*ends.shape):
        piece = x[place[:-1]][starts[place]:ends[place]]
        out[place] = ufunc.reduce(piece, 0, initial=first)
        if reduce == "mean":
            out[place] /= len(piece) if initial is None else max(len(piece), 1)
    return out


def borders(lengths, offsets, size, unsafe):
    """Where pieces end, where the first one begins (None: at 0), and their lengths.

    Raises: RuntimeError, TypeError.
    """
    given = lengths if offsets is None else offsets
    name = "lengths" if offsets is None else "offsets"
    given = given if isinstance(given, Tensor) else as_tensor(given)
    if given.dtype.name not in ("int32", "int64") or given.ndim == 0:
        raise RuntimeError(f"segment_reduce: {name} must be int32 or int64 and have a dim, got "
                           f"{given.dtype} with the shape {tuple(given.shape)}")
    if offsets is not None and given.shape[-1] == 0:
        raise RuntimeError("segment_reduce: offsets must have an element more than there are "
                           "pieces, got none")
    lengths = given if offsets is None else given.diff()
    if not unsafe and capture() is None and elements_known(given):
        check_borders(given.detach(), lengths.detach(), offsets is None, size)
    if offsets is None:
        return given.cumsum(-1), None, lengths
    return given[..., 1:].contiguous(), given[..., :1], lengths


def check_borders(given, lengths, as_lengths, size):
    """Raises RuntimeError for lengths or offsets that do not fit the size of the axis."""
    if (lengths < 0).any():
        raise RuntimeError("segment_reduce: lengths must not be negative" if as_lengths else
                           "segment_reduce: offsets must not descend")
    if as_lengths and (given.sum(-1) != size).any():
        raise RuntimeError(f"segment_reduce: the sum of lengths must be the size {size} of the "
                           "axis")
    if not as_lengths and ((given < 0) | (given > size)).any():
        raise RuntimeError(f"segment_reduce: offsets must be from 0 to the size {size} of the axis")


FLOAT32, INT32, INT64 = np.dtype("float32"), BY_NAME["int32"], BY_NAME["int64"]
EXACT = 2 ** 53              # integers below which are exact in float64
MANY = 1 << 12               # elements in a row for which ends are counted sooner than looked for


def ends_before(ends, outer, size):
    """How many of the ends in each row, in order, lie before or at each place of an axis."""
    if size < MANY:
        places = arange(size)
        return searchsorted(ends, places.expand(*outer, size).contiguous() if outer else places,
                            right=True)
    ends = ends.long().clamp(0, size)
    counts = ends.new_zeros((*outer, size + 1)).scatter_add(-1, ends, ends.new_ones(ends.shape))
    return counts.narrow(-1, 0, size).cumsum(-1)


PAIRS, ENDS = np.array([[2, 0, 2], [1, 3, 0]]), np.array([0, 1, 1, 3])


@composite(tensors=("data",), method=False, takes="floating", tolerance="reduction",
           reference=reduced_pieces, checks_values=True,
           samples=calls(
               *[(real(4, 2), reduce, {"lengths": np.array([1, 3])})
                 for reduce in ("sum", "mean", "prod", "max", "min")],
               (real(2, 4), "sum", {"lengths": PAIRS, "axis": 1}),
               (real(2, 4, 2), "mean", {"lengths": PAIRS, "axis": 1, "initial": 1}),
               (real(4), "max", {"offsets": ENDS, "initial": -9}),
               (real(0), "sum", {"lengths": np.array([0, 0])})),
           errors=refused_calls(
               (RuntimeError, real(4), "sum"),
               (RuntimeError, real(4), "median", {"lengths": np.array([4])}),
               (RuntimeError, real(4), "sum", {"lengths": np.array([1, 2])}),
               (RuntimeError, real(4), "sum", {"lengths": np.array([-1, 5])}),
               (RuntimeError, real(4), "sum", {"lengths": np.array([4.0])}),
               (RuntimeError, real(4), "sum", {"offsets": np.array([0, 5])}),
               (RuntimeError, real(4), "sum", {"lengths": np.array([[4]])}),
               (IndexError, real(4), "sum", {"lengths": np.array([4]), "axis": 1})))
def segment_reduce(data: Tensor, reduce, *, lengths=None, indices=None, offsets=None, axis=0,
                   unsafe=False, initial=None):
    """The sum, mean, product or extreme of each piece of a dim, whose pieces lie one after another.

    reduce: "sum", "mean", "prod", "max" or "min". lengths: how many elements each piece has; or
    offsets: where each begins, and last where the last one ends. Their last dim belongs to `axis`,
    those before it to the dims of `data` before the axis. initial: what each reduction begins with;
    without it an empty piece has the sum 0, the product 1, the mean NaN and the maximum -inf.
    unsafe: lengths that do not add up to the size are not looked for. `indices` must be None, as in
    PyTorch.

    Shapes: (*B, N, *), (*B, K) -> (*B, K, *), with K + 1 offsets. Gradient: of extremes evenly
    among equal elements, but for `initial`; of products as in `scatter_reduce`.
    Raises: RuntimeError for other reductions, lengths or offsets, IndexError for the axis,
    UnsupportedDtype for integers.

    >>> x, lengths = tensorlib.tensor([1., 5., 2.]), tensorlib.tensor([2, 1])
    >>> tensorlib.segment_reduce(x, "max", lengths=lengths)
    tensor([5., 2.])
    """
    if reduce not in REDUCTIONS:
        raise RuntimeError("segment_reduce: reduce must be either sum, mean, prod, max or min, got "
                           f"{reduce!r}")
    if indices is not None or lengths is None and offsets is None:
        raise RuntimeError("segment_reduce: takes lengths or offsets")
    if not data.is_floating_point():
        raise UnsupportedDtype(f"segment_reduce: not implemented for {data.dtype}")
    if data.ndim == 0:
        raise RuntimeError("segment_reduce: data must have a dim")
    axis = wrap("segment_reduce", axis, data.ndim)
    kind, rest = REDUCTIONS[reduce], tuple(data.shape[axis + 1:])
    first = neutral(FLOAT32, kind) if initial is None else initial
    extreme = kind in ("amax", "amin")       # `initial` has no share in its gradient
    given, out = lengths if offsets is None else offsets, None
    if is_looked_at_alone(data) and is_looked_at_alone(given) and (
            given.dtype in (INT32, INT64)) and (
            initial is None or type(initial) in (int, float) and abs(initial) < EXACT):
        out = segment_reduced(data, given, offsets is None, axis, kind,
                              neutral(FLOAT32, kind) if extreme else first)
    if out is None:
        out, lengths = by_positions(data, lengths, offsets, axis, kind, first, unsafe)
    elif offsets is not None and reduce == "mean":
        lengths = offsets.diff()
    if extreme and initial is not None:
        beyond = out < first if kind == "amax" else out > first
        out = out.masked_fill(beyond, first)
    if reduce == "mean":
        counted = lengths.reshape(*lengths.shape, *[1] * len(rest)).to(out.dtype)
        out = out / (counted if initial is None else counted.clamp(min=1))
    return out


def by_positions(data, lengths, offsets, axis, kind, first, unsafe):
    """The reductions of the pieces, each element at the position of its piece; and their lengths.

    Raises: RuntimeError, TypeError.
    """
    size, outer, rest = data.shape[axis], data.shape[:axis], data.shape[axis + 1:]
    ends, begin, lengths = borders(lengths, offsets, size, unsafe)
    if ends.shape[:-1] != outer:
        raise RuntimeError(
            "segment_reduce: lengths and offsets must have the dims of data up to the axis "
            f"{axis}, {(*outer, '*')}, got the shape {tuple(ends.shape)} of ends")
    pieces, index = ends.shape[-1], ends_before(ends, outer, size)
    if begin is not None:
        index = index.where(arange(size) >= begin, pieces)    # one more, of what is in no piece
    base = data.new_full((*outer, pieces + 1, *rest), first)
    if kind == "sum" and not outer:
        out = base.index_add(axis, index, data)
    else:
        index = index.reshape(*outer, size, *[1] * len(rest)).expand(data.shape)
        out = scatter_reduce(base, axis, index, data, kind,
                             include_self=kind not in ("amax", "amin"))
    return out.narrow(axis, 0, pieces).contiguous(), lengths


declared(__name__)
