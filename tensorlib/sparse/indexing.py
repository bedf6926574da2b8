"""Parts of sparse tensors, and sparse tensors beside each other: by their positions."""

import builtins
from typing import Any

import tensorlib
from tensorlib import Tensor, arange, cat, repeat_interleave, searchsorted
from tensorlib._core.base.shape import wrap
from tensorlib.ops.lazy import operations
from tensorlib.sparse.compressed import CompressedTensor, on_entries
from tensorlib.sparse.dispatch import does, refuse
from tensorlib.sparse.tensor import SparseTensor


def resized(input: SparseTensor, dim: int, *size: int) -> tuple[int, ...]:
    """The sizes of a tensor with another one, or none, for a dim."""
    return (*input.shape[:dim], *size, *input.shape[dim + 1:])


@does(operations.index_select)
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The rows, along a dim, that `index` names, in its order: each with its entries.

    Raises: IndexError for what is out of range.
    """
    dim = wrap("index_select", dim, input.ndim)
    size, index = input.shape[dim], index.reshape(-1)
    if index.numel() and not (-size <= int(index.amin()) and int(index.amax()) < size):
        raise IndexError(f"index_select: an index is out of range for size {size} of dim {dim}")
    sparse = input.sparse_dim()
    if dim >= sparse:
        values = input._values_.index_select(dim - sparse + 1, index)
        return SparseTensor.of(input._indices_, values, resized(input, dim, len(index)),
                               input.is_coalesced())
    index = index.to(tensorlib.int64).remainder(max(size, 1))
    places = input._indices_[dim]
    order = places.argsort(stable=True)
    ordered = places[order]
    begins = searchsorted(ordered, index)
    counts = searchsorted(ordered, index, right=True) - begins
    which = repeat_interleave(arange(len(index)), counts)
    firsts = counts.cumsum(0) - counts
    entries = order[begins[which] + arange(len(which)) - firsts[which]]
    indices = input._indices_[:, entries]
    indices[dim] = which
    return SparseTensor.of(indices, input._values_[entries], resized(input, dim, len(index)))


@does(operations.select, layouts=True)
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """The tensor of one row along a dim, without that dim: dense, if no sparse dim is left."""
    dim = wrap("select", dim, input.ndim)
    if isinstance(input, CompressedTensor) and dim < len(input.batch):
        return CompressedTensor.by(
            input.layout, *(x.select(dim, index) for x in (
                input._bounds_, input._others_, input._values_)), resized(input, dim))
    return select_entries(input, dim, index)


@on_entries
def select_entries(input: SparseTensor, dim: int, index: int) -> Tensor:
    """`select` of a tensor of layout `sparse_coo`, with a dim from the front."""
    if not -input.shape[dim] <= index < input.shape[dim]:
        raise IndexError(f"select: index {index} is out of range for size {input.shape[dim]} of "
                         f"dim {dim}")
    index = index % input.shape[dim]
    shape, sparse = resized(input, dim), input.sparse_dim()
    if dim >= sparse:
        values = input._values_.select(dim - sparse + 1, index)
        return SparseTensor.of(input._indices_, values, shape, input.is_coalesced())
    entries = (input._indices_[dim] == index).nonzero().squeeze(1)
    values = input._values_[entries]
    if sparse == 1:
        return values.sum(0, dtype=values.dtype)
    others = [d for d in range(sparse) if d != dim]
    return SparseTensor.of(input._indices_[others][:, entries], values, shape,
                           input.is_coalesced())


@does(operations.unbind, layouts=True)
def unbind(input: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The tensors of all rows along a dim, as `select` gives each."""
    dim = wrap("unbind", dim, input.ndim)
    return tuple(select(input, dim, i) for i in range(input.shape[dim]))


@does(operations.narrow, operations.narrow_copy)
def narrow(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """`length` rows along a dim, from `start` on. Raises: RuntimeError."""
    dim = wrap("narrow", dim, input.ndim)
    start = start + input.shape[dim] if start < 0 else start
    if not 0 <= start <= start + length <= input.shape[dim]:
        raise RuntimeError(f"narrow: start {start} and length {length} exceed size "
                           f"{input.shape[dim]} of dim {dim}")
    return index_select(input, dim, arange(start, start + length))


@does("getitem", layouts=True)
def getitem(input: SparseTensor, key: Any) -> Tensor:
    """Rows by ints, slices, `...`, None and one vector of positions or of choices."""
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = builtins.sum(k is not None and k is not ... for k in keys)
    if taken > input.ndim:
        raise IndexError(f"getitem: {taken} indices for a sparse tensor of {input.ndim} dims")
    places = [i for i, k in enumerate(keys) if k is ...]
    for place in reversed(places):                  # a second one stands for no dims
        keys[place:place + 1] = [slice(None)] * ((input.ndim - taken) * (place == places[0]))
    found: Any = input
    dim = 0
    for k in keys:
        if k is None:
            found = found.unsqueeze(dim)
        elif isinstance(k, slice):
            rows = range(*k.indices(found.shape[dim]))
            if len(rows) != found.shape[dim] or rows[:1] != range(1):
                found = found.index_select(dim, tensorlib.tensor(list(rows), dtype=tensorlib.int64))
        elif isinstance(k, Tensor) and k.ndim == 1 and not k.is_floating_point():
            rows = k.nonzero().squeeze(1) if k.dtype == tensorlib.bool else k
            found = found.index_select(dim, rows)
        elif isinstance(k, (Tensor, list)):
            raise refuse("getitem", input, k)
        else:
            found = found.select(dim, k)
            continue
        dim += 1
    return found


@does(operations.cat)
def concatenated(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors one after the other along a dim.

    Raises: TypeError unless all are sparse and of one kind, RuntimeError for sizes that differ.
    """
    tensors = tuple(tensors)
    first = tensors[0]
    if not all(isinstance(x, SparseTensor) and x.ndim == first.ndim
               and x.sparse_dim() == first.sparse_dim() for x in tensors):
        raise refuse("cat", *tensors)
    dim, sparse = wrap("cat", dim, first.ndim), first.sparse_dim()
    if any(resized(x, dim, 0) != resized(first, dim, 0) for x in tensors):
        raise RuntimeError("cat: the sizes must be the same in all dims but one, got "
                           f"{[tuple(x.shape) for x in tensors]} and dim {dim}")
    shape = resized(first, dim, builtins.sum(x.shape[dim] for x in tensors))
    indices, values, before = [], [], 0
    for x in tensors:
        places, own = x._indices_, x._values_
        if dim < sparse:
            places = places.clone()
            places[dim] += before
        else:
            sides = [list(own.shape), list(own.shape)]
            axis = dim - sparse + 1
            sides[0][axis], sides[1][axis] = before, shape[dim] - before - own.shape[axis]
            own = cat([own.new_zeros(sides[0]), own, own.new_zeros(sides[1])], axis)
        indices.append(places)
        values.append(own)
        before += x.shape[dim]
    return SparseTensor.of(cat(indices, 1), cat(values), shape)


@does(operations.stack)
def stacked(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors of one shape beside each other, along a new dim."""
    tensors = tuple(tensors)
    if not all(isinstance(x, SparseTensor) for x in tensors):
        raise refuse("stack", *tensors)
    return concatenated([unsqueeze(x, dim) for x in tensors], dim)


@does(operations.vstack, "row_stack")
def vstacked(tensors: Any) -> SparseTensor:
    """Sparse tensors one after the other along dim 0; vectors as rows."""
    return concatenated([unsqueeze(x, 0) if x.ndim == 1 else x for x in tensors])


@does(operations.hstack)
def hstacked(tensors: Any) -> SparseTensor:
    """Sparse tensors one after the other along dim 1, vectors along dim 0."""
    tensors = tuple(tensors)
    return concatenated(tensors, int(tensors[0].ndim > 1))


@does(operations.unsqueeze)
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """The tensor with a dim of size 1 at `dim`: sparse, unless it stands after a dense one."""
    dim, sparse = wrap("unsqueeze", dim, input.ndim + 1), input.sparse_dim()
    shape = (*input.shape[:dim], 1, *input.shape[dim:])
    if dim > sparse:
        return SparseTensor.of(input._indices_, input._values_.unsqueeze(dim - sparse + 1), shape,
                               input.is_coalesced())
    places = input._indices_
    return SparseTensor.of(cat([places[:dim], places.new_zeros((1, places.shape[1])),
                                places[dim:]]), input._values_, shape, input.is_coalesced())


@does(operations.permute, layouts=True)
def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """The tensor with its dims in another order: sparse ones among themselves, and dense ones.

    Raises: RuntimeError for what is not an order of the dims, or mixes the two.
    """
    given = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [wrap("permute", d, input.ndim) for d in given]
    first = len(input.batch) if isinstance(input, CompressedTensor) else 0
    sparse = first + input.sparse_dim()
    if [sorted(order[a:b]) for a, b in ((0, first), (first, sparse), (sparse, input.ndim))] != [
            list(range(first)), list(range(first, sparse)), list(range(sparse, input.ndim))]:
        raise RuntimeError(f"permute: {tuple(given)} is not an order of {first} batch, "
                           f"{sparse - first} sparse and {input.dense_dim()} dense dims, each "
                           "among themselves")
    if isinstance(input, CompressedTensor):
        return permute_matrices(input, order)
    values = input._values_.permute(0, *[d - sparse + 1 for d in order[sparse:]])
    return SparseTensor.of(input._indices_[order[:sparse]], values,
                           [input.shape[d] for d in order])


def permute_matrices(input: CompressedTensor, order: list[int]) -> CompressedTensor:
    """A batch of matrices with its dims in another order; the input itself if that is its own."""
    if order == list(range(input.ndim)):
        return input
    first, before = len(input.batch), order[:len(input.batch)]
    inner = first + 1 + len(input.block)
    values = input._values_.permute(*before, *range(first, inner),
                                    *[d - first - 2 + inner for d in order[first + 2:]])
    shape = [input.shape[d] for d in (*before, first, first + 1, *order[first + 2:])]
    made = CompressedTensor.by(input.layout, input._bounds_.permute(*before, first),
                               input._others_.permute(*before, first), values, shape)
    return made if order[first] == first else made.turned()


@does(operations.movedim, layouts=True)
def movedim(input: SparseTensor, source: Any, destination: Any) -> SparseTensor:
    """The tensor with the dims at `source` at `destination`, as `permute`."""
    pairs = [[wrap("movedim", d, input.ndim) for d in ([x] if isinstance(x, int) else x)]
             for x in (source, destination)]
    if builtins.any(len(set(x)) != len(pairs[0]) for x in pairs):
        raise RuntimeError(f"movedim: {source} and {destination} are not as many different dims")
    order = [d for d in range(input.ndim) if d not in pairs[0]]
    for place, dim in sorted(zip(pairs[1], pairs[0])):
        order.insert(place, dim)
    return permute(input, *order)


@does(operations.transpose, operations.swapaxes, layouts=True)
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """The tensor with two dims exchanged, as `permute`."""
    order = list(range(input.ndim))
    dim0, dim1 = (wrap("transpose", d, input.ndim) for d in (dim0, dim1))
    order[dim0], order[dim1] = dim1, dim0
    return permute(input, *order)


@does(operations.adjoint, layouts=True)
def adjoint(input: SparseTensor) -> SparseTensor:
    """The matrix, or each matrix of a batch, transposed and conjugate."""
    return conj(transpose(input, -2, -1))


@does(operations.conj, operations.resolve_conj, operations.resolve_neg, layouts=True)
def conj(input: SparseTensor) -> SparseTensor:
    """The conjugates of the elements."""
    return input.with_values(input._values_.conj())
