"""`index_put`, `masked_scatter`, `scatter_reduce` and copies with a view replaced; and in place."""

import numpy as np

from tensorlib._core.apply.getitem import (
    is_plain_write, masked_in_copy, write_flat, write_key, write_masked, write_over,
)
from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import broadcast_shapes, wrap
from tensorlib._core.create.overwrite import write_result
from tensorlib._core.create.ranges import arange
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.index.scatter_along import put_in_copy
from tensorlib._core.index.scatter_reduce import combine_along, combined_along
from tensorlib._core.index.keys import SharedIndex
from tensorlib._core.interpreters.foreign import elements_known, is_looked_at_alone
from tensorlib._core.layout import views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer, refuse_bools, refuse_complex
from tensorlib.ops.declare import composite, op
from tensorlib.ops.index.indexing import (
    check_mask, counted, gather, parsed, vector,
)
from tensorlib.ops.index.putting import add_index, put_index
from tensorlib.ops.index.reductions import (
    UFUNCS, combined_at, combined_slices, neutral, products_at, products_of_others,
)
from tensorlib.ops.index.rows import put_in_rows
from tensorlib.ops.index.scattering import MEETING, ROWS, elements_at, written_at
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.samples import calls, given_pairs, real, refused_calls

WHOLE, INT64 = slice(None), BY_NAME["int64"]


# ---- by an index expression ----------------------------------------------------------------------

def put_by_key(x, indices, values, accumulate=False):
    """The reference of `index_put`."""
    x, values = x.copy(), values.astype(x.dtype)
    if accumulate:
        np.add.at(x, tuple(indices), values)
    else:
        x[tuple(indices)] = values
    return x


def key_of(name, indices):
    """A tuple of tensors as a key. Raises: TypeError, IndexError."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{name}: indices must be a tuple of tensors, got {indices!r}")
    for i, index in enumerate(indices):
        if not isinstance(index, (Tensor, np.ndarray)):
            raise TypeError(f"{name}: expected a Tensor as element {i} of indices, got "
                            f"{type_name(index)}")
    if not indices:
        raise IndexError(f"{name}: indices must have at least one tensor")
    return tuple(indices)


def index_put_(input, indices, values: Tensor, accumulate=False):
    """`index_put_`: where nothing is recorded, elements are written where they lie."""
    if values.dtype is input.dtype and isinstance(indices, (tuple, list)) and (
            is_plain_write(input, values, *indices)):
        return write_key("index_put_", input, key_of("index_put", indices), values,
                         bool(accumulate))
    return write_result("index_put_", input, index_put(input, indices, values, accumulate))


@composite(tensors=("input", "values"), inplace=index_put_, reference=put_by_key,
           tolerance="reduction",
           samples=calls((real(4, 3), (np.array([0, 2]), np.array([1, 1])), real(2)),
                         (real(4, 3), (np.array([3, 0]),), real(3)),
                         (real(4, 3), (np.array([1, 1]),), real(2, 3), True)),
           errors=refused_calls((RuntimeError, real(3), (np.array([0]),), np.array([1])),
                                (IndexError, real(3), (np.array([3]),), real(1)),
                                (TypeError, real(3), np.array([0]), real(1)),
                                (TypeError, real(3), (0,), real(1))), checks_values=True,
           rounds_once=False, complex=True)
def index_put(input: Tensor, indices, values: Tensor, accumulate=False):
    """A copy of `input` with `values` at `indices`, a tuple of tensors: as input[indices] = values.

    accumulate: the values are added, also those that meet; otherwise the last of these wins.
    Shapes: (*), those of the picked elements, which `values` broadcasts to -> (*).
    Raises: RuntimeError for another dtype or shape of values, IndexError, TypeError.

    >>> x = tensorlib.zeros(3)
    >>> x.index_put((tensorlib.tensor([0, 0]),), tensorlib.tensor([1., 2.]), accumulate=True)
    tensor([3., 0., 0.])
    """
    if values.dtype is not input.dtype:
        raise RuntimeError("index_put: source and destination dtypes must match, got "
                           f"{values.dtype} and {input.dtype}")
    try:
        like = views.expand(views.zeros((), input.dtype), input.shape)    # of a batch: of one
        key = parsed("index_put", like, key_of("index_put", indices))
    except SharedIndex:                          # each example of a batch has positions of its own
        return put_in_rows(input, indices, values, accumulate)
    return (add_index if accumulate else put_index)(input, values, key)


def put_flat(x, index, source, accumulate=False):
    """The reference of `put`."""
    return put_by_key(x.reshape(-1), (index.reshape(-1),), source.reshape(-1),
                      accumulate).reshape(x.shape)


def put_over(input, index, source: Tensor, accumulate=False):
    """`put_`"""
    written = write_flat(input, index, source, accumulate)
    return written if written is not None else write_result(
        "put_", input, put(input, index, source, accumulate))


@composite(tensors=("input", "source"), inplace=put_over, reference=put_flat,
           tolerance="reduction",
           samples=calls((real(2, 3), np.array([0, -1]), real(2)),
                         (real(4), np.array([[1], [1]]), real(2, 1), True)),
           errors=refused_calls((RuntimeError, real(3), np.array([0, 1]), real(1)),
                                (IndexError, real(3), np.array([3]), real(1))), checks_values=True,
           rounds_once=False, complex=True)
def put(input: Tensor, index, source: Tensor, accumulate=False):
    """A copy of `input` with `source` at positions of `input` as a vector.

    accumulate: the values are added.
    Shapes: (*), (*), one of as many elements -> (*), that of `input`.
    Raises: RuntimeError for another number of elements or another dtype, IndexError, TypeError.
    """
    if is_looked_at_alone(input) and is_looked_at_alone(source) and is_looked_at_alone(index):
        written = put_in_copy(input, index, source, accumulate)
        if written is not None:
            return written
    if not isinstance(index, (Tensor, np.ndarray)):
        raise TypeError(f"put: index must be a Tensor, got {type_name(index)}")
    index = index.reshape(-1)
    if source.numel() != index.shape[0]:
        raise RuntimeError(f"put: index and source must have as many elements, got "
                           f"{index.shape[0]} and {source.numel()}")
    index = index if isinstance(index, Tensor) else from_numpy(index)
    return written_at("put", input.reshape(-1), 0, index, source.reshape(-1),
                      bool(accumulate)).reshape(input.shape)


def scattered_where(x, mask, source):
    """The reference of `masked_scatter`."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    x, mask = np.broadcast_to(x, shape).copy(), np.broadcast_to(mask, shape)
    x[mask] = source.reshape(-1)[:mask.sum()]
    return x


MASK = np.array([[True, False, True], [False, False, True]])


def masked_over(input, mask: Tensor, source: Tensor):
    """`masked_scatter_`"""
    done = write_masked("masked_scatter_", input, mask, source)
    if done is not None:
        return done
    return write_result("masked_scatter_", input, masked_scatter(input, mask, source))


def picked_source(mask, source):
    """The elements of a vector that go where the mask holds. Raises: RuntimeError."""
    number = int(mask.sum())
    if source.numel() < number:
        raise RuntimeError(f"masked_scatter: source has {source.numel()} elements, fewer than the "
                           f"{number} that the mask has places for")
    return source[:number]


@composite(tensors=("input", "mask", "source"), inplace=masked_over, reference=scattered_where,
           samples=calls((real(2, 3), MASK, real(5)), (real(2, 3), MASK[0], real(2, 2)),
                         (real(1, 3), MASK, real(3)), (real(), np.array(True), real(1))),
           errors=refused_calls((RuntimeError, real(2, 3), MASK, real(2)),
                                (RuntimeError, real(2, 3), MASK * 1, real(6)),
                                (RuntimeError, real(2, 3), MASK, np.ones(6, np.int64)),
                                (RuntimeError, real(2, 2), MASK, real(6))), reads_values=True,
                          complex=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor):
    """A row-major copy of `input` with the elements of `source`, in order, where the mask holds.

    Shapes: (*), (*), (K,) or more dims -> (*), with broadcasting of the first two.
    Raises: RuntimeError for a mask that is not bool, another dtype, shapes that do not broadcast,
    and fewer elements than there are places for.

    >>> x, mask = tensorlib.zeros(3), tensorlib.tensor([True, False, True])
    >>> x.masked_scatter(mask, tensorlib.tensor([5., 6.]))
    tensor([5., 0., 6.])
    """
    alone = all(map(is_looked_at_alone, (input, mask, source)))
    if alone and mask.shape == input.shape:
        written = masked_in_copy("masked_scatter", input, mask, source)
        if written is not None:
            return written
    check_mask("masked_scatter", mask)
    if source.dtype is not input.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got "
                           f"{input.dtype} and {source.dtype}")
    shape, source = input.shape, source.reshape(-1)
    if mask.shape != shape:
        shape = broadcast_shapes("masked_scatter", shape, mask.shape)
        input, mask = input.expand(shape), mask.expand(shape)
        if alone and shape:
            return masked_in_copy("masked_scatter", input, mask, source)
    if not elements_known(input, mask, source):
        places = mask.reshape(-1).cumsum(0).sub(1).clamp(min=0).reshape(shape)
        return where(mask, source[places], input).contiguous()
    source = picked_source(mask, source)
    return put_index(input, source, parsed("masked_scatter", input, mask)).contiguous()


# ---- along a dim, by a reduction -----------------------------------------------------------------

@op(public=False, method=False, takes="integer floating", tolerance="reduction",
    reference=lambda x, src, dim, index, reduce: combined_at(x, dim, index, src, reduce),
    samples=lambda rng: (
        ((rng.uniform(0.5, 2, (3, 4)), rng.uniform(0.5, 2, (2, 3)), 0, MEETING, reduce), {})
        for reduce in ("prod", "amax", "amin")), checks_values=True)
def scatter_reduced(input: Tensor, src: Tensor, dim, index, reduce):
    """The product or an extreme of elements and those of `src` at positions along a dim, which
    were checked: see `scatter_reduce`."""
    if not isinstance(index, Tensor):
        raise TypeError(f"scatter_reduced: index must be a Tensor, not {type_name(index)}")
    return combined_along(input, src, dim, index, reduce)


def own_shares(input, src, out, dim, index, reduce):
    """By what each element and each of `src` moves its result."""
    result = gather(out, dim, index)
    if reduce == "prod":
        return factors_of_others(input, src, out, result, dim, index)
    reached = (input == out.detach()).to(input.dtype)
    others = (src == result.detach()).to(input.dtype)
    ties = reached.scatter_add(dim, index, others)
    return reached / ties.where(ties != 0, 1), others / gather(ties, dim, index)


def factors_of_others(input, src, out, result, dim, index):
    """The products of all other factors, also where some are zero."""
    zeros = (input == 0).to(input.dtype).scatter_add(dim, index, (src == 0).to(input.dtype))
    if is_grad_enabled() and elements_known(zeros) and bool((zeros > 1).any()):
        place = gather(arange(input.numel()).reshape(input.shape), dim, index)
        return products_of_others(input, src, place)
    apart = scatter_reduced(input.where(input != 0, 1), src.where(src != 0, 1), dim, index, "prod")
    rest = apart.where(zeros == 1, 0)            # without the only zero
    return ((out / input.where(input != 0, 1)).where(input != 0, rest),
            (result / src.where(src != 0, 1)).where(src != 0, gather(rest, dim, index)))


@scatter_reduced.vjp("input")
def scatter_reduced_vjp_input(g, input, src, out, dim, index, reduce):
    """g times the share of the element itself."""
    return g * own_shares(input, src, out, dim, index, reduce)[0]


@scatter_reduced.vjp("src")
def scatter_reduced_vjp_src(g, input, src, out, dim, index, reduce):
    """g at its place, times its share."""
    return gather(g, dim, index) * own_shares(input, src, out, dim, index, reduce)[1]


@scatter_reduced.jvp
def scatter_reduced_jvp(d_input, d_src, input, src, out, dim, index, reduce):
    """The tangents of what came together, each times its share."""
    own, others = own_shares(input, src, out, dim, index, reduce)
    return (d_input * own).scatter_add(dim, index, d_src * others)


WITH_SOURCES = calls(
    *[(real(3, 4), 0, MEETING, real(2, 3), reduce) for reduce in UFUNCS],
    *[(real(3, 4), 1, ROWS, real(3, 4), reduce, {"include_self": False}) for reduce in UFUNCS],
    (real(), 0, np.array([0]), real(1), "prod"))


COMBINED = {BY_NAME[name] for name in (
    "uint8", "int8", "int16", "int32", "int64", "float32", "float64")}


def reduce_over(input, dim, index: Tensor, src: Tensor, reduce, *, include_self=True):
    """`scatter_reduce_`: where nothing is recorded, elements are combined where they lie."""
    if input.ndim and input.dtype in COMBINED and include_self and (
            reduce in ("prod", "amax", "amin")) and is_plain_write(input, src, index):
        src = elements_at("scatter_reduce", input, index, src)
        dim = wrap("scatter_reduce", dim, input.ndim)
        return write_over("scatter_reduce_", input, combine_along, src, dim, index, reduce)
    return write_result("scatter_reduce_", input, scatter_reduce(
        input.clone(), dim, index, src, reduce, include_self=include_self))


@composite(tensors=("input", "index", "src"), out=True, inplace=reduce_over,
           takes="integer floating", reference=combined_at, samples=WITH_SOURCES,
           tolerance="reduction",
           errors=refused_calls((RuntimeError, real(3, 4), 0, ROWS, real(2, 3), "max"),
                                (RuntimeError, real(3, 4), 0, ROWS, real(1, 3), "amax"),
                                (IndexError, real(3, 4), 0, ROWS + 3, real(2, 3), "prod"),
                                (TypeError, real(3, 4), 0, ROWS, 1.0, "sum")), checks_values=True)
def scatter_reduce(input: Tensor, dim, index: Tensor, src: Tensor, reduce, *, include_self=True):
    """A copy of `input` with src[i][j] combined with out[index[i][j]][j] for dim 0, and so on.

    reduce: "sum", "prod", "mean", and of real numbers "amax" or "amin". include_self: whether the
    elements of `input` are among those that are combined; where no position leads they stay. Of
    bools sums are "or", products "and".
    Shapes: as `scatter`. Gradient: of extremes evenly among equal ones; of products exact where
    factors are zero, and of second order where no two of them meet.
    Raises: RuntimeError for other shapes, dtypes or reductions, IndexError, TypeError.

    >>> x, index = tensorlib.ones(2), tensorlib.tensor([0, 0])
    >>> x.scatter_reduce(0, index, tensorlib.tensor([5., 6.]), "amax")
    tensor([6., 1.])
    """
    if reduce not in UFUNCS:
        raise RuntimeError("scatter_reduce: reduce must be either sum, prod, mean, amax or amin, "
                           f"got {reduce!r}")
    if input.dtype.name == src.dtype.name == "bool" and reduce != "mean":
        counted_as = "amax" if reduce == "sum" else "amin" if reduce == "prod" else reduce
        bits = [x.to(BY_NAME["uint8"]) for x in (input, src)]
        return scatter_reduce(bits[0], dim, index, bits[1], counted_as,
                              include_self=include_self).to(input.dtype)
    refuse_bools("scatter_reduce", input, RuntimeError)
    if reduce in ("amax", "amin"):
        refuse_complex("scatter_reduce", input)
    if reduce == "sum" and include_self:
        return written_at("scatter_reduce", input, dim, index, src, True)
    src = elements_at("scatter_reduce", input, index, src)
    return combined_elements(input, dim, index, src, reduce, include_self)


def combined_elements(input, dim, index, src, reduce, include_self):
    """`scatter_reduce` of elements for each position."""
    if not (input.ndim and src.ndim and index.ndim):
        parts = (x if x.ndim else x.reshape(1) for x in (input, index, src))
        base, index, src = parts
        return combined_elements(base, dim, index, src, reduce, include_self).reshape(input.shape)
    dim = wrap("scatter_reduce", dim, input.ndim)
    kept = is_grad_enabled() and (input.requires_grad or src.requires_grad)
    index, base = counted("scatter_reduce", input, dim, index, kept), input
    if not include_self:
        kind = "float32" if input.is_floating_point() else input.dtype.name
        first = neutral(np.dtype(kind), reduce)
        base = base.scatter(dim, index, first)
    if reduce == "prod" and base.is_complex():
        place = gather(arange(base.numel()).reshape(base.shape), dim, index)
        return products_at(base, src, place)
    if reduce in ("prod", "amax", "amin"):
        return scatter_reduced(base, src, dim, index, reduce)
    total = base.scatter_add(dim, index, src)
    if reduce == "mean":
        kind = base.real.dtype
        counts = base.new_full(base.shape, int(include_self), dtype=kind).scatter_add(
            dim, index, src.new_ones(src.shape, dtype=kind)).clamp(min=1)
        total = (total / counts if base.is_floating_point() or base.is_complex() else
                 total // counts)
    return total


@composite(tensors=("input", "index", "source"), out=True, inplace="of a copy",
           takes="integer floating", reference=combined_slices, tolerance="reduction",
           samples=calls(*[(real(3, 4), 0, np.array([1, 1]), real(2, 4), reduce, {
               "include_self": reduce != "amin"}) for reduce in ("prod", "mean", "amax", "amin")]),
           errors=refused_calls((RuntimeError, real(3, 4), 0, np.array([0]), real(1, 4), "sum"),
                                (RuntimeError, real(3, 4), 0, np.array([0]), real(2, 4), "prod"),
                                (IndexError, real(3, 4), 0, np.array([3]), real(1, 4), "prod")),
           checks_values=True)
def index_reduce(input: Tensor, dim, index: Tensor, source: Tensor, reduce, *, include_self=True):
    """A copy of `input` with slices of `source` combined with those at `index`, a vector.

    reduce: "prod", "mean", "amax" or "amin"; the rest is as in `scatter_reduce`.
    Shapes: (*, N, *), (K,), (*, K, *) -> (*, N, *).
    Raises: RuntimeError for other shapes, dtypes or reductions, IndexError.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError("index_reduce: expected reduce to be one of prod, mean, amax or amin "
                           f"but got {reduce!r}")
    refuse_bools("index_reduce", input, RuntimeError)
    refuse_complex("index_reduce", input, source)
    place = wrap("index_reduce", dim, input.ndim)
    index = vector("index_reduce", index).to(INT64)              # before it is expanded
    shape = list(input.shape) or [1]
    shape[place] = index.numel()
    source = source if source.ndim else source.reshape(1)
    if list(source.shape) != shape:
        raise RuntimeError(f"index_reduce: source must have the shape {tuple(shape)} of the "
                           f"slices that index picks, got {tuple(source.shape)}")
    sizes = [1] * len(shape)
    sizes[place] = index.numel()
    return scatter_reduce(input, dim, index.reshape(sizes).expand(shape), source, reduce,
                          include_self=include_self)


# ---- a view replaced -----------------------------------------------------------------------------

def replaced(name, input, part, src):
    """A copy of `input` with `src` where a view of it lies, which `part` gives."""
    out = input.clone()
    view = part(out)
    if tuple(view.shape) != tuple(src.shape):
        raise RuntimeError(f"{name}: expected src to have a size equal to the slice of self, got "
                           f"{list(src.shape)} and {list(view.shape)}")
    view.copy_(src)
    return out


def put_in_view(view):
    """The reference of a function that puts an array into another, where a view of it lies."""
    def reference(x, src, *args):
        x = x.copy()
        part = view(x, *args)
        part.flags.writeable = True
        part[...] = src
        return x
    return reference


@composite(tensors=("input", "src"), reference=put_in_view(np.diagonal),
           samples=given_pairs(((3, 4), (3,)), ((3, 4), (2,), -1), ((2, 3, 3), (2, 3), 0, 1, 2)),
           errors=lambda: iter([((np.ones((2, 2)), np.ones(3)), {}, RuntimeError)]), complex=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset=0, dim1=0, dim2=1):
    """A copy of `input` with `src` on the diagonal of two dims.

    Shapes: that of `input`, and that of its `diagonal` -> that of `input`.
    Raises: RuntimeError for another shape, IndexError.
    """
    return replaced("diagonal_scatter", input, lambda x: x.diagonal(offset, dim1, dim2), src)


@composite(tensors=("input", "src"), reference=put_in_view(
    lambda x, dim, index: x[(WHOLE,) * (dim % x.ndim) + (index, ...)]),
    samples=given_pairs(((2, 3), (3,), 0, 1), ((2, 3), (2,), -1, -1)),
    errors=lambda: iter([((np.ones((2, 2)), np.ones(3), 0, 0), {}, RuntimeError),
                         ((np.ones((2, 2)), np.ones(2), 0, 2), {}, IndexError)]), complex=True)
def select_scatter(input: Tensor, src: Tensor, dim, index):
    """A copy of `input` with `src` at one index of a dim.

    Shapes: (*, N, *), (*, *) -> (*, N, *). Raises: RuntimeError for another shape, IndexError.
    """
    return replaced("select_scatter", input, lambda x: x.select(dim, index), src)


@composite(tensors=("input", "src"), out=True, reference=put_in_view(
    lambda x, dim=0, *bounds: x[(WHOLE,) * (dim % x.ndim) + (slice(*bounds, None, None),)]
    if len(bounds) < 2 else x[(WHOLE,) * (dim % x.ndim) + (slice(*bounds),)]),
    samples=given_pairs(((4, 3), (2, 3), 0, 1, 3), ((2, 4), (2, 2), 1, None, None, 2),
                        ((3,), (1,), 0, -1), ((2,), (2,))),
    errors=lambda: iter([((np.ones(3), np.ones(2), 0, 1), {"step": 0}, RuntimeError),
                         ((np.ones(3), np.ones(1), 0, 1), {}, RuntimeError)]), complex=True)
def slice_scatter(input: Tensor, src: Tensor, dim=0, start=None, end=None, step=1):
    """A copy of `input` with `src` in a slice of a dim.

    Shapes: (*, N, *), (*, length of the slice, *) -> (*, N, *).
    Raises: RuntimeError for another shape or a step below 1, IndexError, TypeError.
    """
    dim, step = wrap("slice_scatter", dim, input.ndim), integer("slice_scatter", "step", step)
    if step < 1:
        raise RuntimeError(f"slice_scatter: slice step must be positive, got {step}")
    key = (WHOLE,) * dim + (slice(start, end, step),)
    return replaced("slice_scatter", input, lambda x: x[key], src)


def for_examples(operation):
    """Gives an operation a formula: where `src` differs between examples, so does the copy."""
    replace = operation.op.forward
    operation.formula(lambda input, src, *args, **options: replace(
        input + src.new_zeros(src.shape).sum().to(input.dtype), src, *args, **options))


for operation in (diagonal_scatter, select_scatter, slice_scatter):
    for_examples(operation)


declared(__name__)
