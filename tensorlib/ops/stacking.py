"""Tensors stacked and cut by the names of their dims, and brought to shapes that fit each other."""

from operator import index as as_int

import numpy as np

from tensorlib._core.base.shape import broadcast_shapes, wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import Tensors, alias, composite
from tensorlib.ops.joining import cat, narrow
from tensorlib.ops.foreign import members, within_memory
from tensorlib.ops.late import declared
from tensorlib.ops.samples import given, refusals


def sequences(*cases):
    """Sequences of real tensors of the shapes in each case, a tuple of them."""
    def generate(rng):
        for shapes in cases:
            yield (tuple(rng.uniform(-2, 2, shape) for shape in shapes),), {}
    return generate


def refused_sequences(*cases):
    """Error samples: the error, then the shapes of a sequence of tensors."""
    def generate():
        for error, *shapes in cases:
            yield (tuple(np.ones(shape) for shape in shapes),), {}, error
    return generate


def unpacked(name, tensors):
    """The tensors of a call, which gives them one by one or as a sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor as element {i}, got {type(x).__name__}")
    return tuple(tensors)


# ---- to a number of dims, and to one shape -------------------------------------------------------

MIXED = sequences(((), (3,)), ((2, 3), (2, 3, 4)), ((0,),))


def of_each(function):
    """The reference of a function of any number of tensors: the result of the only one, or all."""
    return lambda *xs: tuple(map(function, xs)) if len(xs) > 1 else function(*xs)


def only(results):
    """A tuple of results, or the only one."""
    return results if len(results) != 1 else results[0]


@composite(tensors=("tensors",), method=False, reference=of_each(np.atleast_1d), samples=MIXED)
def atleast_1d(*tensors: Tensors):
    """Each tensor as it is, or with one dim if it has none; a tuple, or the only one.

    Shapes: () -> (1,).
    """
    return only(tuple(x.reshape(1) if x.ndim == 0 else x for x in unpacked("atleast_1d", tensors)))


@composite(tensors=("tensors",), method=False, reference=of_each(np.atleast_2d), samples=MIXED)
def atleast_2d(*tensors: Tensors):
    """Each tensor as it is, or as one row if it has less than two dims; a tuple, or the only one.

    Shapes: () -> (1, 1), (N,) -> (1, N).
    """
    return only(tuple(x.reshape(1, x.numel()) if x.ndim < 2 else x
                      for x in unpacked("atleast_2d", tensors)))


@composite(tensors=("tensors",), method=False, reference=of_each(np.atleast_3d), samples=MIXED)
def atleast_3d(*tensors: Tensors):
    """Each tensor as it is, or with dims of size 1 to make three; a tuple, or the only one.

    Shapes: () -> (1, 1, 1), (N,) -> (1, N, 1), (M, N) -> (M, N, 1).
    """
    return only(tuple(x.reshape(1, x.numel(), 1) if x.ndim < 2 else
                      x.unsqueeze(2) if x.ndim == 2 else x
                      for x in unpacked("atleast_3d", tensors)))


@composite(tensors=("tensors",), method=False, errors=refused_sequences((RuntimeError, (2,), (3,))),
           reference=lambda *xs: tuple(np.broadcast_arrays(*xs)),
           samples=sequences(((2, 1), (3,)), ((), (0, 2)), ((3,),)))
def broadcast_tensors(*tensors: Tensors):
    """The tensors expanded to the shape to which they broadcast, as views.

    Raises: RuntimeError for shapes that do not broadcast, TypeError.
    """
    tensors = unpacked("broadcast_tensors", tensors)
    shape = ()
    for x in tensors:
        shape = broadcast_shapes("broadcast_tensors", shape, x.shape)
    return tuple(x.expand(shape) for x in tensors)


def grids(*xs, indexing="ij"):
    """The reference of `meshgrid`."""
    return tuple(np.meshgrid(*xs, indexing=indexing))


@composite(tensors=("tensors",), method=False, reference=grids,
           errors=refused_sequences((RuntimeError, (2, 2), (3,)), (RuntimeError,)),
           samples=sequences(((2,), (3,)), ((2,), (), (4,)), ((3,),), ((0,), (2,))))
def meshgrid(*tensors: Tensors, indexing="ij"):
    """The coordinates of all points of a grid: for each vector one tensor, a view.

    indexing: "ij" for the dims in the order of the vectors, "xy" for the first two exchanged.

    Shapes: (M,), (N,), ... -> (M, N, ...) each, or (N, M, ...) with "xy".
    Raises: RuntimeError for what has two dims or more, no tensor, or another `indexing`; TypeError.

    >>> tensorlib.meshgrid(tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4, 5]))[0]
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    tensors = unpacked("meshgrid", tensors)
    if not tensors or any(x.ndim > 1 for x in tensors):
        raise RuntimeError("meshgrid: expects tensors of 0 or 1 dims, at least one, got shapes "
                           f"{[tuple(x.shape) for x in tensors]}")
    if indexing not in ("ij", "xy", None):
        raise RuntimeError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    places = list(range(len(tensors)))
    if indexing == "xy":
        places[:2] = reversed(places[:2])
    sizes = [0] * len(tensors)
    for x, place in zip(tensors, places):
        sizes[place] = x.numel()
    return tuple(
        x.reshape([-1 if d == place else 1 for d in range(len(sizes))] if x.numel() else
                  [0 if d == place else 1 for d in range(len(sizes))]).expand(sizes)
        for x, place in zip(tensors, places))


# ---- stacked -------------------------------------------------------------------------------------

def stacked(function):
    """The declaration of a function that stacks tensors as NumPy's function does."""
    return composite(reference=lambda *xs: function(xs), out=True, method=False,
                     samples=sequences(((3,), (3,)), ((2, 3), (2, 3)),
                                       ((2, 1, 3), (2, 1, 3)), ((2,),)),
                     errors=refused_sequences((RuntimeError, (2, 3), (3, 4)), (RuntimeError,)))


def several(name, tensors):
    """The tensors of a sequence. Raises: RuntimeError where there is none, TypeError."""
    tensors = unpacked(name, (members(name, tensors),))
    if not tensors:
        raise RuntimeError(f"{name}: expects a non-empty sequence of Tensors")
    return tensors


@stacked(np.hstack)
def hstack(tensors: Tensors):
    """Tensors joined along dim 1, vectors along dim 0.

    Shapes: (M,), (N,) -> (M + N,); (K, M, *), (K, N, *) -> (K, M + N, *).
    Raises: RuntimeError as `cat`.

    >>> tensorlib.hstack([tensorlib.tensor([1, 2]), tensorlib.tensor([3])])
    tensor([1, 2, 3])
    """
    tensors = [x.reshape(1) if x.ndim == 0 else x for x in several("hstack", tensors)]
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


@stacked(np.vstack)
def vstack(tensors: Tensors):
    """Tensors joined along dim 0, vectors as rows.

    Shapes: (N,), (N,) -> (2, N); (K, *), (M, *) -> (K + M, *). Raises: RuntimeError as `cat`.

    >>> tensorlib.vstack([tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([atleast_2d(x) for x in several("vstack", tensors)], 0)


@stacked(np.dstack)
def dstack(tensors: Tensors):
    """Tensors joined along dim 2, vectors and matrices after they got one.

    Shapes: (N,), (N,) -> (1, N, 2); (M, N), (M, N) -> (M, N, 2). Raises: RuntimeError as `cat`.
    """
    return cat([atleast_3d(x) for x in several("dstack", tensors)], 2)


@stacked(np.column_stack)
def column_stack(tensors: Tensors):
    """Tensors joined along dim 1, vectors as columns.

    Shapes: (M,), (M,) -> (M, 2); (M, K), (M, N) -> (M, K + N). Raises: RuntimeError as `cat`.

    >>> tensorlib.column_stack([tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    return cat([x.reshape(x.numel(), 1) if x.ndim < 2 else x
                for x in several("column_stack", tensors)], 1)


alias("row_stack", vstack, method=False)


# ---- cut -----------------------------------------------------------------------------------------

def split_by(function):
    """The reference of a function that cuts."""
    return lambda x, *where: tuple(function(x, *where))


@composite(tensors=("input",), reference=split_by(np.array_split),
           samples=given(((5, 2), 2), ((5,), (1, 3)), ((2, 6), 4, 1), ((3,), 5), ((4,), (-1,)),
                         ((0, 2), 2), ((3,), (5,))),
           errors=refusals((RuntimeError, (4,), 0), (RuntimeError, (), 1),
                           (IndexError, (4,), 2, 1), (TypeError, (4,), 2.5)))
def tensor_split(input: Tensor, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """Views of `input` cut along a dim: in so many parts, the first ones larger by one, or there.

    Shapes: (*, N, *) -> (*, n, *) for each part.
    Raises: RuntimeError for less than one part or no dims, IndexError, TypeError.

    >>> tensorlib.arange(5).tensor_split(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> tensorlib.arange(5).tensor_split((1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return parts("tensor_split", input, where(indices_or_sections, indices, sections), dim)


def where(indices_or_sections, indices, sections):
    """Where to cut, which PyTorch calls by three names."""
    found = [x for x in (indices_or_sections, indices, sections) if x is not None]
    return found[0] if len(found) == 1 else None


def parts(name, x, cuts, dim, even=False):
    """The views that `tensor_split` gives; with `even`, sections must have one size."""
    if x.ndim == 0:
        raise RuntimeError(f"{name}: expects at least a 1-dimensional tensor")
    dim = wrap(name, dim, x.ndim)
    size = x.shape[dim]
    if isinstance(cuts, Tensor):
        cuts = within_memory(name, cuts.tolist)
    if isinstance(cuts, (tuple, list)):
        bounds = [0, *[max(0, min(size, i + size if i < 0 else i)) for i in map(as_int, cuts)],
                  size]
    else:
        try:
            count = as_int(cuts)
        except TypeError:
            raise TypeError(f"{name}: expects an int or a sequence of ints, got {cuts!r}") from None
        if count < 1 or even and size % count:
            raise RuntimeError(f"{name}: can't cut {size} elements of dim {dim} into {count} parts"
                               + (" of one size" if even else ""))
        check_room(name, count, Tensor.__basicsize__)
        bounds = [i * (size // count) + min(i, size % count) for i in range(count + 1)]
    return tuple(narrow(x, dim, begin, max(0, end - begin))
                 for begin, end in zip(bounds, bounds[1:]))


@composite(tensors=("input",), reference=split_by(np.hsplit),
           samples=given(((4,), 2), ((2, 4), 2), ((2, 4), (1, 2))),
           errors=refusals((RuntimeError, (3,), 2), (RuntimeError, (), 1)))
def hsplit(input: Tensor, indices_or_sections=None, *, indices=None, sections=None):
    """Views of `input` cut along dim 1, of a vector along dim 0: in so many equal parts, or there.

    Raises: RuntimeError for parts that are not equal or no dims, TypeError.
    """
    return parts("hsplit", input, where(indices_or_sections, indices, sections),
                 0 if input.ndim == 1 else 1, even=True)


@composite(tensors=("input",), reference=split_by(np.vsplit),
           samples=given(((4, 2), 2), ((4, 2), (1, 2))),
           errors=refusals((RuntimeError, (3, 2), 2), (RuntimeError, (3,), 1)))
def vsplit(input: Tensor, indices_or_sections=None, *, indices=None, sections=None):
    """Views of `input` cut along dim 0: in so many equal parts, or there.

    Raises: RuntimeError for parts that are not equal or less than two dims, TypeError.
    """
    require_dims("vsplit", input, 2)
    return parts("vsplit", input, where(indices_or_sections, indices, sections), 0, even=True)


@composite(tensors=("input",), reference=split_by(np.dsplit),
           samples=given(((1, 2, 4), 2), ((1, 2, 4), (1, 2))),
           errors=refusals((RuntimeError, (1, 2, 3), 2), (RuntimeError, (3, 2), 1)))
def dsplit(input: Tensor, indices_or_sections=None, *, indices=None, sections=None):
    """Views of `input` cut along dim 2: in so many equal parts, or there.

    Raises: RuntimeError for parts that are not equal or less than three dims, TypeError.
    """
    require_dims("dsplit", input, 3)
    return parts("dsplit", input, where(indices_or_sections, indices, sections), 2, even=True)


def require_dims(name, x, least):
    """Raises RuntimeError for a tensor of too few dims."""
    if x.ndim < least:
        raise RuntimeError(f"{name}: expects a tensor with at least {least} dims, got {x.ndim}")


declared(__name__)
