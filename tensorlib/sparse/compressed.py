"""Matrices whose entries, or blocks of them, lie in order of rows or of columns."""

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any, TypeVar, cast

from tensorlib import (
    Tensor, arange, equal, int32, int64, no_grad, repeat_interleave, searchsorted, sparse_bsc,
    sparse_bsr, sparse_coo, sparse_csc, sparse_csr, stack, unravel_index,
)
from tensorlib._core.products.positions import numbered
from tensorlib.sparse.tensor import SparseTensor

# in whose order the entries lie, by layout, and the layout of the transposed matrix
DIMS = {sparse_csr: 0, sparse_csc: 1, sparse_bsr: 0, sparse_bsc: 1}
TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr,
          sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}
BLOCKED = frozenset((sparse_bsr, sparse_bsc))
WORDS = ("row", "column")
Function = TypeVar("Function", bound=Callable[..., Any])


class LayoutError(RuntimeError):
    """A layout has no form for a tensor of this shape or with these entries."""


class CompressedTensor(SparseTensor, dispatches=False):
    """A sparse matrix whose entries lie in order of rows (CSR) or columns (CSC), or whose blocks of
    entries do (BSR, BSC); or a batch of such matrices, each with as many entries.

    Row i has the entries, or blocks, from `crow_indices()[i]` to `crow_indices()[i + 1]`, and
    `col_indices()` are their columns; a matrix by columns has `ccol_indices()` and `row_indices()`
    instead. The positions are in order, and each is there once.
    Shapes: of the values (*batch, entries, *block, *dense), where only BSR and BSC have blocks, of
    the matrix (*batch, rows, columns, *dense).
    """

    _layout_: Any
    _dim_: int                   # 0: in order of rows, 1: of columns
    _bounds_: Tensor             # (*batch, lines + 1)
    _others_: Tensor             # (*batch, entries)
    _found_: Tensor | None       # the positions of the elements, once they were asked for

    @classmethod
    def by(cls, layout: Any, bounds: Tensor, others: Tensor, values: Tensor, shape: Any):
        """The matrix with these entries in the order of a layout, which are not checked."""
        made = cls.bare(values, shape)
        made._layout_, made._dim_ = layout, DIMS[layout]
        made._bounds_, made._others_, made._found_ = bounds, others, None
        return made

    @property
    def batch(self) -> tuple[int, ...]:
        """The sizes of the dims before those of the matrices."""
        return tuple(self._bounds_.shape[:-1])

    @property
    def block(self) -> tuple[int, ...]:
        """The rows and columns of a block, or () for a layout of single entries."""
        first = self._bounds_.ndim
        return tuple(self._values_.shape[first:first + 2]) if self._layout_ in BLOCKED else ()

    def places(self) -> Tensor:
        """The positions of the entries or blocks, (batch dims + 2, entries), in their order."""
        bounds, count = self._bounds_, self._bounds_.shape[-1] - 1
        sizes = (bounds[..., 1:] - bounds[..., :-1]).to(int64).flatten()
        lines = repeat_interleave(arange(len(sizes)), sizes)
        others = self._others_.flatten().to(int64)
        batch: tuple[Tensor, ...] = ()
        if bounds.ndim > 1:
            *batch, lines = unraveled(lines, (*self.batch, count))
        return stack([*batch, lines, others] if self._dim_ == 0 else [*batch, others, lines])

    @property
    def _indices_(self) -> Tensor:
        """The positions of the elements, (batch dims + 2, elements), in the order of `_values_`."""
        if self._found_ is None:
            found, block = self.places(), self.block
            if block:
                inside = arange(prod(block))
                count, found = found.shape[1], found.repeat_interleave(len(inside), 1)
                for dim, size, at in ((-2, block[0], inside // block[1]),
                                      (-1, block[1], inside % block[1])):
                    found[dim] = found[dim] * size + at.repeat(count)
            self._found_ = found
        return self._found_

    layout = property(lambda self: self._layout_,
                      doc="`sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.")
    is_sparse = property(lambda self: False, doc="False, as in PyTorch: `is_sparse_csr`.")
    is_sparse_csr = property(lambda self: self._layout_ is sparse_csr,
                             doc="Whether the layout is `sparse_csr`.")

    def with_values(self, values: Tensor):
        """A matrix with the same positions and other values."""
        made = CompressedTensor.by(self._layout_, self._bounds_, self._others_, values, self.shape)
        made._found_ = self._found_
        return made

    def has_positions_of(self, other: SparseTensor) -> bool:
        """Whether a matrix of the same shape and layout has the same positions."""
        return self._values_.shape == other._values_.shape and all(
            x is y or equal(x, y) for x, y in (
                (self._bounds_, other._bounds_), (self._others_, other._others_)))

    def sparse_dim(self) -> int:
        """2: how many dims have positions, beside those of batches."""
        return 2

    def dense_dim(self) -> int:
        """How many dims the value of a position has."""
        return self._values_.ndim - self._bounds_.ndim - 2 * (self._layout_ in BLOCKED)

    def _nnz(self) -> int:
        """The number of entries, or of blocks, of each matrix."""
        return self._others_.shape[-1]

    nnz = _nnz

    # ---- its entries -----------------------------------------------------------------------------

    def _only_of(self, name, dim):
        """The matrix itself. Raises: RuntimeError unless it lies in order of this dim."""
        if self._dim_ != dim:
            raise RuntimeError(f"{name}: expected a sparse matrix by {WORDS[dim]}s, got one by "
                               f"{WORDS[self._dim_]}s: {self.layout}")
        return self

    def crow_indices(self) -> Tensor:
        """Where the entries of each row begin, and the end of the last: (*batch, rows + 1)."""
        return self._only_of("crow_indices", 0)._bounds_

    def col_indices(self) -> Tensor:
        """The columns of the entries, row by row: (*batch, entries)."""
        return self._only_of("col_indices", 0)._others_

    def ccol_indices(self) -> Tensor:
        """Where the entries of each column begin, and the end of the last: (*batch, columns + 1).
        """
        return self._only_of("ccol_indices", 1)._bounds_

    def row_indices(self) -> Tensor:
        """The rows of the entries, column by column: (*batch, entries)."""
        return self._only_of("row_indices", 1)._others_

    def values(self) -> Tensor:
        """The values, (*batch, entries, *block, *dense)."""
        return self._values_

    def _entries(self, name):
        raise RuntimeError(f"{name}: expected a sparse tensor of layout {sparse_coo}, got "
                           f"{self.layout}; to_sparse() makes one")

    def stride(self, dim: int | None = None) -> Any:
        """Raises RuntimeError: there are no strides."""
        raise RuntimeError(f"stride: matrices of layout {self.layout} have no strides")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Raises RuntimeError: it is a question of strides."""
        raise RuntimeError(f"is_contiguous: matrices of layout {self.layout} have no strides")

    def indices(self) -> Tensor:
        """Raises RuntimeError: `to_sparse().indices()` gives positions."""
        return self._entries("indices")

    def is_coalesced(self) -> bool:
        """Raises RuntimeError: it is a question of `sparse_coo`."""
        return self._entries("is_coalesced")

    def coalesce(self):
        """Raises RuntimeError: it is a question of `sparse_coo`."""
        return self._entries("coalesce")

    def merged(self):
        """The matrix itself, which has each position once."""
        return self

    # ---- other forms -----------------------------------------------------------------------------

    def elements(self) -> Tensor:
        """The values in one row, (elements, *dense), beside the positions of all elements."""
        values = self._values_
        last = self._bounds_.ndim + 2 * (self._layout_ in BLOCKED)
        return values if last == 1 else values.flatten(0, last - 1)

    def to_sparse_coo(self):
        """The entries as a tensor of layout `sparse_coo`, in the same order."""
        return SparseTensor.of(self._indices_, self.elements(), self.shape,
                               self._layout_ is sparse_csr)

    def t(self):
        """The matrix with rows for columns, whose entries lie in order of the other dim.

        Raises: RuntimeError for batches, and with dense dims.
        """
        if self.ndim != 2:
            raise RuntimeError(f"t: expected a sparse matrix, got shape {tuple(self.shape)}")
        return self.turned()

    T = property(t)

    def turned(self):
        """The matrix, or each of a batch, with rows for columns."""
        first, shape = self._bounds_.ndim, list(self.shape)
        values = self._values_
        if self._layout_ in BLOCKED:
            values = values.transpose(first, first + 1)
        shape[first - 1:first + 1] = shape[first], shape[first - 1]
        return CompressedTensor.by(TURNED[self._layout_], self._bounds_, self._others_, values,
                                   shape)

    def become(self, other: Any):
        """The matrix itself, with the entries of `other` from now on. Raises: RuntimeError."""
        found = in_layout(self.fitting(other), self.layout, self.block)
        self.take(found._values_)
        self._found_ = found._found_
        self._bounds_, self._others_ = found._bounds_, found._others_
        return self

    def emptied(self, values: Tensor):
        """A matrix of this shape and layout without entries; `values` has the dtype for it."""
        first = self._bounds_.ndim - 1
        return CompressedTensor.by(
            self._layout_, self._bounds_.new_zeros(self._bounds_.shape), self._others_[..., :0],
            values.detach().narrow(first, 0, 0), self.shape)

    def zero_(self):
        """The matrix itself, without entries from now on."""
        with no_grad():
            return self.become(self.emptied(self._values_))

    # ---- for Python ------------------------------------------------------------------------------

    def _shown_parts(self):
        words = ("crow_indices", "col_indices") if self._dim_ == 0 else (
            "ccol_indices", "row_indices")
        return (*zip(words, (self._bounds_, self._others_)), ("values", self._values_))

    def __reduce_ex__(self, protocol: Any):
        return CompressedTensor.by, (self._layout_, self._bounds_, self._others_,
                                     self._values_.detach(), tuple(self.shape))


# ---- from one layout to another ------------------------------------------------------------------

def unraveled(flat: Tensor, sizes: Any) -> tuple[Tensor, ...]:
    """The positions that numbers in the order of elements stand for; there may be no elements."""
    return unravel_index(flat, tuple(max(n, 1) for n in sizes))


def turn(places: Tensor) -> Tensor:
    """The positions with those of the last two dims exchanged."""
    return stack([*places[:-2], places[-1], places[-2]])


def assembled(layout: Any, places: Tensor, values: Tensor, shape: Any) -> CompressedTensor:
    """The matrix of a layout with entries, or blocks, at (*batch, line, place in the line), which
    are in order and differ. Raises: RuntimeError for matrices of a batch with other numbers of
    entries.
    """
    first = places.shape[0] - 2
    batch = tuple(shape[:first])
    size = shape[first + DIMS[layout]]
    lines = size // values.shape[1 + DIMS[layout]] if layout in BLOCKED else size
    if not batch:
        bounds = searchsorted(places[0].contiguous(), arange(lines + 1))
        return CompressedTensor.by(layout, bounds, places[1], values, shape)
    each = arange(prod(batch)).unsqueeze(1)
    count = values.shape[0] // max(len(each), 1)
    rows, _ = numbered(places[:-1], (*batch, lines))
    bounds = searchsorted(rows, each * lines + arange(lines + 1)) - each * count
    if count * len(each) != values.shape[0] or not bool((bounds[:, -1] == count).all()):
        raise LayoutError(f"to {layout}: expected the same number of entries in each matrix of a "
                          f"batch, got {values.shape[0]} in {len(each)} of them")
    return CompressedTensor.by(layout, bounds.reshape(*batch, lines + 1),
                               places[-1].reshape(*batch, count),
                               values.reshape(*batch, count, *values.shape[1:]), shape)


def block_of(layout: Any, blocksize: Any, shape: Any) -> tuple[int, ...]:
    """The sizes of blocks, () for a layout without. Raises: RuntimeError unless they fit."""
    if layout not in BLOCKED:
        if blocksize:
            raise RuntimeError(f"to {layout}: takes no blocksize, got {tuple(blocksize)}")
        return ()
    block = tuple(blocksize) if isinstance(blocksize, (tuple, list)) else ()
    if len(block) != 2 or not all(isinstance(n, int) and n > 0 for n in block):
        raise RuntimeError(f"to {layout}: blocksize must be two sizes above 0, got {blocksize!r}")
    if shape[0] % block[0] or shape[1] % block[1]:
        raise LayoutError(f"to {layout}: tensor sparse size ({shape[0]},{shape[1]}) must be "
                          f"divisible by given blocksize ({block[0]},{block[1]})")
    return block


def compressed(input: SparseTensor, layout: Any, blocksize: Any = None) -> CompressedTensor:
    """A tensor of layout `sparse_coo` in a layout of matrices, of which it may have a batch.

    Raises: RuntimeError for what is no matrix, and for blocks that do not fit.
    """
    first = input.sparse_dim() - 2
    if first < 0:
        raise RuntimeError(f"to {layout}: expected a sparse matrix or a batch of them, got a tensor"
                           f" of shape {tuple(input.shape)} with {first + 2} sparse dims")
    input = input.coalesce()
    places, values, shape = input._indices_, input._values_, tuple(input.shape)
    block = block_of(layout, blocksize, shape[first:])
    if block:
        sizes = [*shape[:first], shape[first] // block[0], shape[first + 1] // block[1]]
        inside = [places[first] % block[0], places[first + 1] % block[1]]
        places = stack([*places[:first], places[-2] // block[0], places[-1] // block[1]])
        if DIMS[layout]:
            places, sizes = turn(places), [*sizes[:-2], sizes[-1], sizes[-2]]
        kept, entries = numbered(places, sizes)[0].unique(return_inverse=True)
        values = values.new_zeros((len(kept), *block, *values.shape[1:])).index_put(
            (entries, *inside), values)
        places = stack(unraveled(kept, sizes))
    elif DIMS[layout]:
        places = turn(places)
        order = numbered(places, (*shape[:first], shape[first + 1], shape[first]))[0].argsort()
        places, values = places[:, order], values[order]
    made = assembled(layout, places, values, shape)
    if layout is sparse_csr:
        made._found_ = input._indices_
    return made


def in_layout(input: SparseTensor, layout: Any, blocksize: Any = None) -> SparseTensor:
    """A sparse tensor in a layout: itself, if that is its own. Raises: RuntimeError for others."""
    if layout is None or layout is sparse_coo:
        return input.to_sparse_coo()
    if layout is input.layout and (not blocksize or tuple(blocksize) == input.block):
        return input
    if layout not in DIMS:
        raise RuntimeError(f"to_sparse: layout must be {sparse_coo}, {sparse_csr}, {sparse_csc}, "
                           f"{sparse_bsr} or {sparse_bsc}, got {layout}")
    made = compressed(input.to_sparse_coo(), layout, blocksize)
    if isinstance(input, CompressedTensor) and input._bounds_.dtype is int32:
        made._bounds_, made._others_ = made._bounds_.to(int32), made._others_.to(int32)
    return made


def entries(value: Any) -> Any:
    """A sparse matrix as `sparse_coo`, those in a list too; any other value as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(entries, value)) if type(value) in (list, tuple) else value
    return value.to_sparse_coo() if isinstance(value, CompressedTensor) else value


def on_entries(function: Function) -> Function:
    """A function of `sparse_coo` tensors, for those of matrices too.

    A sparse matrix that it gives has the layout of the first sparse argument, if that is one whose
    blocks fit and the numbers of entries in a batch are the same; else it stays `sparse_coo`.
    """
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [x for value in (*args, *kwargs.values())
                 for x in (value if isinstance(value, (list, tuple)) else (value,))
                 if isinstance(x, SparseTensor)]
        if not any(isinstance(x, CompressedTensor) for x in given):
            return function(*args, **kwargs)
        found = function(*map(entries, args), **{k: entries(x) for k, x in kwargs.items()})
        first = given[0]
        if isinstance(found, SparseTensor) and isinstance(first, CompressedTensor) and (
                found.ndim == first.ndim and found.sparse_dim() == len(first.batch) + 2):
            try:
                return in_layout(found, first.layout, first.block)
            except LayoutError:
                return found
        return found
    return cast(Function, call)
