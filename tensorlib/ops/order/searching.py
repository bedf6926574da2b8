"""`unique`, `isin`, `searchsorted` and `bucketize`."""

import math

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.arrays.convert import asarray
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.index.gather import check_positions
from tensorlib._core.interpreters.foreign import elements_known, is_tensor, runs_in_parts
from tensorlib._core.reduce.runs import runs_of_slices
from tensorlib._core.reduce.search import insertion_places
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import refuse_bools, refuse_complex
from tensorlib.ops.declare import composite, op
from tensorlib.ops.foreign import within_memory
from tensorlib.ops.lazy import declared
from tensorlib.ops.order.ordering import LONG_ROW, numbers, sorted_places
from tensorlib.ops.samples import given, refusals

PAIRS = 20_000          # so many comparisons take no longer than to sort
SORTED_WHOLE = 512      # up to so many elements in a matrix are sorted by every column
FEW = 8                 # elements that are compared one by one with all others


# ---- each element once ---------------------------------------------------------------------------

def each_once(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The reference of `unique`."""
    found = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    shape = x.shape if dim is None else (-1,)
    parts = (found[0], found[1].reshape(shape), found[2])
    chosen = [parts[i] for i in range(3) if (True, return_inverse, return_counts)[i]]
    return chosen if len(chosen) > 1 else chosen[0]


UNIQUES = (((7,),), ((3, 4), True, True, True), ((2, 3), True, False, True), ((3, 2), True, True),
           ((4, 2), True, True, True, 0), ((2, 3), True, False, False, 1), ((), True, True),
           ((0,),))


@composite(tensors=("input",), differentiable=False, reference=each_once, samples=given(*UNIQUES),
           errors=refusals((IndexError, (2,), True, False, False, 1),
                           (RuntimeError, (0, 2), True, False, False, 1)), sized_by_values=True)
def unique(input: Tensor, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The elements that there are, each once, in order; or the slices along `dim`.

    return_inverse, return_counts: a tuple, with the place in it of each element of `input`, and
    with how often each element is there. They are sorted whatever `sorted` says, and NaN is not
    equal to itself.

    Shapes: (*) -> (K,), inverse (*), counts (K,). Along a dim: (*, N, *) -> (*, K, *), (N,), (K,).
    Raises: IndexError for a dim out of range, RuntimeError for slices of no elements and for
    examples of a batch, whose results would differ in shape.

    >>> tensorlib.tensor([3, 1, 3]).unique(return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    refuse_complex("unique", input)
    array = numbers(input)
    check_room("unique", input.numel(), input.itemsize)
    if dim is None:
        parts = within_memory("unique", lambda: unique_elements(
            array.reshape(-1), return_inverse, return_counts))
        inverse = None if parts[1] is None else parts[1].reshape(array.shape)
        return chosen(input, parts[0], inverse, parts[2])
    rows, back = slices_as_rows("unique", array, dim)
    values, inverse, counts = within_memory("unique", lambda: unique_rows(
        rows, return_inverse, return_counts))
    return chosen(input, back(values.numpy()), inverse, counts)


def chosen(input, values, *parts):
    """The values in the dtype of `input`, alone or in a tuple with those parts that are there."""
    values, *parts = [x if isinstance(x, Tensor) else from_numpy(np.ascontiguousarray(x))
                      for x in (values, *parts) if x is not None]
    values = values.to(input.dtype)
    return (values, *parts) if parts else values


def slices_as_rows(name, array, dim):
    """The slices along a dim as the rows of a matrix, and what gives rows the shape of slices.

    Raises: IndexError, RuntimeError.
    """
    if array.ndim == 0:
        raise IndexError(f"{name}: dim {dim} of a tensor that has no dims")
    dim = wrap(name, dim, array.ndim)
    moved = np.moveaxis(array, dim, 0) if dim else array
    if 0 in moved.shape[1:] or moved.shape[0] == 0 and 0 in moved.shape[1:]:
        raise RuntimeError(f"{name}: there are 0 sized dims besides dim {dim}, got "
                           f"{list(array.shape)}")

    def back(rows):
        slices = rows.reshape(-1, *moved.shape[1:])
        return np.moveaxis(slices, 0, dim) if dim else slices
    return moved.reshape(len(moved), math.prod(moved.shape[1:])), back


def unique_rows(rows, inverse, counts):
    """The same of the rows of a matrix."""
    order = order_by_columns(rows)
    return runs_of_slices(from_numpy(rows[order]), inverse, counts,
                          from_numpy(order) if inverse else None)


def order_by_columns(rows):
    """The positions that sort the rows of a matrix by their first column, rows that are equal there
    by the second, and so on; those that are equal in all stay in their order.

    Only rows that are equal in all columns so far are looked at in the next, and only sorted where
    some differ there: one or two columns decide most orders.
    """
    if rows.size <= SORTED_WHOLE:
        return np.lexsort(rows.T[::-1])
    order = sorted_places(from_numpy(np.ascontiguousarray(rows[:, 0])))
    places = np.arange(len(rows))            # where rows stand that are still equal to a neighbour
    group = np.zeros(len(rows), np.int64)    # which of these are equal
    for i, column in enumerate(rows.T):
        values = column[order[places]]
        if i and not new_groups(values, group)[0]:
            continue
        if i:
            by = np.lexsort((values, group))
            order[places], values = order[places[by]], values[by]
        starts = new_groups(values, group)[1]
        alone = starts & np.append(starts[1:], True)
        group, places = np.cumsum(starts)[~alone], places[~alone]
        if not places.size:
            break
    return order


def new_groups(values, group):
    """Whether values within a group differ, and where groups of equal ones begin; NaN counts as
    equal to NaN."""
    differ = values[1:] != values[:-1]
    if values.dtype.kind == "f":
        differ &= (values[1:] == values[1:]) | (values[:-1] == values[:-1])
    same = group[1:] == group[:-1]
    return (differ & same).any(), np.concatenate([[True], differ | ~same])


def unique_elements(flat, inverse, counts):
    """The elements of a vector, each once, in order, and where they are and how many if asked."""
    if flat.dtype.kind == "b" and not inverse:
        true = from_numpy(flat).count_nonzero().item()
        numbers_of = np.array([flat.size - true, true])
        values = numbers_of.nonzero()[0]
        return values.astype(bool), None, numbers_of[values] if counts else None
    if flat.dtype.kind == "b":               # NumPy sorts these by comparisons
        flat = (flat.view(np.uint8) != 0).view(np.uint8)
    if flat.dtype.kind in "iu" and flat.size > FEW:
        x = from_numpy(flat)                  # whose reductions take a fifth of NumPy's time
        low, high = x.min().item(), x.max().item()
        if high - low < flat.size:
            return unique_in_range(flat, low, high, inverse, counts)
    ordered = inverse or flat.dtype.kind in "iuf" and flat.size >= LONG_ROW
    order = sorted_places(from_numpy(flat)) if ordered else None
    ranked = from_numpy(flat[order] if ordered else np.sort(flat))
    return runs_of_slices(ranked, inverse, counts, from_numpy(order) if inverse else None)


def unique_in_range(flat, low, high, inverse, counts):
    """The same for integers of a range that is not longer than the vector, by counting them."""
    shifted = flat.astype(np.int64) - low if low or flat.itemsize < 8 else flat
    if counts:
        numbers_of = np.bincount(shifted, minlength=high - low + 1)
        present = from_numpy(numbers_of) > 0
    else:
        found = np.zeros(high - low + 1, bool)
        found[shifted] = True
        present = from_numpy(found)
    values = present.nonzero().view(-1)
    where = (present.cumsum(0) - 1).numpy()[shifted] if inverse else None
    return values + low if low else values, where, numbers_of[values.numpy()] if counts else None


def runs_of(x, return_inverse=False, return_counts=False, dim=None):
    """The reference of `unique_consecutive`."""
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    at = [i for i in range(len(rows)) if i == 0 or (rows[i] != rows[i - 1]).any()]
    values = rows[at] if dim is None else np.moveaxis(rows[at], 0, dim)
    sizes = np.diff([*at, len(rows)]).astype(np.int64)
    inverse = np.repeat(np.arange(len(at)), sizes).reshape(x.shape if dim is None else (-1,))
    return values, inverse, sizes


@composite(tensors=("input",), differentiable=False, reference=runs_of,
           samples=given(((5,), True, True), ((2, 3), True, True), ((3, 2), True, True, 0),
                         ((), True, True), ((0,), True, True)),
           errors=refusals((IndexError, (2,), False, False, 1),
                           (RuntimeError, (0, 2), False, False, 1)), sized_by_values=True,
                           complex=True)
def unique_consecutive(input: Tensor, return_inverse=False, return_counts=False, dim=None):
    """The elements without those equal to the one before; or the slices along `dim`.

    return_inverse, return_counts: as of `unique`, whose shapes and errors these are.

    >>> tensorlib.tensor([3, 3, 1, 3]).unique_consecutive()
    tensor([3, 1, 3])
    """
    array = numbers(input)
    if dim is None:
        values, inverse, counts = runs_of_slices(
            from_numpy(array).reshape(-1), return_inverse, return_counts)
        inverse = None if inverse is None else inverse.reshape(array.shape)
        return chosen(input, values, inverse, counts)
    rows, back = slices_as_rows("unique_consecutive", array, dim)
    values, inverse, counts = runs_of_slices(from_numpy(rows), return_inverse, return_counts)
    return chosen(input, back(values.numpy()), inverse, counts)


# ---- sorted sequences ----------------------------------------------------------------------------

def places_in(sequence, values, right=False):
    """The reference of `searched` and `searchsorted`."""
    side, values = "right" if right else "left", np.asarray(values)
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    out = np.zeros(values.shape, np.int64)
    for at in np.ndindex(out.shape[:-1]):
        out[at] = np.searchsorted(sequence[at], values[at], side)
    return out


def sequences(*cases):
    """A sorted tensor and values, of the shapes that each case begins with; then its attributes."""
    def generate(rng):
        for shape, other, *attributes in cases:
            yield (np.sort(rng.uniform(0, 4, shape)), rng.uniform(0, 4, other), *attributes), {}
    return generate


SEARCHES = sequences(((5,), (4,)), ((2, 5), (2, 3)), ((20,), (3, 7)), ((3,), ()), ((0,), (2,)))


@op(differentiable=False, public=False, method=False, reference=places_in,
    takes="integer floating",
    samples=sequences(((5,), (4,), False), ((2, 5), (2, 3), True), ((20,), (), True)))
def searched(sorted_sequence: Tensor, values: Tensor, right):
    """The positions at which values belong in sorted rows: see `searchsorted`."""
    return insertion_places(sorted_sequence, values, right)


def from_right(right, side):
    """Whether equal elements are passed. Raises: RuntimeError."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted: side can only be 'left' or 'right' but got {side!r}")
    if side == "left" and right:
        raise RuntimeError("searchsorted: side and right can't be set to opposites, got side of "
                           "left while right was True")
    return bool(right) or side == "right"


def value_of(name, values):
    """What to search for, as a tensor."""
    if isinstance(values, (int, float)):
        return asarray(values)
    if not is_tensor(values):
        raise TypeError(f"{name}: expected a Tensor or a number, got {type_name(values)}")
    return values


@composite(tensors=("sorted_sequence", "input"), differentiable=False, method=False, out=True,
           reference=places_in, samples=SEARCHES, takes="integer floating",
           errors=refusals((RuntimeError, (2, 3), np.ones((3, 1))), (RuntimeError, (), np.ones(1)),
                           (RuntimeError, (2, 3), 1.0), (TypeError, (2,), "1")))
def searchsorted(sorted_sequence: Tensor, input, *, out_int32=False, right=False, side=None,
                 sorter=None):
    """The positions at which the elements of `input` belong in sorted rows, as int64.

    right (or side="right"): behind the elements that are equal, not before them. sorter: positions
    that sort the rows, where they are not sorted. out_int32: the result is int32.

    Shapes: (N,), (*) -> (*); (*, N), (*, K) -> (*, K).
    Raises: RuntimeError for other shapes, for a `side` that contradicts `right`, and for a `sorter`
    that is not int64, of another shape or out of range; UnsupportedDtype for bools; TypeError.

    >>> tensorlib.searchsorted(tensorlib.tensor([1, 3, 5]), tensorlib.tensor([0, 3, 9]))
    tensor([0, 1, 3])
    """
    values, right = value_of("searchsorted", input), from_right(right, side)
    refuse_bools("searchsorted", sorted_sequence)
    if sorted_sequence.ndim == 0:
        raise RuntimeError("searchsorted: the boundaries must have a dim, got a 0-d tensor")
    if sorter is not None:
        sorted_sequence = sequence_in_order(sorted_sequence, sorter)
    places = searched(sorted_sequence, values, right)
    return places.int() if out_int32 else places


def sequence_in_order(sequence, sorter):
    """The rows in the order that `sorter` gives them. Raises: RuntimeError, TypeError."""
    if not isinstance(sorter, Tensor):
        raise TypeError(f"searchsorted: sorter must be a Tensor, not {type_name(sorter)}")
    check_positions("searchsorted", sorter)
    if sorter.shape != sequence.shape:
        raise RuntimeError("searchsorted: boundary and sorter must have the same size, got "
                           f"{list(sequence.shape)} and {list(sorter.shape)}")
    try:
        return sequence.gather(-1, sorter)
    except IndexError as error:
        raise RuntimeError(f"searchsorted: sorter: {error}") from None


@composite(tensors=("input", "boundaries"), differentiable=False, method=False, out=True,
           takes="integer floating",
           reference=lambda x, boundaries: np.searchsorted(boundaries, x),
           samples=lambda rng: ((args[::-1], {}) for args, _ in SEARCHES(rng) if args[0].ndim == 1),
           errors=refusals((RuntimeError, (2,), np.ones((3, 1)))))
def bucketize(input: object, boundaries: Tensor, *, out_int32=False, right=False):
    """For each element of `input` the bucket, between sorted `boundaries`, that it is in.

    It is the number of boundaries below the element, or with `right` not above it.

    Shapes: (*), (N,) -> (*).
    Raises: RuntimeError for boundaries that are not vectors, UnsupportedDtype for bools, TypeError.

    >>> tensorlib.bucketize(tensorlib.tensor([0, 3, 9]), tensorlib.tensor([1, 3, 5]))
    tensor([0, 1, 3])
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize: boundaries must have 1 dim, got {boundaries.ndim}")
    values = value_of("bucketize", input)
    refuse_bools("bucketize", boundaries)
    places = searched(boundaries, values, bool(right))
    return places.int() if out_int32 else places


# ---- membership ----------------------------------------------------------------------------------

def members_of(rng):
    """Samples of `isin`."""
    for shape, other in (((6,), (3,)), ((2, 3), (2, 2)), ((4,), ()), ((3,), (0,)), ((4,), (20,))):
        yield (rng.integers(-3, 3, shape) * 0.5, rng.integers(-3, 3, other) * 0.5), {}


@composite(tensors=("elements", "test_elements"), differentiable=False, method=False, out=True,
           takes="integer floating", reference=np.isin, samples=members_of, complex=True)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each of `elements` is one of `test_elements`, or with `invert` is none of them.

    One of both may be a number. `assume_unique` changes nothing. NaN is not equal to itself.

    Shapes: (*), (*) -> (*), that of `elements`. Raises: RuntimeError for bools, TypeError.

    >>> tensorlib.isin(tensorlib.tensor([1, 2, 3]), tensorlib.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if not any(map(is_tensor, (elements, test_elements))):
        raise TypeError("isin: expected a Tensor among elements and test_elements, got "
                        f"{type_name(elements)} and {type_name(test_elements)}")
    elements, others = value_of("isin", elements), value_of("isin", test_elements)
    for x in (elements, others):
        refuse_bools("isin", x, RuntimeError)
    few = others.numel() <= FEW or others.numel() * elements.numel() <= PAIRS
    if few or runs_in_parts((elements, others)) or not elements_known(
            elements, others):
        found = (elements.unsqueeze(-1) == others.reshape(-1)).any(-1)
    else:
        found = from_numpy(np.isin(numbers(elements), numbers(others)).reshape(elements.shape))
    return found.logical_not() if invert else found


declared(__name__)
