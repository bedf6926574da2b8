"""Tensors stacked and split by the names of their dims, broadcast to one shape, and as grids."""

from functools import lru_cache
from itertools import combinations as combinations_of
from itertools import combinations_with_replacement
from operator import index as as_int

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import Size, broadcast_shapes as shape_of_both, wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer, require_dims
from tensorlib.ops.declare import FUNCTIONS, Tensors, alias, composite, publish
from tensorlib.ops.foreign import members, within_memory
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import given, given_sequences, refusals, refused_sequences
from tensorlib.ops.shape.joining import cat, split_along, stack

WHOLE = slice(None)
FEW = 1024                  # parts of which nobody asks whether there is memory for them


def unpacked(name, tensors):
    """The tensors of a call, which gives them one by one or as a sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor as element {i}, got {type_name(x)}")
    return tuple(tensors)


# ---- to a number of dims, and to one shape -------------------------------------------------------

MIXED = given_sequences(((), (3,)), ((2, 3), (2, 3, 4)), ((0,),))


def of_each(function):
    """The reference of a function of any number of tensors: the result of the only one, or all."""
    return lambda *xs: tuple(map(function, xs)) if len(xs) > 1 else function(*xs)


def only(results):
    """A tuple of results, or the only one."""
    return results if len(results) != 1 else results[0]


@composite(tensors=("tensors",), method=False, reference=of_each(np.atleast_1d), samples=MIXED,
           view="maybe", complex=True)
def atleast_1d(*tensors: Tensors):
    """Each tensor as it is, or with one dim if it has none; a tuple, or the only one.

    Shapes: () -> (1,).
    """
    return only(tuple(x.reshape(1) if x.ndim == 0 else x for x in unpacked("atleast_1d", tensors)))


@composite(tensors=("tensors",), method=False, reference=of_each(np.atleast_2d), samples=MIXED,
           view="maybe", complex=True)
def atleast_2d(*tensors: Tensors):
    """Each tensor as it is, or as one row if it has less than two dims; a tuple, or the only one.

    Shapes: () -> (1, 1), (N,) -> (1, N).
    """
    return only(tuple(x.reshape(1, x.numel()) if x.ndim < 2 else x
                      for x in unpacked("atleast_2d", tensors)))


@composite(tensors=("tensors",), method=False, reference=of_each(np.atleast_3d), samples=MIXED,
           view="maybe", complex=True)
def atleast_3d(*tensors: Tensors):
    """Each tensor as it is, or with dims of size 1 to make three; a tuple, or the only one.

    Shapes: () -> (1, 1, 1), (N,) -> (1, N, 1), (M, N) -> (M, N, 1).
    """
    return only(tuple(x.reshape(1, x.numel(), 1) if x.ndim < 2 else
                      x.unsqueeze(2) if x.ndim == 2 else x
                      for x in unpacked("atleast_3d", tensors)))


@composite(tensors=("tensors",), method=False, view="maybe", complex=True,
           reference=lambda *xs: tuple(np.broadcast_arrays(*xs)),
           samples=given_sequences(((2, 1), (3,)), ((), (0, 2)), ((3,),)),
           errors=refused_sequences((RuntimeError, (2,), (3,))))
def broadcast_tensors(*tensors: Tensors):
    """The tensors expanded to the shape to which they broadcast: views, and those of that shape
    themselves.

    Raises: RuntimeError for shapes that do not broadcast, TypeError.
    """
    tensors = unpacked("broadcast_tensors", tensors)
    shape = ()
    for x in tensors:
        shape = shape_of_both("broadcast_tensors", shape, x.shape)
    return tuple(x if x.shape == shape else x.expand(shape) for x in tensors)


def broadcast_shapes(*shapes):
    """The sizes to which tensors of these sizes broadcast.

    Each is an int or a sequence of ints. Raises: RuntimeError for sizes that do not, TypeError.

    >>> tensorlib.broadcast_shapes((2, 1), 3, (1, 3))
    tensorlib.Size([2, 3])
    """
    result = ()
    for shape in shapes:
        sizes = tuple(map(as_int, shape)) if isinstance(shape, (tuple, list)) else (as_int(shape),)
        if min(sizes, default=0) < 0:
            raise RuntimeError(f"broadcast_shapes: sizes must be 0 or more, got {sizes}")
        result = shape_of_both("broadcast_shapes", result, sizes)
    return Size(result)


publish("broadcast_shapes", broadcast_shapes, broadcast_shapes.__doc__, method=False)


def grids(*xs, indexing="ij"):
    """The reference of `meshgrid`."""
    return tuple(np.meshgrid(*xs, indexing=indexing))


@composite(tensors=("tensors",), method=False, reference=grids, view="maybe", complex=True,
           samples=given_sequences(((2,), (3,)), ((2,), (), (4,)), ((3,),), ((0,), (2,))),
           errors=refused_sequences((RuntimeError, (2, 2), (3,)), (RuntimeError,)))
def meshgrid(*tensors: Tensors, indexing="ij"):
    """The coordinates of all points of a grid: for each vector one tensor, a view.

    indexing: "ij" for the dims in the order of the vectors, "xy" for the first two exchanged.

    Shapes: (M,), (N,), ... -> (M, N, ...) each, or (N, M, ...) with "xy".
    Raises: RuntimeError for what has two dims or more, no tensor, tensors of several dtypes, or
    another `indexing`; TypeError.

    >>> tensorlib.meshgrid(tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4, 5]))[0]
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    tensors = unpacked("meshgrid", tensors)
    if not tensors or any(x.ndim > 1 for x in tensors):
        raise RuntimeError("meshgrid: expects tensors of 0 or 1 dims, at least one, got shapes "
                           f"{[tuple(x.shape) for x in tensors]}")
    if any(x.dtype is not tensors[0].dtype for x in tensors):
        raise RuntimeError("meshgrid: expects tensors of the same dtype, got "
                           f"{[str(x.dtype) for x in tensors]}")
    if indexing not in ("ij", "xy", None):
        raise RuntimeError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    return spread_vectors(tensors, indexing == "xy")


def spread_vectors(tensors, exchanged):
    """Vectors, each along a dim of its own, the first two `exchanged` or not: views."""
    places = list(range(len(tensors)))
    if exchanged:
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
    return composite(reference=lambda *xs: function(xs), out=True, method=False, complex=True,
                     samples=given_sequences(((3,), (3,)), ((2, 3), (2, 3)),
                                       ((2, 1, 3), (2, 1, 3)), ((2,),)),
                     errors=refused_sequences((RuntimeError, (2, 3), (3, 4)), (RuntimeError,)))


def several(name, tensors):
    """The tensors of a sequence. Raises: RuntimeError where there is none, TypeError."""
    tensors = unpacked(name, (members(name, tensors),))
    if not tensors:
        raise RuntimeError(f"{name}: expects a non-empty sequence of Tensors")
    return tensors


def are_tensors(tensors, ndim):
    """Whether these are some tensors in a list or tuple, each with at least so many dims."""
    if type(tensors) is not list and type(tensors) is not tuple or not tensors:
        return False
    for x in tensors:
        if type(x) is not Tensor or x.ndim < ndim:
            return False
    return True


def shared_dims(tensors):
    """The number of dims of some tensors in a list or tuple which all have one shape, or None."""
    if not are_tensors(tensors, 1):
        return None
    shapes = [x.shape for x in tensors]
    return len(shapes[0]) if shapes.count(shapes[0]) == len(shapes) else None


@stacked(np.hstack)
def hstack(tensors: Tensors):
    """Tensors joined along dim 1, vectors along dim 0.

    Shapes: (M,), (N,) -> (M + N,); (K, M, *), (K, N, *) -> (K, M + N, *).
    Raises: RuntimeError as `cat`.

    >>> tensorlib.hstack([tensorlib.tensor([1, 2]), tensorlib.tensor([3])])
    tensor([1, 2, 3])
    """
    if are_tensors(tensors, 1):
        return cat(tensors, 0 if tensors[0].ndim == 1 else 1)
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
    if are_tensors(tensors, 2):
        return cat(tensors, 0)
    if shared_dims(tensors) == 1:
        return stack(tensors, 0)
    return cat([atleast_2d(x) for x in several("vstack", tensors)], 0)


@stacked(np.dstack)
def dstack(tensors: Tensors):
    """Tensors joined along dim 2, vectors and matrices after they got one.

    Shapes: (N,), (N,) -> (1, N, 2); (M, N), (M, N) -> (M, N, 2). Raises: RuntimeError as `cat`.
    """
    if are_tensors(tensors, 3):
        return cat(tensors, 2)
    ndim = shared_dims(tensors)
    if ndim:
        return stack([x.unsqueeze(0) for x in tensors] if ndim == 1 else tensors, 2)
    return cat([atleast_3d(x) for x in several("dstack", tensors)], 2)


@stacked(np.column_stack)
def column_stack(tensors: Tensors):
    """Tensors joined along dim 1, vectors as columns.

    Shapes: (M,), (M,) -> (M, 2); (M, K), (M, N) -> (M, K + N). Raises: RuntimeError as `cat`.

    >>> tensorlib.column_stack([tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    if are_tensors(tensors, 2):
        return cat(tensors, 1)
    if shared_dims(tensors) == 1:
        return stack(tensors, 1)
    return cat([x.reshape(x.numel(), 1) if x.ndim < 2 else x
                for x in several("column_stack", tensors)], 1)


alias("row_stack", vstack, method=False)


# ---- pairs and tuples of elements ----------------------------------------------------------------

def all_tuples(*xs):
    """The reference of `cartesian_prod`."""
    if len(xs) == 1:
        return xs[0]
    return np.stack([y.reshape(-1) for y in np.meshgrid(*xs, indexing="ij")], 1)


@composite(tensors=("tensors",), method=False, reference=all_tuples,
           samples=given_sequences(((2,), (3,)), ((2,),), ((2,), (1,), (2,))),
           errors=refused_sequences((RuntimeError, (2, 2), (3,)), (RuntimeError,)), view="maybe",
           complex=True)
def cartesian_prod(*tensors: Tensors):
    """All tuples of an element of each vector, as rows; of one vector itself.

    Shapes: (M,), (N,), ... -> (M N ..., number of vectors).
    Raises: RuntimeError for what is not a vector, or dtypes that differ, TypeError.

    >>> tensorlib.cartesian_prod(tensorlib.tensor([1, 2]), tensorlib.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    tensors = unpacked("cartesian_prod", tensors)
    for x in tensors:
        if x.ndim != 1:
            raise RuntimeError(f"cartesian_prod: expects vectors, got shape {list(x.shape)}")
    if len({x.dtype for x in tensors}) != 1:
        raise RuntimeError("cartesian_prod: expects tensors of one dtype, at least one")
    if len(tensors) == 1:
        return tensors[0]
    return stack([x.reshape(-1) for x in meshgrid(*tensors)], 1)


@composite(tensors=("input",), method=False,
           reference=lambda x, r=2, with_replacement=False: np.array(list((
               combinations_with_replacement if with_replacement else combinations_of)(
                   x.tolist(), r)), x.dtype).reshape(-1, r) if r else x[:0],
           samples=given(((4,),), ((3,), 2, True), ((2,), 3), ((3,), 0), ((6,), 4),
                         ((4,), 3, True), ((0,), 2, True)),
           errors=refusals((RuntimeError, (2, 2)), (RuntimeError, (2,), -1),
                           (TypeError, (2,), 1.5)), complex=True)
def combinations(input: Tensor, r=2, with_replacement=False):
    """All combinations of r elements of a vector, as rows.

    Shapes: (N,) -> (number of combinations, r). Raises: RuntimeError for what is not a vector and a
    negative r, TypeError.

    >>> tensorlib.combinations(tensorlib.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    r = integer("combinations", "r", r)
    if input.ndim != 1 or r < 0:
        raise RuntimeError("combinations: expects a vector and a number that is not negative, got "
                           f"shape {list(input.shape)} and {r}")
    if r == 0:
        return input[:0]
    n = input.shape[0]
    rows = number_of_choices(n + r - 1 if with_replacement and n else n, r)
    check_room("combinations", rows, 8 * r)
    if r == 2:                                   # the places of a triangle
        return input[FUNCTIONS["triu_indices"](n, n, 0 if with_replacement else 1).t()]
    find = kept_choices if rows * r <= KEPT else choices
    return input[from_numpy(within_memory("combinations", lambda: find(
        n, r, bool(with_replacement))))]


def choices(n, r, again):
    """The combinations of r numbers below n as rows, in order; `again` they may be there twice.

    Each column continues the rows before it, but for those that could not be completed.
    """
    rows = np.zeros((1, 0), np.int64)
    first = np.zeros(1, np.int64)                # of the numbers that may follow a row
    for left in reversed(range(r)):
        counts = np.maximum(n - (0 if again else left) - first, 0)
        ends = np.cumsum(counts)
        column = np.arange(counts.sum()) - np.repeat(ends - counts - first, counts)
        rows = np.column_stack((np.repeat(rows, counts, axis=0), column))
        first = column if again else column + 1
    return rows


KEPT = 1 << 10               # numbers up to which choices are kept, which takes 8 kB for each
kept_choices = lru_cache(64)(choices)


def number_of_choices(n, r):
    """n over r, or some number of at least 2**62."""
    found = int(n >= r)
    for i in range(min(r, n - r)):           # each factor is at least 1
        if found >= 1 << 62:
            break
        found = found * (n - i) // (i + 1)
    return found


# ---- cut -----------------------------------------------------------------------------------------

def split_by(function):
    """The reference of a function that cuts."""
    return lambda x, *where: tuple(function(x, *where))


@composite(tensors=("input",), reference=split_by(np.array_split),
           samples=given(((5, 2), 2), ((5,), (1, 3)), ((2, 6), 4, 1), ((3,), 5), ((4,), (-1,)),
                         ((0, 2), 2), ((3,), (5,))),
           errors=refusals((RuntimeError, (4,), 0), (RuntimeError, (), 1),
                           (IndexError, (4,), 2, 1), (TypeError, (4,), 2.5)), view="maybe",
                           complex=True)
def tensor_split(input: Tensor, indices_or_sections=None, dim=0, *, indices=None, sections=None,
                 tensor_indices_or_sections=None):
    """Views of `input` cut along a dim: in so many parts, the first ones larger by one, or there.

    Shapes: (*, N, *) -> (*, n, *) for each part.
    Raises: RuntimeError for less than one part or no dims, IndexError, TypeError.

    >>> tensorlib.arange(5).tensor_split(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> tensorlib.arange(5).tensor_split((1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return parts("tensor_split", input, where(
        indices_or_sections, indices, sections, tensor_indices_or_sections), dim)


def where(indices_or_sections, *others):
    """Where to cut, which PyTorch calls by several names."""
    found = [x for x in (indices_or_sections, *others) if x is not None]
    return found[0] if len(found) == 1 else None


def parts(name, x, cuts, dim, even=False):
    """The views that `tensor_split` gives; with `even`, sections must have one size."""
    if x.ndim == 0:
        raise RuntimeError(f"{name}: expects at least a 1-dimensional tensor")
    dim = wrap(name, dim, x.ndim)
    size = x.size(dim)
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
        if count > FEW:
            check_room(name, count, Tensor.__basicsize__)
        least, more = divmod(size, count)
        bounds = [*range(0, more * (least + 1), least + 1),
                  *range(more * (least + 1), size + 1, least)] if least else [
                      *range(size), *[size] * (count - size + 1)]
    before = (WHOLE,) * dim
    found = []
    begin = 0
    for end in bounds[1:]:
        part = slice(begin, end if end > begin else begin)
        found.append(x[(*before, part)] if dim else x[part])
        begin = end
    return tuple(found)


@composite(tensors=("input",), reference=split_by(np.hsplit),
           samples=given(((4,), 2), ((2, 4), 2), ((2, 4), (1, 2))),
           errors=refusals((RuntimeError, (3,), 2), (RuntimeError, (), 1)), view="maybe",
           complex=True)
def hsplit(input: Tensor, indices_or_sections=None, *, indices=None, sections=None):
    """Views of `input` cut along dim 1, of a vector along dim 0: in so many equal parts, or there.

    Raises: RuntimeError for parts that are not equal or no dims, TypeError.
    """
    return parts("hsplit", input, where(indices_or_sections, indices, sections),
                 0 if input.ndim == 1 else 1, even=True)


@composite(tensors=("input",), reference=split_by(np.vsplit),
           samples=given(((4, 2), 2), ((4, 2), (1, 2))),
           errors=refusals((RuntimeError, (3, 2), 2), (RuntimeError, (3,), 1)), view="maybe",
           complex=True)
def vsplit(input: Tensor, indices_or_sections=None, *, indices=None, sections=None):
    """Views of `input` cut along dim 0: in so many equal parts, or there.

    Raises: RuntimeError for parts that are not equal or less than two dims, TypeError.
    """
    require_dims("vsplit", input, 2)
    return parts("vsplit", input, where(indices_or_sections, indices, sections), 0, even=True)


@composite(tensors=("input",), reference=split_by(np.dsplit),
           samples=given(((1, 2, 4), 2), ((1, 2, 4), (1, 2))),
           errors=refusals((RuntimeError, (1, 2, 3), 2), (RuntimeError, (3, 2), 1)), view="maybe",
           complex=True)
def dsplit(input: Tensor, indices_or_sections=None, *, indices=None, sections=None):
    """Views of `input` cut along dim 2: in so many equal parts, or there.

    Raises: RuntimeError for parts that are not equal or less than three dims, TypeError.
    """
    require_dims("dsplit", input, 3)
    return parts("dsplit", input, where(indices_or_sections, indices, sections), 2, even=True)


@composite(tensors=("input",), reference=lambda x, sizes, dim=0: tuple(
    np.split(x, np.cumsum(sizes)[:-1], dim)), samples=given(((4, 3), [1, 3]), ((2, 3), [1, 2], 1)),
    errors=refusals((RuntimeError, (3,), [1, 1])), view="maybe", complex=True)
def split_with_sizes(input: Tensor, split_sizes, dim=0):
    """`split` into parts of these sizes. Raises: as `split`."""
    return split_along(input, members("split_with_sizes", split_sizes), dim)


@composite(tensors=("input",), reference=lambda x, dim, start, length: np.take(
    x, np.arange(start, start + length), dim), out=True, samples=given(((2, 4), 1, 1, 2)),
    errors=refusals((RuntimeError, (3,), 0, 2, 2)), complex=True)
def narrow_copy(input: Tensor, dim, start, length):
    """A copy of what `narrow` gives. Raises: as `narrow`."""
    part = input.narrow(dim, start, length)
    return part.clone() if part.is_contiguous() else part.contiguous()


declared(__name__)
