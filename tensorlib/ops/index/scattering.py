"""`scatter`, `index_copy`, `index_add` and `index_fill`: writes at positions along a dim."""

import math

import numpy as np

from tensorlib._core.apply.getitem import is_plain_write, write_over
from tensorlib._core.arrays.convert import asarray
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.overwrite import write_result
from tensorlib._core.create.ranges import arange
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.index.scatter_along import (
    add_half_slices, write_along, write_slices, written_along,
)
from tensorlib._core.index.gather import take_along
from tensorlib._core.index.keys import put
from tensorlib._core.interpreters.foreign import is_looked_at_alone
from tensorlib._core.layout.views import clone, contiguous_copy, empty
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, op
from tensorlib.ops.index.indexing import (
    fill_value, gather, own_positions, parsed, spread_index, vector,
)
from tensorlib.ops.index.putting import put_index
from tensorlib.ops.pointwise.arithmetic import check_factors
from tensorlib.ops.samples import calls, given, given_pairs, real, refusals

# ---- what the declarations share -----------------------------------------------------------------

FLOAT32, FLOAT64, INT32 = BY_NAME["float32"], BY_NAME["float64"], BY_NAME["int32"]
ROWS = np.array([[0, 2, 1], [2, 1, 0]])           # of each column another one, in (4, 5)
MEETING = np.array([[0, 2, 1], [0, 1, 1]])        # of some columns the same one
FIRST, BOTH, FLOATS = np.array([0]), np.array([0, 1]), np.ones(2)
FEW = 4096        # elements that are written one by one sooner than a key is parsed
FEWER = 16        # of how many one is added to sooner than all are cast
SLICES = ((real(4, 5), 0, np.array([3, 0, 2]), real(3, 5)),
          (real(4, 5), -1, np.array([4, -2]), real(4, 2)), (real(4), 0, np.array(1), real(1)),
          (real(), 0, FIRST, real(1)), (real(2, 3), 0, np.zeros(0, int), real(0, 3)))
ELEMENTS = ((real(4, 5), 0, ROWS, real(2, 3)), (real(4, 5), -1, ROWS, real(4, 5)),
            (real(), 0, FIRST, real(1)), (real(4), 0, np.array(-1), real()))
BAD_SLICES = (
    (RuntimeError, (4, 5), 0, BOTH, np.ones((3, 5))),
    (RuntimeError, (4, 5), 0, BOTH, np.ones((2, 5), np.int64)),
    (RuntimeError, (4, 5), 0, BOTH > 0, np.ones((2, 5))),
    (IndexError, (4, 5), 0, ROWS, np.ones((2, 5))),
    (IndexError, (4, 5), 0, np.array([0, 4]), np.ones((2, 5))),
    (IndexError, (4, 5), 2, BOTH, np.ones((2, 5))))
BAD_ELEMENTS = (
    (RuntimeError, (4, 5), 0, ROWS, np.ones((1, 3))),
    (RuntimeError, (4, 5), 0, ROWS, np.ones((2, 3), np.int64)),
    (RuntimeError, (4, 5), 0, BOTH, np.ones(2)),
    (RuntimeError, (4, 5), 0, ROWS > 0, np.ones((2, 3))),
    (RuntimeError, (4,), 0, FLOATS, FLOATS),
    (RuntimeError, (4, 5), 0, np.zeros((2, 6), int), np.ones((2, 6))),
    (IndexError, (4, 5), 0, ROWS + 2, np.ones((2, 3))),
    (IndexError, (4, 5), 2, ROWS, np.ones((2, 3))))


def at_slices(x, dim, index):
    """A copy of an array with at least a dim, and NumPy's key for positions along a dim."""
    x = np.atleast_1d(x).copy()
    return x, (slice(None),) * (dim % x.ndim) + (np.atleast_1d(index),)


def at_elements(x, dim, index, source):
    """The same for `scatter`, and the part of the source that goes there."""
    x, index = np.atleast_1d(x).copy(), np.atleast_1d(index)
    key = tuple(index if d == dim % x.ndim else places
                for d, places in enumerate(np.indices(index.shape)))
    return x, key, source[tuple(map(slice, index.shape))] if source.ndim else source


def put_slices(x, dim, index, source):
    """The reference of `index_copy` and `index_fill`."""
    base, key = at_slices(x, dim, index)
    base[key] = source
    return base.reshape(x.shape)


def added_slices(x, dim, index, source, alpha=1):
    """The reference of `index_add`."""
    base, key = at_slices(x, dim, index)
    np.add.at(base, key, (alpha * source).astype(x.dtype))
    return base.reshape(x.shape)


def put_elements(x, dim, index, src):
    """The reference of `scatter`."""
    base, key, source = at_elements(x, dim, index, src)
    base[key] = source
    return base.reshape(x.shape)


def added_elements(x, dim, index, src):
    """The reference of `scatter_add`."""
    base, key, source = at_elements(x, dim, index, src)
    np.add.at(base, key, source)
    return base.reshape(x.shape)


# ---- slices along a dim --------------------------------------------------------------------------

def slices_along(name, input, dim, index):
    """The dim from the front, the index as a vector, and the shape of the slices that it picks.

    Raises: RuntimeError, IndexError.
    """
    dim, index = wrap(name, dim, input.ndim), vector(name, index)
    sizes = list(input.shape) or [1]
    sizes[dim] = index.numel()
    return dim, index, tuple(sizes)


def slices_at(name, input, dim, index):
    """The parsed key of the positions `index` along a dim from the front."""
    if input.ndim == 0:
        return parsed(name, input.reshape(1), index)
    return parsed(name, input, (slice(None),) * dim + (index,))


def checked_source(name, input, shape, source):
    """The slices to put. Raises: RuntimeError for another shape or dtype."""
    if source.dtype != input.dtype:
        raise RuntimeError(f"{name}: self and source must have the same dtype, got {input.dtype} "
                           f"and {source.dtype}")
    if source.shape == shape:
        return source
    if input.ndim or source.numel() != shape[0]:
        raise RuntimeError(f"{name}: source must have the shape {shape} of the slices that "
                           f"index picks, got {tuple(source.shape)}")
    return source.reshape(shape)


def as_slices(input, source):
    """The slices to copy, of which a 0-d tensor is one of a vector."""
    return source if source.ndim or input.ndim != 1 else source.reshape(1)


def put_at(input, key, values):
    """A copy of `input`, which may be 0-d, with `values` where the key picks."""
    if input.ndim:
        return put_index(input, values, key)
    return put_index(input.reshape(1), values, key).reshape(())


# In place, elements are written where they lie: not all of a tensor is copied for a few of them.
# What is recorded is the copy, written over the tensor.

def slices_over(name, input, dim, index, values, adds):
    """`input`, after values went to slices of it, or were added to these."""
    if dim == input.ndim - 1 or index.numel() * input.numel() <= FEW * input.shape[dim]:
        return write_over(name + "_", input, write_slices, name, values, dim, index, adds)
    key = slices_at(name, input, dim, index)             # moves whole runs
    return write_over(name + "_", input, put, key, values, adds)


def copy_over(input, dim, index: Tensor, source: Tensor):
    """`index_copy_`"""
    if input.ndim and is_plain_write(input, source, index):
        dim, index, shape = slices_along("index_copy", input, dim, index)
        source = checked_source("index_copy", input, shape, as_slices(input, source))
        return slices_over("index_copy", input, dim, index, source, False)
    return write_result("index_copy_", input, index_copy(input, dim, index, source))


def times_alpha(input, source, alpha):
    """The slices times alpha, and 1, where that is what the sum has of them: of half types it is
    rounded after the product, and of others the sum checks alpha."""
    kind = input.dtype
    if alpha != 1 and source.dtype is kind and (
            type(alpha) in (int, float) and (kind in (FLOAT32, FLOAT64) or kind.is_complex)
            or type(alpha) is int and not kind.is_floating_point and kind.name != "bool"):
        if not (kind.is_floating_point or kind.is_complex):
            check_factors("index_add", (source,), alpha=alpha)
        return source * alpha, 1
    return source, alpha


def add_over(input, dim, index: Tensor, source: Tensor, *, alpha=1):
    """`index_add_`"""
    source, factor = times_alpha(input, source, alpha)
    if not input.ndim or not is_plain_write(input, source, index) or (
            factor != 1 and index.numel() >= input.shape[dim]):
        return write_result("index_add_", input, index_add(input, dim, index, source, alpha=factor))
    dim, index, shape = slices_along("index_add", input, dim, index)
    source = checked_source("index_add", input, shape, source)
    if factor != 1:                              # of a copy of the slices that take part
        places, numbers = counted_from_front(index, input.shape[dim]).unique(return_inverse=True)
        part = input.index_select(dim, places).index_add(dim, numbers, source, alpha=factor)
        return slices_over("index_add", input, dim, places, part, False)
    if input.itemsize == 2 and input.is_floating_point():
        return write_over("index_add_", input, add_half_slices, "index_add", source, dim, index)
    return slices_over("index_add", input, dim, index, source, True)


def counted_from_front(index, size):
    """Positions in a dim of `size` elements without those below 0."""
    return index.where(index >= 0, index + size)


def fill_over(input, dim, index: Tensor, value):
    """`index_fill_`"""
    number = fill_value("index_fill", value, input)
    if input.ndim and isinstance(number, Tensor) and is_plain_write(input, number, index):
        dim, index, _ = slices_along("index_fill", input, dim, index)
        return slices_over("index_fill", input, dim, index, number, False)
    return write_result("index_fill_", input, index_fill(input, dim, index, value))


@composite(tensors=("input", "index", "source"), out=True, inplace=copy_over,
           reference=put_slices, samples=calls(*SLICES), errors=refusals(*BAD_SLICES),
           checks_values=True, complex=True)
def index_copy(input: Tensor, dim, index: Tensor, source: Tensor):
    """A row-major copy of `input` with the slices of `source` at the positions in a vector.

    Shapes: (*, N, *), (K,), (*, K, *) -> (*, N, *); (N,), (1,), () -> (N,).
    Where positions meet, the last wins.
    Raises: RuntimeError for other shapes or dtypes, IndexError.

    >>> tensorlib.zeros(3).index_copy(0, tensorlib.tensor([2, 0]), tensorlib.tensor([5., 6.]))
    tensor([6., 0., 5.])
    """
    if input.ndim and all(map(is_looked_at_alone, (input, index, source))):
        return copy_over(contiguous_copy(input), dim, index, source)
    dim, index, shape = slices_along("index_copy", input, dim, index)
    key = slices_at("index_copy", input, dim, index)
    found = put_at(input, key, checked_source("index_copy", input, shape, as_slices(input, source)))
    return found.contiguous()


@composite(tensors=("input", "index", "source"), out=True, inplace=add_over,
           reference=added_slices, errors=refusals(*BAD_SLICES), tolerance="reduction",
           samples=calls(*SLICES, (real(4, 5), 1, np.array([1, 1, 1]), real(4, 3))),
           checks_values=True, rounds_once=False, complex=True)
def index_add(input: Tensor, dim, index: Tensor, source: Tensor, *, alpha=1):
    """A copy of `input` with alpha * `source` added at the positions of `index`, a vector.

    Shapes: (*, N, *), (K,), (*, K, *) -> (*, N, *).
    Raises: RuntimeError for other shapes or dtypes, IndexError.

    >>> tensorlib.zeros(3).index_add(0, tensorlib.tensor([2, 2]), tensorlib.tensor([5., 6.]))
    tensor([ 0.,  0., 11.])
    """
    dim, index, shape = slices_along("index_add", input, dim, index)
    source = checked_source("index_add", input, shape, source)
    source, alpha = times_alpha(input, source, alpha)
    if alpha != 1:
        key = slices_at("index_add", input, dim, index)
        added = spread_index(source, input.shape or (1,), key).reshape(input.shape)
        return input.add(added, alpha=alpha)
    sizes = [1] * len(shape)
    sizes[dim] = shape[dim]
    return written_at("index_add", input, dim, index.reshape(sizes).expand(shape), source, True)


@composite(tensors=("input", "index"), inplace=fill_over,
           reference=put_slices,
           samples=given(((4, 5), 0, np.array([3, 0, 2]), 1.5), ((4, 5), -1, np.array([-2]), 2),
                         ((4,), 0, np.array(1), True), ((), 0, FIRST, 3)),
           errors=refusals((RuntimeError, (4, 5), 0, BOTH, np.ones(2)),
                           (RuntimeError, (4, 5), 0, BOTH > 0, 1),
                           (OverflowError, (4, 5), 0, BOTH, 10**400),
                           (TypeError, (4, 5), 0, BOTH, "1"), (IndexError, (4, 5), 0, ROWS, 1),
                           (IndexError, (4, 5), 0, np.array([4]), 1),
                           (IndexError, (4, 5), 2, BOTH, 1)), checks_values=True, complex=True)
def index_fill(input: Tensor, dim, index: Tensor, value):
    """A copy of `input` with a number, or a 0-d tensor, at the positions of `index`, a vector.

    The dtype stays that of `input`. Shapes: (*, N, *), (K,), () -> (*, N, *).
    Gradient: to a tensor `value` the sum. Raises: RuntimeError for a value with dims or an index
    that is not of integers, OutOfRangeError for a value that the dtype can't hold, IndexError.

    >>> tensorlib.zeros(2, 3).index_fill(1, tensorlib.tensor([0, 2]), 5)
    tensor([[5., 0., 5.],
            [5., 0., 5.]])
    """
    value = fill_value("index_fill", value, input)
    if input.ndim and all(map(is_looked_at_alone, (input, index, value))):
        return fill_over(clone(input), dim, index, value)
    dim, index, _ = slices_along("index_fill", input, dim, index)
    return put_at(input, slices_at("index_fill", input, dim, index), value)


# ---- elements along a dim ------------------------------------------------------------------------

def elements_at(name, input, index, src):
    """`src` as the elements, or the number, that go to the positions of `index` along a dim.

    Raises: RuntimeError.
    """
    if not isinstance(src, Tensor):
        return fill_value(name, src, input)
    if src.dtype != input.dtype:
        raise RuntimeError(f"{name}: expected self.dtype to be equal to src.dtype, got "
                           f"{input.dtype} and {src.dtype}")
    if src.shape == index.shape:
        return src
    if not index.numel():                # of any shape
        return src.new_empty(index.shape)
    sizes, part = index.shape or (1,), src if src.ndim else src.reshape(1)
    most = part.shape
    for d, n in enumerate(sizes if len(sizes) == len(most) else ()):
        if n < most[d]:
            part = part.narrow(d, 0, n)
    if part.shape != sizes:
        raise RuntimeError(f"{name}: size of index {list(index.shape)} exceeds that of src "
                           f"{list(src.shape)}")
    return part if index.ndim else part.reshape(())


def written_at(name, input, dim, index, src, adds):
    """A copy of `input` with `src` put, or added, at positions that are checked here."""
    dim, src = wrap(name, dim, input.ndim), elements_at(name, input, index, src)
    if is_grad_enabled() and (input.requires_grad or src.requires_grad):
        index = own_positions(index)
    return scattered(input, src if src.ndim else src.expand(index.shape), dim, index, adds)


def write_at(name, input, dim, index, src, adds):
    """The same, written over `input` itself; None where that is recorded, or rounded once."""
    if not input.ndim or adds and input.itemsize == 2 and input.is_floating_point():
        return None
    dim, src = wrap(name, dim, input.ndim), elements_at(name, input, index, src)
    if not isinstance(src, Tensor) or not is_plain_write(input, src, index):
        return None
    src = src if src.ndim else src.expand(index.shape)
    return write_over(name + "_", input, write_along, src, dim, index, adds)


@op(linear=True, public=False, method=False, tolerance="reduction",
    reference=lambda x, src, dim, index, adds: (added_elements if adds else put_elements)(
        x, dim, index, src),
    samples=given_pairs(((3, 4), (2, 3), 0, MEETING, True), ((3, 4), (2, 3), 0, MEETING, False),
                        ((2, 3), (2, 3), 1, ROWS, False)), checks_values=True, complex=True)
def scattered(input: Tensor, src: Tensor, dim, index, adds):
    """`input` with the elements of `src` put, or added, at positions along a dim: see `scatter`."""
    return written_along(input, src, dim, index, adds)


@scattered.vjp("input")
def scattered_vjp_input(g, src_shape, dim, index, adds):
    """What was written over has no part in the result."""
    return g if adds else scattered(g, g.new_zeros(src_shape), dim, index, False)


@scattered.vjp("src")
def scattered_vjp_src(g, input_shape, dim, index, adds):
    """Each value's gradient is that of its place; of several put at one place the last has it."""
    picked = gather(g, dim, index)
    if adds:
        return picked
    order = arange(index.numel(), dtype=INT32 if index.numel() < 2**31 else None)
    order = order.reshape(index.shape)
    if is_looked_at_alone(index):    # all that is read was written: nothing else needs a value
        last = empty(input_shape, order.dtype)
        write_along(last, order, dim, index, False)
        return picked.where(take_along(last, dim, index) == order, 0.0)
    last = scattered(order.new_zeros(input_shape), order, dim, index, False)
    return picked.where(gather(last, dim, index) == order, 0.0)


def scatter_over(input, dim, index: Tensor, src=None, *, value=None, reduce=None):
    """`scatter_`"""
    if reduce is None and (src is None) != (value is None):
        done = write_at("scatter", input, dim, index, value if src is None else src, False)
        if done is not None:
            return done
    return write_result("scatter_", input, scatter(input, dim, index, src, value=value,
                                                   reduce=reduce))


def scatter_add_over(input, dim, index: Tensor, src: Tensor):
    """`scatter_add_`"""
    done = write_at("scatter_add", input, dim, index, src, True)
    if done is None:
        done = add_few("scatter_add", input, dim, index, src)
    return write_result("scatter_add_", input, scatter_add(input, dim, index, src)) if (
        done is None) else done


def add_few(name, input, dim, index, src):
    """`input`, after few elements of a half type were added to it; None where others are, or where
    positions are to be refused."""
    if input.itemsize != 2 or not input.is_floating_point() or index.dtype.name != "int64" or (
            FEWER * index.numel() > input.numel()) or not is_plain_write(input, src, index):
        return None
    dim, src = wrap(name, dim, input.ndim), elements_at(name, input, index, src)
    sizes = list(input.shape)
    places = counted_from_front(index, sizes[dim])
    if index.ndim != input.ndim or any(
            n > m for d, (n, m) in enumerate(zip(index.shape, sizes)) if d != dim) or (
            bool((places < 0).logical_or(places >= sizes[dim]).any())):
        return None
    flat = places * math.prod(sizes[dim + 1:])
    for d, n in enumerate(index.shape):
        if d != dim:
            flat = flat + (arange(n) * math.prod(sizes[d + 1:])).reshape(
                [1] * d + [n] + [1] * (index.ndim - d - 1))
    return input.put_(flat, src, accumulate=True)


@composite(tensors=("input", "index", "src"), out=True, inplace=scatter_over,
           reference=put_elements, samples=calls(*ELEMENTS),
           errors=refusals(*BAD_ELEMENTS, (TypeError, (4,), 0, FIRST, "1")), checks_values=True,
           complex=True)
def scatter(input: Tensor, dim, index: Tensor, src=None, *, value=None, reduce=None):
    """A copy of `input` with out[index[i][j]][j] = src[i][j] for dim 0, and so on.

    `src` is a tensor at least as large as `index`, or a number, which `value` is too. Where
    positions meet, the last wins. reduce: "add" or "multiply", what is done with the elements that
    were there; the latter has no gradient.
    Shapes: (*, N, *), (*, K, *), (*, K, *) -> (*, N, *), where the index and `src` have as many
    dims as `input`, and the index is no larger than it in any but `dim`.
    Raises: RuntimeError for other shapes or dtypes, OutOfRangeError for a number that the dtype
    can't hold, IndexError.

    >>> tensorlib.zeros(3).scatter(0, tensorlib.tensor([2, 0]), tensorlib.tensor([5., 6.]))
    tensor([6., 0., 5.])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter: takes either src or value")
    src = value if src is None else src
    if reduce is not None:
        return combined(input, dim, index, src, reduce)
    return written_at("scatter", input, dim, index, src, False)


def combined(input, dim, index, src, reduce):
    """What `scatter` gives with a reduction. Raises: RuntimeError for another one."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"scatter: reduce must be 'add' or 'multiply', got {reduce!r}")
    if not isinstance(src, Tensor):
        src = fill_value("scatter", src, input).expand(index.shape)
    if reduce == "add":
        return scatter_add(input, dim, index, src)
    if is_grad_enabled() and (input.requires_grad or src.requires_grad):
        raise RuntimeError("scatter: reduce='multiply' has no gradient")
    scatter(input, dim, index, src)                                      # raises
    wide = (lambda x: x.float()) if input.dtype.name == "bfloat16" else (lambda x: x)
    base, key, source = at_elements(
        wide(input).numpy(), dim, index.numpy(), wide(src).numpy())
    np.multiply.at(base, key, source)
    return asarray(base.reshape(input.shape), dtype=input.dtype)


@composite(tensors=("input", "index", "src"), out=True, inplace=scatter_add_over,
           reference=added_elements, errors=refusals(*BAD_ELEMENTS), tolerance="reduction",
           samples=calls(*ELEMENTS, (real(4, 5), 0, MEETING, real(2, 3))), checks_values=True,
           rounds_once=False, complex=True)
def scatter_add(input: Tensor, dim, index: Tensor, src: Tensor):
    """A copy of `input` with src[i][j] added to out[index[i][j]][j] for dim 0, and so on.

    Shapes: as `scatter`. Raises: RuntimeError for other shapes or dtypes, IndexError.

    >>> tensorlib.zeros(3).scatter_add(0, tensorlib.tensor([2, 2]), tensorlib.tensor([5., 6.]))
    tensor([ 0.,  0., 11.])
    """
    return written_at("scatter_add", input, dim, index, src, True)
