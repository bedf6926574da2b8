"""Matrices whose entries lie row by row (CSR) or column by column (CSC)."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from tensorlib import (
    Tensor, arange, equal, int64, no_grad, repeat_interleave, searchsorted, sparse_coo, sparse_csc,
    sparse_csr, stack,
)
from tensorlib.sparse.tensor import SparseTensor

DIMS = {sparse_csr: 0, sparse_csc: 1}      # in whose order the entries lie, by layout
WORDS = ("row", "column")
Function = TypeVar("Function", bound=Callable[..., Any])


class CompressedTensor(SparseTensor, dispatches=False):
    """A sparse matrix whose entries lie in order of rows (CSR), or in order of columns (CSC).

    Row i has the entries from `crow_indices()[i]` to `crow_indices()[i + 1]`, and `col_indices()`
    are their columns; a matrix by columns has `ccol_indices()` and `row_indices()` instead. The
    positions are in order, and each is there once.
    """

    _dim_: int                   # 0: in order of rows, 1: of columns
    _bounds_: Tensor
    _others_: Tensor
    _found_: Tensor | None       # the positions, once they were asked for

    @classmethod
    def by(cls, dim: int, bounds: Tensor, others: Tensor, values: Tensor, shape: Any):
        """The matrix with these entries in order of a dim, which are not checked."""
        made = cls.bare(values, shape)
        made._dim_, made._bounds_, made._others_, made._found_ = dim, bounds, others, None
        return made

    @property
    def _indices_(self) -> Tensor:
        """The positions, (2, entries), in the order of the entries."""
        if self._found_ is None:
            counts = (self._bounds_[1:] - self._bounds_[:-1]).to(int64)
            pair = [repeat_interleave(arange(len(counts)), counts), self._others_.to(int64)]
            self._found_ = stack(pair if self._dim_ == 0 else pair[::-1])
        return self._found_

    layout = property(lambda self: (sparse_csr, sparse_csc)[self._dim_],
                      doc="`sparse_csr` or `sparse_csc`.")
    is_sparse = property(lambda self: False, doc="False, as in PyTorch: `is_sparse_csr`.")
    is_sparse_csr = property(lambda self: self._dim_ == 0,
                             doc="Whether the entries lie in order of rows.")

    def with_values(self, values: Tensor):
        """A matrix with the same positions and other values."""
        made = self.by(self._dim_, self._bounds_, self._others_, values, self.shape)
        made._found_ = self._found_
        return made

    def has_positions_of(self, other: SparseTensor) -> bool:
        """Whether a matrix of the same shape and layout has the same positions."""
        return all(x is y or equal(x, y) for x, y in (
            (self._bounds_, other._bounds_), (self._others_, other._others_)))

    # ---- its entries -----------------------------------------------------------------------------

    def _only_of(self, name, dim):
        """The matrix itself. Raises: RuntimeError unless it lies in order of this dim."""
        if self._dim_ != dim:
            raise RuntimeError(f"{name}: expected a sparse matrix by {WORDS[dim]}s, got one by "
                               f"{WORDS[self._dim_]}s: {self.layout}")
        return self

    def crow_indices(self) -> Tensor:
        """Where the entries of each row begin, and the end of the last: (rows + 1)."""
        return self._only_of("crow_indices", 0)._bounds_

    def col_indices(self) -> Tensor:
        """The columns of the entries, row by row: (entries)."""
        return self._only_of("col_indices", 0)._others_

    def ccol_indices(self) -> Tensor:
        """Where the entries of each column begin, and the end of the last: (columns + 1)."""
        return self._only_of("ccol_indices", 1)._bounds_

    def row_indices(self) -> Tensor:
        """The rows of the entries, column by column: (entries)."""
        return self._only_of("row_indices", 1)._others_

    def values(self) -> Tensor:
        """The values, (entries)."""
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

    def to_sparse_coo(self):
        """The entries as a tensor of layout `sparse_coo`, in the same order."""
        return SparseTensor.of(self._indices_, self._values_, self.shape, self._dim_ == 0)

    def t(self):
        """The matrix with rows for columns, whose entries lie in order of the other dim."""
        return CompressedTensor.by(1 - self._dim_, self._bounds_, self._others_, self._values_,
                                   (self.shape[1], self.shape[0]))

    T = property(t)

    def become(self, other: Any):
        """The matrix itself, with the entries of `other` from now on. Raises: RuntimeError."""
        found = in_layout(self.fitting(other), self.layout)
        self._values_, self._found_ = found._values_, found._found_
        self._bounds_, self._others_ = found._bounds_, found._others_
        return self

    def zero_(self):
        """The matrix itself, without entries from now on."""
        with no_grad():
            return self.become(compressed(self.to_sparse_coo().detach().zero_(), self._dim_))

    # ---- for Python ------------------------------------------------------------------------------

    def _shown_parts(self):
        words = ("crow_indices", "col_indices") if self._dim_ == 0 else (
            "ccol_indices", "row_indices")
        return (*zip(words, (self._bounds_, self._others_)), ("values", self._values_))

    def __reduce_ex__(self, protocol: Any):
        return CompressedTensor.by, (self._dim_, self._bounds_, self._others_,
                                     self._values_.detach(), tuple(self.shape))


# ---- from one layout to another ------------------------------------------------------------------

def compressed(input: SparseTensor, dim: int) -> CompressedTensor:
    """A matrix in order of rows or columns. Raises: RuntimeError for what is no matrix."""
    input = input.matrix(f"to {(sparse_csr, sparse_csc)[dim]}").coalesce()
    lines, others = input._indices_[dim], input._indices_[1 - dim]
    values = input._values_
    if dim == 1:
        order = lines.argsort(stable=True)
        lines, others, values = lines[order], others[order], values[order]
    bounds = searchsorted(lines.contiguous(), arange(input.shape[dim] + 1))
    made = CompressedTensor.by(dim, bounds, others, values, input.shape)
    made._found_ = input._indices_ if dim == 0 else None
    return made


def in_layout(input: SparseTensor, layout: Any) -> SparseTensor:
    """A sparse tensor in a layout: itself, if that is its own. Raises: RuntimeError for others."""
    if layout is None or layout is sparse_coo:
        return input.to_sparse_coo()
    if layout is input.layout:
        return input
    if layout not in DIMS:
        raise RuntimeError(f"to_sparse: layout must be {sparse_coo}, {sparse_csr} or "
                           f"{sparse_csc}, got {layout}")
    return compressed(input.to_sparse_coo(), DIMS[layout])


def entries(value: Any) -> Any:
    """A sparse matrix as `sparse_coo`, those in a list too; any other value as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(entries, value)) if type(value) in (list, tuple) else value
    return value.to_sparse_coo() if isinstance(value, CompressedTensor) else value


def on_entries(function: Function) -> Function:
    """A function of `sparse_coo` tensors, for matrices by rows and by columns too.

    A sparse matrix that it gives has the layout of the first sparse argument.
    """
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [x for value in (*args, *kwargs.values())
                 for x in (value if isinstance(value, (list, tuple)) else (value,))
                 if isinstance(x, SparseTensor)]
        if not any(isinstance(x, CompressedTensor) for x in given):
            return function(*args, **kwargs)
        found = function(*map(entries, args), **{k: entries(x) for k, x in kwargs.items()})
        if isinstance(found, SparseTensor) and found.ndim == found.sparse_dim() == 2:
            return in_layout(found, given[0].layout)
        return found
    return cast(Function, call)
