"""`embedding_bag`, the sums, means or maxima of bags of rows of a table; and `one_hot`."""

from itertools import accumulate
from operator import index as as_int, sub

import numpy as np

from tensorlib import arange, bincount, bucketize, repeat_interleave, tensor, where, zeros
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.interpreters.foreign import elements_known
from tensorlib._core.layers import bags as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, stands_for
from tensorlib.nn.functional.checks import check_optional
from tensorlib.nn.functional.linear import by_frequency, check_indices, padding_place, renormalise
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import composite, op
from tensorlib.ops.products.sparse import sparse_product
from tensorlib.ops.references import adjoint


def bags(i, w, offsets=None, mode="mean", **options):
    """The reference of `embedding_bag`."""
    parts = list(i) if i.ndim == 2 else np.split(i, offsets[1:])
    function = {"mean": np.mean, "sum": np.sum, "max": np.max}[mode]
    return np.stack([function(w[p], 0) if len(p) else w[0] * 0 for p in parts])


def bag_samples(rng):
    """Samples of `embedding_bag`."""
    w = rng.uniform(-2, 2, (4, 3))
    for mode in ("mean", "sum", "max"):
        yield (np.array([[0, 3], [3, 1]]), w), {"mode": mode}


# ---- parts of a vector, by a kernel and by the formula that it replaces --------------------------

def places_in_bags(count, offsets, has_end):
    """The bag of each of so many places, which of them are in one, and how many bags there are."""
    at, begins = arange(count), offsets[:-1] if has_end else offsets
    kept = at < (offsets[-1] if has_end and offsets.shape[0] else count)
    return (bucketize(at, begins, right=True) - 1).clamp(min=0), kept, begins.shape[0]


def sums_formula(weight, places, offsets, mean, has_end):
    """`bag_sums` composed of operations."""
    owners, kept, count = places_in_bags(places.shape[0], offsets, has_end)
    rows = where(kept.unsqueeze(1), weight.index_select(0, places), 0)
    sums = zeros((count, weight.shape[1]), dtype=rows.dtype).index_add(0, owners, rows)
    return sums / counts_of(owners, kept, count, sums).unsqueeze(1) if mean else sums


def counts_of(owners, kept, count, like):
    """How many places each bag has, or 1."""
    return zeros(count, dtype=like.dtype).index_add(0, owners, kept.to(like.dtype)).clamp(min=1)


def shares_of(grad, places, offsets, mean, has_end):
    """What the gradients of bags give to the row of each place."""
    owners, kept, count = places_in_bags(places.shape[0], offsets, has_end)
    wide = grad.float() if grad.itemsize == 2 else grad       # in which all counts are exact
    each = (grad / counts_of(owners, kept, count, wide).unsqueeze(1)).to(grad.dtype) if (
        mean) else grad
    return where(kept.unsqueeze(1), each.index_select(0, owners), 0)


def sums_back_formula(grad, places, offsets, rows, mean, has_end):
    """`bag_sums_backward` composed of operations."""
    return zeros((rows, grad.shape[1]), dtype=grad.dtype).index_add(
        0, places, shares_of(grad, places, offsets, mean, has_end))


def sums_reference(w, places, offsets, mean, has_end):
    """The reference of `bag_sums`."""
    parts = [places[a:b] for a, b in zip(offsets, [*offsets[1:], len(places)])]
    parts = parts[:len(offsets) - has_end]
    return np.array([w[p].sum(0) / (max(1, len(p)) if mean else 1) for p in parts])


def sums_back_reference(g, places, offsets, rows, mean, has_end):
    """The reference of `bag_sums_backward`."""
    return adjoint(lambda w: sums_reference(w, places, offsets, mean, has_end),
                   (rows, g.shape[1]), g)


def part_samples(rng):
    """Samples of `bag_sums`, whose offsets are the same the other way round."""
    places = rng.integers(0, 4, 9)
    for offsets, mean, has_end in (([0, 0], True, False), ([0], False, False),
                                   ([0, 0], False, True)):
        yield (rng.uniform(-2, 2, (4, 3)), places, np.array(offsets), mean, has_end), {}


def part_back_samples(rng):
    """Samples of `bag_sums_backward`."""
    for (w, places, offsets, mean, has_end), _ in part_samples(rng):
        yield (rng.uniform(-1, 1, (len(offsets) - has_end, 3)), places, offsets, 4, mean,
               has_end), {}


@stands_for(sums_back_formula)
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    reference=sums_back_reference, samples=part_back_samples, kernel=kernels.bag_sums_backward,
    checks_values=True)
def bag_sums_backward(grad: Tensor, places: Tensor, offsets: Tensor, rows, mean, has_end):
    """The gradient of `bag_sums` for a table of so many rows."""


def sums_back(grad, weight, places, offsets, mean, has_end):
    """`bag_sums_backward`, as the sweep calls it. Where few rows of a half type have a gradient,
    the kernel would take longer for all others, in float32."""
    if isinstance(grad, Tensor) and grad.itemsize == 2 and weight.shape[0] > places.shape[0]:
        return zeros(weight.shape, dtype=grad.dtype).index_add_(
            0, places, shares_of(grad, places, offsets, mean, has_end))
    return bag_sums_backward(grad, places, offsets, weight.shape[0], mean, has_end)


@differentiated_by(sums_formula, sums_back, constants=2, takes_halves=True)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=sums_reference, samples=part_samples, kernel=kernels.bag_sums, checks_values=True)
def bag_sums(weight: Tensor, places: Tensor, offsets: Tensor, mean, has_end):
    """The sums or means of the rows of a table at places, in bags that begin at offsets.

    has_end: the last offset is the end. Raises: IndexError for a place out of range, RuntimeError
    for offsets that do not begin with 0 or that fall.
    """


# ---- bags ----------------------------------------------------------------------------------------

@composite(tensors=("input", "weight"), public=False, method=False, takes="floating",
           tolerance="reduction", reference=bags, samples=bag_samples,
           errors=lambda: (((np.array(i), np.ones((4, 3))), {}, error)
                           for i, error in (([[4]], IndexError), ([[-1]], IndexError),
                                            ([0], ValueError), ([[[0]]], ValueError))),
           checks_values=True, rounds_once=False)
def embedding_bag(input: Tensor, weight: Tensor, offsets=None, max_norm=None, norm_type=2,
                  scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """The means, sums or maxima of rows of `weight`, for bags of indices.

    The bags are the rows of a matrix, or parts of a vector that begin at `offsets`. An empty bag
    gives zeros. per_sample_weights: a factor for each index, with "sum". padding_idx: a row that
    is left out. include_last_offset: the last offset is the end. sparse: gradients are dense.
    Shapes: (B, N) or (N,), (V, D), (B,) -> (B, D).
    Raises: IndexError for an index out of range, RuntimeError for offsets that do not begin with 0
    or that fall, ValueError for other shapes or another `mode`, and for "max" with
    scale_grad_by_freq or sparse.
    """
    if mode not in ("mean", "sum", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("embedding_bag: max mode does not support scaling the gradient by the "
                         "frequency")
    if mode == "max" and sparse:
        raise ValueError("embedding_bag: max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights takes mode='sum'")
    if isinstance(per_sample_weights, Tensor) and per_sample_weights.shape != input.shape:
        raise ValueError("embedding_bag: per_sample_weights must have the shape of input")
    check_optional("embedding_bag", offsets=offsets, per_sample_weights=per_sample_weights)
    if mode != "max" and input.dtype.name in ("int32", "int64") and max_norm is None and (
            padding_idx is None and per_sample_weights is None and not scale_grad_by_freq and
            weight.ndim == 2 and weight.is_floating_point()):
        if input.ndim == 2 and offsets is None:
            begins = arange(input.shape[0]) * input.shape[1]
            return bag_sums(weight, input.reshape(-1).long(), begins, mode == "mean", False)
        if input.ndim == 1 and isinstance(offsets, Tensor) and offsets.ndim == 1 and (
                offsets.dtype.name in ("int32", "int64")):
            return bag_sums(weight, input.long(), offsets.long(), mode == "mean",
                            include_last_offset)
    return bags_of_rows(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode,
                        per_sample_weights, include_last_offset, padding_idx)


def bags_of_rows(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode,
                 per_sample_weights, include_last_offset, padding_idx):
    """`embedding_bag` with any options, by a copy of the rows."""
    check_indices("embedding_bag", input)
    places = input.reshape(-1).long()
    begins, sizes = parts_of(input, offsets, include_last_offset)
    total, size = sum(sizes), size_of_all(sizes)
    places = places[:total]
    if max_norm is not None:
        renormalise(weight, places, float(max_norm), float(norm_type))
    owners = arange(len(sizes))
    owners = owners.unsqueeze(1).expand(-1, size).reshape(-1) if size else repeat_interleave(
        owners, tensor(sizes, dtype=places.dtype))
    factors = per_sample_weights
    if factors is not None:
        factors = factors.reshape(-1)[:total]
        if padding_idx is None and not scale_grad_by_freq and factors.dtype == weight.dtype and (
                weight.ndim == 2 and weight.itemsize > 2 and weight.is_floating_point()):
            return sparse_product(factors, weight, owners, places, len(sizes))
    rows = weight.index_select(0, places)
    if scale_grad_by_freq:
        rows = by_frequency(rows, places, weight.shape[0])
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    counted = None
    if padding_idx is not None:
        padding = padding_place("embedding_bag", padding_idx, weight.shape[0])
        counted = places != padding
    if mode == "max":
        return greatest(rows, owners, begins, sizes, counted)
    if counted is not None:
        rows = where(counted.unsqueeze(1), rows, 0)
    size = input.shape[1] if input.ndim == 2 else size
    sums = sums_of_rows(rows, owners, len(sizes), size)
    if mode == "sum":
        return sums
    if counted is not None:
        counts = sums_of_rows(counted.to(sums.dtype), owners, len(sizes), None)
    elif size is not None:
        return sums / max(1, size)
    else:
        counts = tensor(sizes, dtype=sums.dtype)
    return sums / counts.clamp(min=1).unsqueeze(1)

def sums_of_rows(rows, owners, count, size):
    """The sums of the rows of each of `count` bags: of equal size, unless that is None."""
    if size is not None:
        return rows.reshape((count, size, rows.shape[1])).sum(1)
    return zeros((count, *rows.shape[1:]), dtype=rows.dtype).index_add(0, owners, rows)


def parts_of(input, offsets, include_last):
    """Where each bag begins, and how many indices it has. Raises: ValueError, RuntimeError."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: if input is 2D, then offsets has to be None")
        count, size = input.shape
        return [*range(0, count * size, size or 1)] or [0] * count, [size] * count
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ValueError("embedding_bag: input has to be a matrix, or a vector with a vector of "
                         f"offsets, got {input.ndim} dims")
    begins, end = list(map(as_int, offsets.tolist())), input.shape[0]
    if include_last and begins:
        end = begins.pop()
    bounds = [*begins, end]
    if begins and begins[0] != 0 or not 0 <= bounds[-1] <= input.shape[0] or (
            bounds != sorted(bounds)):
        raise RuntimeError("embedding_bag: offsets must begin with 0 and not fall, up to the "
                           f"number of indices, got {bounds}")
    return begins, list(map(sub, bounds[1:], bounds))


def size_of_all(sizes):
    """The number of indices that each bag has, or None where they differ."""
    return sizes[0] if sizes and sizes.count(sizes[0]) == len(sizes) else None


def greatest(rows, owners, begins, sizes, counted):
    """The maxima of bags; the first of equal ones has the gradient."""
    if counted is not None:
        rows = rows[counted]
        sizes = bincount(owners[counted], minlength=len(sizes)).tolist()
        begins = [0, *accumulate(sizes)][:-1]
    if size := size_of_all(sizes):
        return rows.reshape((len(sizes), size, *rows.shape[1:])).max(1).values
    found = rows.new_zeros((len(sizes), *rows.shape[1:]))
    for bags in alike(sizes):
        # shorter bags repeat their last row, which does not change the first maximum
        longest = max(sizes[bag] for bag in bags)
        last = tensor([sizes[bag] - 1 for bag in bags]).unsqueeze(1)
        at = tensor([begins[bag] for bag in bags]).unsqueeze(1) + arange(longest).minimum(last)
        found = found.index_copy(0, tensor(bags), rows[at].max(1).values)
    if not any(sizes):           # still a part of the graph, as an empty bag among others is
        found = found.index_add(0, zeros(0, dtype=owners.dtype), rows[:0])
    return found


def alike(sizes):
    """The bags that are not empty, in groups where none has twice as many rows as another."""
    groups = {}
    for bag, size in enumerate(sizes):
        if size:
            groups.setdefault(size.bit_length(), []).append(bag)
    return groups.values()


# ---- classes as vectors --------------------------------------------------------------------------

FEW = 4096              # elements: up to so many, comparing is faster than writing one in each row


@composite(tensors=("tensor",), public=False, method=False, differentiable=False,
           reference=lambda x, num_classes=-1: np.eye(
               num_classes if num_classes >= 0 else x.max() + 1, dtype=np.int64)[x],
           samples=lambda rng: (((rng.integers(0, 4, shape), 5), {})
                                for shape in ((3,), (2, 2), (), (0,))),
           errors=lambda: iter([((np.array([1]), 1), {}, RuntimeError),
                                ((np.array([-1]), 3), {}, RuntimeError),
                                ((np.ones(2), 3), {}, RuntimeError),
                                ((np.zeros(0, np.int64),), {}, RuntimeError),
                                ((np.array([1]), 1.5), {}, TypeError)]), checks_values=True)
def one_hot(tensor: Tensor, num_classes=-1):
    """int64 vectors of zeros with a one at the class that each element names.

    num_classes: by default the largest class and one more. Shapes: (*) -> (*, num_classes).
    Raises: RuntimeError for classes that are not int64, negative or not below `num_classes`;
    TypeError.

    >>> from tensorlib.nn.functional import one_hot
    >>> one_hot(tensorlib.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    count = number_of_classes(tensor, num_classes)
    if count > 0 and not elements_known(tensor):
        return tensor.new_empty((*tensor.shape, count)).long()
    if tensor.numel() == 0 and count <= 0:
        raise RuntimeError("one_hot: can't infer the number of classes from an empty tensor")
    low, high = (tensor.min().item(), tensor.max().item()) if tensor.numel() else (0, -1)
    if low < 0:
        raise RuntimeError(f"one_hot: class values must be non-negative, got {low}")
    if count != -1 and high >= count:
        raise RuntimeError("one_hot: class values must be smaller than num_classes, got "
                           f"{high} and {count}")
    count = high + 1 if count == -1 else count
    if 0 < tensor.numel() * count < FEW:        # in two passes, and no positions
        return (tensor.unsqueeze(-1) == arange(count)).long()
    found = tensor.new_zeros((*tensor.shape, count))
    if found.numel():
        found.view(-1)[arange(tensor.numel()) * count + tensor.reshape(-1)] = 1
    return found


def number_of_classes(tensor, num_classes):
    """The number of classes, or -1. Raises: TypeError, RuntimeError for another dtype."""
    if tensor.dtype is not BY_NAME["int64"]:
        raise RuntimeError(f"one_hot: takes classes of int64, got {tensor.dtype}")
    return integer("one_hot", "num_classes", num_classes)


@one_hot.formula
def one_hot_formula(tensor, num_classes=-1):
    """By comparison, so that each example may have classes of its own."""
    count = number_of_classes(tensor, num_classes)
    if count < 0:
        raise RuntimeError("one_hot: vmap: the shape of the result would differ between the "
                           "examples of a batch; give num_classes")
    return (tensor.unsqueeze(-1) == arange(count)).long()
