"""`select`, `take`, `argwhere` and `nonzero_static`, and flat positions as coordinates."""

from operator import index as as_int

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.create.ranges import arange
from tensorlib._core.reduce.masks import nonzero as true_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import composite
from tensorlib.ops.index.indexing import index_select
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.publish import FUNCTIONS
from tensorlib.ops.samples import calls, given, refusals, refused_calls
from tensorlib.ops.shape.padding import pad

WHOLE = slice(None)


@composite(tensors=("input",), reference=lambda x, dim, index: np.take(x, index, dim),
           samples=given(((2, 3), 1, -1), ((2, 3), 0, 1), ((4,), 0, 2), ((2, 1, 3), -2, 0)),
           errors=refusals((IndexError, (2, 3), 0, 2), (IndexError, (2, 3), 2, 0),
                           (IndexError, (), 0, 0), (TypeError, (2, 3), 0, True),
                           (TypeError, (2, 3), 0, slice(1))), view="maybe", complex=True)
def select(input: Tensor, dim, index):
    """`input` at one index of a dim, which goes away, as a view.

    Shapes: (*, N, *) -> (*, *). Raises: IndexError for a dim or index out of range, TypeError.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    if type(index) is not int and not is_place(index):
        raise TypeError(f"select: index must be an int, got {index!r}")
    try:
        return input[(WHOLE,) * wrap("select", dim, input.ndim) + (index,)]
    except IndexError as error:
        if input.ndim == 0:
            raise IndexError("select: cannot be applied to a 0-d tensor") from None
        raise IndexError(f"select: {str(error).removeprefix('getitem: ')}") from None


def is_place(index):
    """Whether a value is one position: an int, or a tensor of one."""
    if isinstance(index, Tensor):
        return index.ndim == 0 and not index.is_floating_point() and index.dtype.name != "bool"
    return hasattr(type(index), "__index__") and not isinstance(index, bool)


@composite(reference=lambda x, index: x.reshape(-1)[index], out=True,
           samples=given(((2, 3), np.array([0, 5, -1])), ((4,), np.array([[1], [3]])),
                         ((3,), np.array(2))),
           errors=refusals((IndexError, (2, 3), np.array([6])),
                           (RuntimeError, (2, 3), np.array([0.0]))), checks_values=True,
                           complex=True)
def take(input, index: Tensor):
    """The elements of `input`, seen as a vector, at the positions of `index`.

    Shapes: (*), (*index) -> (*index). Raises: RuntimeError for an index that is not of integers,
    IndexError.
    """
    if index.is_floating_point() or not index.dtype.is_signed:
        raise RuntimeError(f"take: index must be int64, or of a smaller signed integer dtype, got "
                           f"{index.dtype}")
    line = index.ndim == 1
    found = index_select(input if input.ndim == 1 else input.reshape(-1), 0,
                         index if line else index.reshape(-1))
    return found if line else found.reshape(index.shape)


@composite(reference=np.argwhere, samples=given(((2, 3),), ((4,),)), differentiable=False,
           sized_by_values=True, complex=True)
def argwhere(input):
    """The positions of the elements that are not zero, a row each: `nonzero` by another name."""
    return input.nonzero()


def coordinates(index, shape):
    """Positions in a tensor as a vector, by dims; out of range in the first where they are."""
    places = []
    for size in reversed(shape[1:]):
        places.append(index % size)
        index = index // size
    return index, *reversed(places)


@composite(tensors=("indices",), method=False, differentiable=False,
           reference=lambda x, shape: np.unravel_index(x, shape),
           samples=lambda rng: (((rng.integers(0, 6, size), shape), {})
                                for size, shape in (((4,), (2, 3)), ((), (6,)), ((2, 2), (3, 2)))))
def unravel_index(indices: Tensor, shape):
    """The positions in a tensor of sizes `shape` of positions in its elements as a vector.

    A tuple of a tensor of int64 for each dim. Shapes: those of `indices`.
    Raises: ValueError for negative sizes, TypeError for indices that are not integers.

    >>> tensorlib.unravel_index(tensorlib.tensor([5, 1]), (2, 3))
    (tensor([1, 0]), tensor([2, 1]))
    """
    sizes = tuple(map(as_int, shape)) if isinstance(shape, (tuple, list)) else (as_int(shape),)
    if indices.is_floating_point() or indices.dtype.name == "bool":
        raise TypeError(f"unravel_index: indices must be integers, got {indices.dtype}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"unravel_index: sizes must be 0 or more, got {sizes}")
    first, *others = coordinates(indices.long(), sizes)
    return (first % sizes[0], *others) if sizes else ()


def some_places(x, size, fill_value=-1):
    """The reference of `nonzero_static`."""
    found = np.argwhere(x)[:size]
    return np.pad(found, ((0, size - len(found)), (0, 0)), constant_values=fill_value)


@composite(tensors=("input",), differentiable=False, out=True, reference=some_places,
           samples=calls((np.array([[1, 0], [2, 3]]), {"size": 2}),
                         (np.array([1.0, 0, 2]), {"size": 4}),
                         (np.array([0, 1]), {"size": 3, "fill_value": 7}),
                         (np.array(3.0), {"size": 2}), (np.ones((0, 2)), {"size": 1})),
           errors=refused_calls((RuntimeError, np.ones(2), {"size": -1}),
                                (TypeError, np.ones(2), {"size": 1.5})), reads_values=True,
           packs=True, complex=True)
def nonzero_static(input: Tensor, *, size, fill_value=-1):
    """The positions of the first `size` elements that are not zero, as `nonzero` gives them.

    Rows for which there are none have `fill_value`, so that the shape does not depend on the
    elements. Shapes: (*) -> (size, ndim), int64.
    Raises: RuntimeError for a negative size, TypeError.

    >>> tensorlib.nonzero_static(tensorlib.tensor([4, 0, 5]), size=3)
    tensor([[ 0],
            [ 2],
            [-1]])
    """
    size = integer("nonzero_static", "size", size)
    if size < 0:
        raise RuntimeError(f"nonzero_static: size must not be negative, got {size}")
    found = true_places(input.detach())[:size]
    fill_value = integer("nonzero_static", "fill_value", fill_value)
    return pad(found, (0, 0, 0, size - found.shape[0]), value=fill_value)


@nonzero_static.formula
def nonzero_static_formula(input, *, size, fill_value=-1):
    """The same in operations: the places that are not zero come first in an order that is kept."""
    nonzero = (input != 0).reshape(-1)
    order = (~nonzero).byte().argsort(stable=True)[:size]
    places = FUNCTIONS["stack"](coordinates(order, input.shape), 1) if input.ndim else (
        order[:, None][:, :0])
    is_found = (arange(order.shape[0]) < nonzero.sum())[:, None]
    return pad(where(is_found, places, fill_value), (0, 0, 0, size - order.shape[0]),
               value=fill_value)


declared(__name__)
