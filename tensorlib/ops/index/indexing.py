"""Index expressions, masks, `index_select` and `gather`, and their adjoints."""

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import broadcast_shapes, wrap
from tensorlib._core.create.creation import filling
from tensorlib._core.create.ranges import arange
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.index.gather import add_along, check_positions, positions, take_along
from tensorlib._core.index.keys import Index, parse, put, take
from tensorlib._core.index.slices import take_slices
from tensorlib._core.interpreters.capture import capture
from tensorlib._core.interpreters.foreign import elements_known, is_proxy
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.layout import views
from tensorlib._core.reduce.masks import nonzero as true_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, op
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.samples import RandomArgument, calls, given, real, refusals

BOOL, INT64, WHOLE = BY_NAME["bool"], BY_NAME["int64"], slice(None)


# Keys to try, on a tensor of sizes (3, 4), each with the sizes that it picks.
KEYS = ((0, (4,)), ((slice(None), slice(None, None, -2)), (3, 2)), ((..., None), (3, 4, 1)),
        ([0, 2, 0], (3, 4)), (([0, 1], [1, 1]), (2,)))


def added_at(values, shape, key):
    """The reference of `spread_index`."""
    base = np.zeros(shape, values.dtype)
    np.add.at(base, key, values)
    return base


@op(linear=True, public=False, method=False, reference=lambda x, key: x[key],
    prepare=lambda x, key: (x, parse(x, key)),
    samples=given(*(((3, 4), key) for key, _ in KEYS)), checks_values=True, view="maybe",
    key="index")
def getitem(input: Tensor, index):
    """The elements that a parsed index expression picks: `x[key]`."""
    return take(input, index)


@getitem.vjp("input")
def getitem_vjp(g, input_shape, index):
    """Zeros with g added at the index: the adjoint of reading."""
    return spread_index(g, input_shape, index)


@op(linear=True, public=False, method=False, reference=added_at,
    prepare=lambda x, shape, key: (x, shape, parse(views.zeros(shape, x.dtype), key)),
    samples=given(*((picked, (3, 4), key) for key, picked in KEYS)), checks_values=True,
    key="index", complex=True)
def spread_index(input: Tensor, shape, index):
    """Zeros of sizes `shape` with `input` added where the index expression picks."""
    if not isinstance(index, Index):
        raise TypeError(f"spread_index: index must have been parsed, got {type_name(index)}")
    base = views.zeros(shape, input.dtype)
    put(base, index, input, not index.picks_once)
    return base


@spread_index.vjp("input")
def spread_index_vjp(g, index):
    """g[index]: the adjoint of adding at an index."""
    return getitem(g, index)


# ---- by a mask -----------------------------------------------------------------------------------

def masks(*cases):
    """A real tensor, a mask, each of the shapes that a case begins with, then its attributes."""
    return calls(*cases, arguments=lambda shape, mask, *attributes: (
        real(*shape), RandomArgument(lambda rng: rng.random(mask) < 0.5, mask), *attributes))


def check_mask(name, mask):
    """Raises RuntimeError unless the mask is bool."""
    if mask.dtype is not BOOL:
        raise RuntimeError(f"{name}: mask must be bool, got {mask.dtype}")


@composite(differentiable=False, out=True, reference=np.argwhere,
           samples=given(((2, 3),), ((4,),), ((),), ((0, 2),)), sized_by_values=True, complex=True)
def nonzero(input: Tensor, *, as_tuple=False):
    """The positions of the elements that are not zero: int64 (n, ndim), or a tuple of a vector for
    each dim.

    Shapes: (N, M) -> (n, 2), or (n,) and (n,). A 0-d tensor has one row of none, or (n,).
    Raises: RuntimeError for examples of a batch, whose results would differ in shape.

    >>> tensorlib.tensor([[0, 3], [4, 0]]).nonzero()
    tensor([[0, 1],
            [1, 0]])
    """
    input = input.detach()
    if as_tuple:
        return true_places(input if input.ndim else input.reshape(1)).unbind(1)
    return true_places(input)


def selected(x, mask):
    """The reference of `masked_select`."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]


@composite(reference=selected, out=True,
           samples=masks(((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 1)), ((), ()),
                         ((0, 2), (2,))),
           errors=refusals((RuntimeError, (2, 3), np.ones((2, 3), np.int64)),
                           (RuntimeError, (2, 3), np.ones((2, 3), np.uint8)),
                           (RuntimeError, (2, 3), np.ones(2, bool))), sized_by_values=True,
                           complex=True)
def masked_select(input: Tensor, mask: Tensor):
    """The elements where the mask holds, as a vector; both broadcast.

    Shapes: (*), (*) -> (n,). Raises: RuntimeError for a mask that is not bool, or shapes that do
    not broadcast.

    >>> x = tensorlib.tensor([3, -1, 2])
    >>> x.masked_select(x > 0)
    tensor([3, 2])
    """
    check_mask("masked_select", mask)
    shape = broadcast_shapes("masked_select", input.shape, mask.shape)
    return input.expand(shape)[mask.expand(shape)]


def filled_where(x, mask, value):
    """The reference of `masked_fill`."""
    x = np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    x[np.broadcast_to(mask, x.shape)] = value
    return x


@composite(tensors=("input", "mask"), inplace=True, reference=filled_where,
           samples=masks(((2, 3), (2, 3), 1.5), ((2, 3), (3,), 2), ((3,), (2, 1), True),
                         ((), (), 0.0), ((0, 2), (2,), 1)),
           errors=refusals((RuntimeError, (3,), np.ones(3, np.int64), 1),
                           (RuntimeError, (2, 3), np.ones(2, bool), 1),
                           (RuntimeError, (3,), np.ones(3, bool), np.ones(1)),
                           (OverflowError, (3,), np.ones(3, bool), 2**2000),
                           (TypeError, (3,), np.ones(3, bool), "1")), complex=True)
def masked_fill(input: Tensor, mask: Tensor, value):
    """A row-major copy of `input` with `value`, a number or a 0-d tensor, where the mask holds.

    The dtype stays that of `input`. Shapes: (*), (*) -> (*), with broadcasting.
    Gradient: to a tensor `value` the sum.
    Raises: RuntimeError for a mask that is not bool, a value with dims, or shapes that do not
    broadcast; OutOfRangeError for a value that the dtype can't hold; TypeError.

    >>> x = tensorlib.tensor([1., -2., 3.])
    >>> x.masked_fill(x < 0, 0)
    tensor([1., 0., 3.])
    """
    check_mask("masked_fill", mask)
    filled = where(mask, fill_value("masked_fill", value, input), input)
    return filled if filled.is_contiguous() else filled.contiguous()


def fill_value(name, value, input):
    """A number or a 0-d tensor as a 0-d tensor of the dtype of `input`."""
    if not isinstance(value, Tensor):
        return filling(name, value, input.dtype)
    if value.ndim:
        raise RuntimeError(f"{name}: value must be a number or a 0-d tensor, got {value.ndim} dims")
    if value.dtype is input.dtype:
        return value
    if elements_known(value):
        filling(name, value.item(), input.dtype)        # refuses what the dtype can't hold
    return value.to(input.dtype)


# ---- by position ---------------------------------------------------------------------------------

@composite(tensors=("input", "index"), out=True,
           reference=lambda x, dim, index: np.take(x, np.atleast_1d(index), dim) if x.ndim else x,
           samples=given(((2, 3), 1, np.array([2, 0, 2])), ((2, 3), -2, np.array(1)),
                         ((4,), 0, np.zeros(0, np.int64)), ((), 0, np.array([0])),
                         ((2, 3), 0, np.array([-1, 0]))),
           errors=refusals((RuntimeError, (2, 3), 0, np.array([True, False])),
                           (RuntimeError, (2, 3), 0, np.array([0.0])),
                           (RuntimeError, (), 0, np.array([0, 0])),
                           (IndexError, (2, 3), 0, np.array([[0]])),
                           (IndexError, (2, 3), 0, np.array([2])),
                           (IndexError, (2, 3), 2, np.array([0]))), checks_values=True,
                           complex=True)
def index_select(input: Tensor, dim, index: Tensor):
    """The slices of `input` along `dim` at the positions of `index`, a vector.

    Shapes: (*, N, *), (K,) -> (*, K, *). A 0-d index counts as one position, and a 0-d `input`,
    which has one, stays 0-d. Raises: RuntimeError for an index that is not of integers, IndexError.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).index_select(1, tensorlib.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    ndim = input.ndim
    dim, index = wrap("index_select", dim, ndim), vector("index_select", index)
    if ndim == 0 and index.numel() != 1:
        raise RuntimeError(f"index_select: a 0-d tensor takes one position, got {index.numel()}")
    if input.requires_grad and is_grad_enabled():
        index = index.clone()                    # which nobody else can write to
    taken = slices_taken(input, dim, index)
    return taken if ndim else taken.reshape(())


@index_select.formula
def index_select_formula(input, dim, index):
    """By an index expression, which knows examples that have positions of their own."""
    dim, index = wrap("index_select", dim, input.ndim), vector("index_select", index)
    try:
        if input.ndim:
            return input[(WHOLE,) * dim + (index,)]
        if index.numel() != 1:
            raise RuntimeError("index_select: a 0-d tensor takes one position, got "
                               f"{index.numel()}")
        return input.reshape(1)[index].reshape(())
    except IndexError as error:
        raise IndexError(f"index_select: {str(error).removeprefix('getitem: ')}") from None


@op(linear=True, public=False, method=False, kernel=take_slices,
    reference=lambda x, dim, index: np.take(x, index, dim),
    samples=given(((2, 3), 1, np.array([2, 0, 2])), ((4, 2), 0, np.array([-1, 0]))),
    checks_values=True, complex=True)
def slices_taken(input: Tensor, dim, index):
    """The slices of `input` at the positions of a vector along `dim`: see `index_select`."""


@slices_taken.vjp("input")
def slices_taken_vjp(g, input_shape, dim, index):
    """g added at the places that were taken, which may be the same."""
    shape = input_shape or (1,)
    if not elements_known(g, index):
        back = g.new_zeros(shape).index_add(dim, index, g)
    elif 0 < dim == g.ndim - 1:      # of single elements in half the time that a key takes
        back = spread_along(g, shape, dim, index.expand(g.shape))
    else:
        like = views.zeros((), g.dtype).expand(shape)
        back = spread_index(g, shape, parse(like, (WHOLE,) * dim + (index,)))
    return back if input_shape else back.reshape(())


def vector(name, index):
    """An index for slices, as a vector. Raises: RuntimeError for its dtype, IndexError for dims."""
    check_positions(name, index)
    if index.ndim > 1:
        raise IndexError(f"{name}: index is supposed to be a vector, got {index.ndim} dims")
    return index if index.ndim else index.reshape(1)


def parsed(name, input, key):
    """A parsed index expression, whose errors name the operation."""
    try:
        index = parse(input, key)
        tell("parsed", index, key)
        return index
    except IndexError as error:
        raise IndexError(f"{name}: {error}") from None


def along(name, dim, index, shape):
    """The key that picks, along `dim`, the position that `index` holds at each of its places."""
    check_positions(name, index)
    if index.ndim != len(shape):
        raise RuntimeError(
            f"{name}: index must have the same number of dimensions as input, got {index.ndim} and "
            f"{len(shape)}")
    for d, (size, limit) in enumerate(zip(index.shape, shape)):
        if d != dim and size > limit:
            raise RuntimeError(
                f"{name}: size of index {list(index.shape)} exceeds input {list(shape)} apart from "
                f"dimension {dim}")
    key = []
    for d in range(index.ndim):
        if d == dim:
            key.append(index)
        else:
            sizes = [1] * index.ndim
            sizes[d] = -1
            key.append(arange(index.shape[d]).reshape(sizes))
    return tuple(key)


def added_along(values, shape, dim, index):
    """The reference of `spread_along`."""
    base = np.zeros(shape, values.dtype)
    np.add.at(base, tuple(index if d == dim else places
                          for d, places in enumerate(np.indices(index.shape))), values)
    return base


# An index of every element, and a shorter one, each with its dim.
PLACES = ((0, np.array([[0, 2, 1, 0], [2, 2, 0, 1]])), (1, np.array([[3, 0], [1, 1], [0, 2]])))


@op(linear=True, public=False, method=False, reference=added_along,
    samples=given(*((places.shape, (3, 4), dim, places) for dim, places in PLACES)),
    checks_values=True, complex=True)
def spread_along(input: Tensor, shape, dim, index):
    """Zeros of sizes `shape` with `input` added at checked positions along a dim."""
    return add_along(input, shape, wrap("spread_along", dim, len(shape)), index)


@spread_along.vjp("input")
def spread_along_vjp(g, dim, index):
    """g read at the positions: the adjoint of adding there."""
    return gather.canonical(g, dim, index)


@op(public=False, method=False, differentiable=False, reference=lambda index: index,
    samples=given(((2, 3),), ((),)), complex=True)
def own_positions(index: Tensor):
    """A copy that nobody else can write to, expanded as what is given."""
    once = index[tuple(slice(1) if step == 0 else WHOLE for step in index.stride())]
    return once.clone().expand(index.shape)


def gathered(x, dim, index):
    """The reference of `gather`, whose index may be shorter than the tensor."""
    vector, places = np.atleast_1d(x), np.atleast_1d(index)
    key = tuple(places if d == dim % vector.ndim else own
                for d, own in enumerate(np.indices(places.shape)))
    return vector[key].reshape(index.shape)


def gather_arguments(input: Tensor, dim, index: Tensor, *, sparse_grad=False):
    """The dim counted from the front, and the positions too, checked; gradients are dense."""
    dim = wrap("gather", dim, input.ndim)
    if is_proxy(index):                         # who knows how to index knows how to gather
        return [picked_along, input, dim, index]
    if is_proxy(input):
        return input, dim, index
    found = counted("gather", input, dim, index, False)
    kept = input.requires_grad and is_grad_enabled()
    return input, dim, own_positions(found) if kept and found is index else found


def counted(name, input, dim, index, copy=True):
    """`positions`; by operations where a capture looks, to which others' results are constants."""
    found = positions(name, input, dim, index, copy)
    if found is index or capture() is None:
        return found
    index = index.to(INT64).contiguous()
    size = input.shape[dim] if input.ndim else 1
    return where(index < 0, index + size, index) if copy else index


def picked_along(input, dim, index):
    """`gather` by an index expression."""
    if index.ndim == 0 or input.ndim == 0:
        places, x = (y if y.ndim else y.reshape(1) for y in (index, input))
        return x[along("gather", dim, places, x.shape)].reshape(index.shape)
    return input[along("gather", dim, index, input.shape)]


@op(linear=True, convert=gather_arguments, out=True, reference=gathered,
    samples=given(*(((3, 4), dim, places) for dim, places in PLACES),
                  ((2, 3), -1, np.array([[-1, 0, 0, 1]])), ((), 0, np.array([0, 0])),
                  ((4,), 0, np.array(2)), ((2, 3), 0, np.zeros((0, 3), np.int64))),
    errors=refusals((RuntimeError, (2, 3), 0, np.array([0])),
                    (RuntimeError, (2, 3), 0, np.array([[True]])),
                    (RuntimeError, (2, 3), 0, np.array([[0.0]])),
                    (RuntimeError, (2, 3), 0, np.zeros((1, 4), np.int64)),
                    (IndexError, (2, 3), 0, np.array([[2]])),
                    (IndexError, (2, 3), 2, np.array([[0]]))), checks_values=True, complex=True)
def gather(input: Tensor, dim, index):
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on: elements picked along a dim.

    Shapes: (*, N, *), (*, K, *) -> (*, K, *), where the index has as many dims as `input` and is no
    larger in any but `dim`. What has no dims counts as a vector of one.
    Raises: RuntimeError for other shapes or an index that is not of integers, IndexError.

    >>> x = tensorlib.tensor([[1, 2], [3, 4]])
    >>> x.gather(1, tensorlib.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    return take_along(input, dim, index)


@gather.vjp("input")
def gather_vjp(g, input_shape, dim, index):
    """Zeros with g added at the positions: the adjoint of reading."""
    return spread_along(g, input_shape, dim, index)


def taken_along(x, indices, dim=None):
    """The reference of `take_along_dim`."""
    if dim is None:
        return np.take_along_axis(x.reshape(-1), indices.reshape(-1), 0)
    return np.take_along_axis(x, indices, dim)


@composite(reference=taken_along, out=True,
           samples=given(((3, 4), PLACES[1][1], 1), ((3, 4), PLACES[0][1][:1], -2),
                         ((1, 3), np.array([[0], [2]]), 1), ((2, 3), np.array([[5, 0]])),
                         ((4,), np.array(-1))),
           errors=refusals((RuntimeError, (2, 3), np.array([0]), 1),
                           (RuntimeError, (2, 3), np.array([[True]]), 1),
                           (RuntimeError, (2, 3), np.zeros((3, 1), np.int64), 1),
                           (IndexError, (2, 3), np.array([6])),
                           (IndexError, (2, 3), np.array([[0]]), 2)), checks_values=True,
                           complex=True)
def take_along_dim(input: Tensor, indices: Tensor, dim=None):
    """`gather` with broadcasting of the other dims; without `dim`, of both as vectors.

    Shapes: (A, N), (B, K) along dim 1 -> (A, K), where A is B, or one of them is 1.
    Raises: RuntimeError for shapes that do not broadcast or indices that are not integers,
    IndexError.

    >>> x = tensorlib.tensor([[3, 1, 2], [4, 6, 5]])
    >>> tensorlib.take_along_dim(x, x.argmax(1, keepdim=True), 1)
    tensor([[3],
            [6]])
    """
    check_positions("take_along_dim", indices)
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise RuntimeError("take_along_dim: input and indices must have the same number of dims, "
                           f"got {input.ndim} and {indices.ndim}")
    if input.ndim == 0:
        return gather(input, dim, indices)
    dim = wrap("take_along_dim", dim, input.ndim)
    own, others = list(input.shape), list(indices.shape)
    count, own[dim] = own[dim], others[dim]
    if own != others:
        sizes = list(broadcast_shapes("take_along_dim", own, others))
        indices = indices.expand(sizes)
        sizes[dim] = count
        input = input.expand(sizes)
    return gather(input, dim, indices)
