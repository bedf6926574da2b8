"""`SparseTensor`: the positions and the values of the elements that are stored."""

import math
from typing import Any

import numpy as np

import tensorlib
from tensorlib import (
    Tensor, empty, get_default_dtype, no_grad, sparse_coo, sparse_csc, sparse_csr,
)
from tensorlib._core.arrays.printing import elements_text, with_suffixes


class SparseTensor(Tensor, dispatches=False):
    """A tensor of which the elements at `indices` have `values`, and all others are zero.

    It is made by `sparse_coo_tensor` and `Tensor.to_sparse`; `CompressedTensor` has matrices in
    order of rows or columns. Its values are a Tensor, whose place in the graph is that of the
    sparse tensor. It has the operations in `functions.py` and `indexing.py`; others raise
    TypeError, and `to_dense()` is the way to them.
    """

    _indices_: Tensor
    _values_: Tensor
    _is_coalesced_: bool

    @classmethod
    def of(cls, indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False):
        """The tensor with these entries, which are not checked."""
        made = cls.bare(values, shape)
        made._indices_, made._is_coalesced_ = indices, coalesced
        return made

    @classmethod
    def bare(cls, values: Tensor, shape: Any):
        """A tensor with values whose positions are yet to be set."""
        made = Tensor.__new__(cls)
        # what looks past the class finds a tensor without memory, and no wrong numbers
        Tensor.data.__set__(made, empty(tuple(shape), dtype=values.dtype, device="meta"))
        made._values_ = values
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return tensorlib.sparse.dispatch.call(func, args, kwargs or {})

    # ---- what it is ------------------------------------------------------------------------------

    data = property(lambda self: self.detach(), doc="The same entries, without a graph.")
    is_sparse = property(lambda self: True, doc="True.")
    is_cpu = property(lambda self: True, doc="True.")
    layout = property(lambda self: sparse_coo, doc="`sparse_coo`.")
    device = property(lambda self: self._values_.device, doc="The device of the values.")
    is_leaf = property(lambda self: self._values_.is_leaf, doc="Whether the values are a leaf.")
    grad_fn = property(lambda self: self._values_.grad_fn, doc="The node of the values, or None.")

    def stride(self, dim: int | None = None) -> Any:
        """A step of 0 for each dim: elements lie in no order of their own. Raises: IndexError."""
        steps = (0,) * self.ndim
        return steps if dim is None else steps[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False."""
        return False

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for the values."""
        return self._values_.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values_.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True):
        """The tensor itself, whose values require gradients from now on."""
        self._values_.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        """The gradient of the values, as a sparse tensor with the same positions; or None."""
        g = self._values_.grad
        return None if g is None else self.with_values(g)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._values_.grad = value if value is None else value._values_

    def sparse_dim(self) -> int:
        """How many dims have positions."""
        return self._indices_.shape[0]

    def dense_dim(self) -> int:
        """How many dims the value of a position has."""
        return self._values_.ndim - 1

    def _nnz(self) -> int:
        """The number of entries."""
        return self._values_.shape[0]

    nnz = _nnz

    # ---- its entries -----------------------------------------------------------------------------

    def is_coalesced(self) -> bool:
        """Whether the positions are known to be in order and to differ."""
        return self._is_coalesced_

    def _coalesced_(self, coalesced: bool):
        """The tensor itself, whose positions are taken to be in order, or not, from now on."""
        self._is_coalesced_ = bool(coalesced)
        return self

    def _indices(self) -> Tensor:
        return self._indices_

    def _values(self) -> Tensor:
        return self._values_

    def indices(self) -> Tensor:
        """The positions, (dims, entries). Raises: RuntimeError if they are not coalesced."""
        return self._entries("indices")._indices_

    def values(self) -> Tensor:
        """The values, (entries, *). Raises: RuntimeError if they are not coalesced."""
        return self._entries("values")._values_

    def _entries(self, name):
        if not self._is_coalesced_:
            raise RuntimeError(f"{name}: of an uncoalesced tensor, whose positions may be there "
                               "twice; call .coalesce() first")
        return self

    def flat(self) -> Tensor:
        """The positions as numbers in the order of elements."""
        rows = list(self._indices_)
        flat = rows[0] if rows else self._indices_.new_zeros((self._nnz(),))
        for index, size in zip(rows[1:], self.shape[1:]):
            flat = flat * size + index
        return flat

    def coalesce(self):
        """The tensor with its positions in order, and values in one position added up."""
        if self._is_coalesced_:
            return self
        flat, values = self.flat(), self._values_
        if flat.shape[0] and bool((flat[1:] >= flat[:-1]).all()):
            kept, places = flat.unique_consecutive(return_inverse=True)
        else:
            kept, places = flat.unique(return_inverse=True)
        sums = values.new_zeros((kept.shape[0], *values.shape[1:])).index_add(0, places, values)
        sizes = tuple(self.shape)[:self.sparse_dim()]
        rows = np.unravel_index(kept.numpy(), sizes) if sizes else ()
        indices = tensorlib.from_numpy(np.array(rows, np.int64).reshape(len(sizes), len(kept)))
        return SparseTensor.of(indices, sums, self.shape, True)

    def with_values(self, values: Tensor):
        """A tensor with the same positions and other values."""
        return SparseTensor.of(self._indices_, values, self.shape, self._is_coalesced_)

    def merged(self):
        """The tensor with each position once: `coalesce()`."""
        return self.coalesce()

    def crow_indices(self) -> Tensor:
        """Raises RuntimeError: `to_sparse_csr().crow_indices()` gives them."""
        return self._compressed_part("crow_indices", "to_sparse_csr")

    def col_indices(self) -> Tensor:
        """Raises RuntimeError: `to_sparse_csr().col_indices()` gives them."""
        return self._compressed_part("col_indices", "to_sparse_csr")

    def ccol_indices(self) -> Tensor:
        """Raises RuntimeError: `to_sparse_csc().ccol_indices()` gives them."""
        return self._compressed_part("ccol_indices", "to_sparse_csc")

    def row_indices(self) -> Tensor:
        """Raises RuntimeError: `to_sparse_csc().row_indices()` gives them."""
        return self._compressed_part("row_indices", "to_sparse_csc")

    def _compressed_part(self, name, maker):
        raise RuntimeError(f"{name}: expected a sparse matrix by rows or columns, got "
                           f"{self.layout}; {maker}() makes one")

    def matrix(self, name: str):
        """The tensor itself. Raises: RuntimeError unless it is a matrix of numbers."""
        if self.sparse_dim() != 2 or self.ndim != 2:
            raise RuntimeError(f"{name}: expected a sparse matrix, got a tensor of shape "
                               f"{tuple(self.shape)} with {self.sparse_dim()} sparse dims")
        return self

    # ---- other forms -----------------------------------------------------------------------------

    def to_dense(self, dtype: Any = None) -> Tensor:
        """The tensor with its zeros."""
        values = self._values_ if dtype is None else self._values_.to(dtype)
        sizes, sparse = tuple(self.shape), self.sparse_dim()
        count = math.prod(sizes[:sparse])
        flat = values.new_zeros((count, *sizes[sparse:]))
        return flat.index_add(0, self.flat(), values).reshape(sizes)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None):
        """The tensor in a layout: `sparse_coo` (by default), `sparse_csr` or `sparse_csc`.

        Raises: RuntimeError for other layouts, for those of matrices if it is none, and for
        another number of sparse dims.
        """
        if sparse_dim not in (None, self.sparse_dim()):
            raise RuntimeError(f"to_sparse: a sparse tensor keeps its {self.sparse_dim()} sparse "
                               f"dims, got {sparse_dim}")
        return tensorlib.sparse.compressed.in_layout(self, layout)

    def to_sparse_coo(self):
        """The tensor itself."""
        return self

    def to_sparse_csr(self):
        """The matrix with its entries in order of rows."""
        return self.to_sparse(layout=sparse_csr)

    def to_sparse_csc(self):
        """The matrix with its entries in order of columns."""
        return self.to_sparse(layout=sparse_csc)

    def detach(self):
        """The tensor outside of the graph."""
        return self.with_values(self._values_.detach())

    def detach_(self):
        """The tensor itself, outside of the graph from now on."""
        self._values_ = self._values_.detach()
        return self

    def clone(self, **kwargs: Any):
        """A copy, which is part of the graph."""
        return self.with_values(self._values_.clone())

    def to(self, *args: Any, **kwargs: Any):
        """The tensor with its values in another dtype."""
        values = self._values_.to(*args, **kwargs)
        return self if values is self._values_ else self.with_values(values)

    def cpu(self):
        """The tensor itself."""
        return self

    contiguous = cpu

    def type(self, dtype: Any = None):
        """The name of this kind of tensor, or the tensor in a dtype."""
        if dtype is not None:
            return self.to(dtype)
        return self._values_.type().replace(".", ".sparse.")

    def is_signed(self) -> bool:
        """Whether the values can be negative."""
        return self._values_.is_signed()

    def is_same_size(self, other: Tensor) -> bool:
        """Whether another tensor has this shape."""
        return self.shape == other.shape

    def ndimension(self) -> int:
        """How many dims there are."""
        return self.ndim

    def get_device(self) -> int:
        """-1: on a CPU."""
        return -1

    def t(self):
        """The matrix with rows for columns."""
        self.matrix("t")
        return SparseTensor.of(self._indices_.flip(0), self._values_,
                               (self.shape[1], self.shape[0]))

    T = property(t)

    @property
    def mT(self):
        """The matrix, or each matrix of a batch, with rows for columns."""
        return self.transpose(-2, -1)

    def new(self, *args: Any, **options: Any):
        """A sparse tensor of this dtype, from what `sparse_coo_tensor` takes."""
        return tensorlib.sparse_coo_tensor(*(args or ((0,),)), dtype=self.dtype, **options)

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """Dense zeros of the values' dtype."""
        return self._values_.new_zeros(*size, **options)

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Dense ones of the values' dtype."""
        return self._values_.new_ones(*size, **options)

    def new_full(self, *args: Any, **options: Any) -> Tensor:
        """A dense tensor of one number, of the values' dtype."""
        return self._values_.new_full(*args, **options)

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """A dense tensor of the values' dtype whose elements are not set."""
        return self._values_.new_empty(*size, **options)

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """A dense tensor of `data`, of the values' dtype."""
        return self._values_.new_tensor(data, **options)

    def zero_(self):
        """The tensor itself, without entries from now on."""
        self._indices_, self._values_ = self._indices_[:, :0], self._values_.detach()[:0]
        self._is_coalesced_ = True
        return self

    def become(self, other: Any):
        """The tensor itself, with the entries of `other` from now on.

        Raises: RuntimeError for another shape or dtype, and where that is dense.
        """
        found = self.fitting(other).to_sparse_coo()
        self._indices_, self._values_ = found._indices_, found._values_
        self._is_coalesced_ = found._is_coalesced_
        return self

    def fitting(self, other: Any):
        """A sparse tensor of this shape and dtype. Raises: RuntimeError for what is none."""
        if not isinstance(other, SparseTensor) or (other.shape, other.dtype) != (
                self.shape, self.dtype):
            raise RuntimeError("a sparse tensor can't be written in place with what is dense or of "
                               f"another shape or dtype: {tuple(self.shape)} {self.dtype} and "
                               f"{tuple(other.shape)} {other.dtype}")
        return other

    def has_positions_of(self, other: Any) -> bool:
        """Whether a tensor of the same shape and layout has the same positions, in one order."""
        one, two = self._indices_, other._indices_
        return self._is_coalesced_ and other._is_coalesced_ and (
            one is two or tensorlib.equal(one, two))

    # ---- for Python ------------------------------------------------------------------------------

    def _shown_parts(self):
        """The names and the elements of what `repr` shows."""
        return ("indices", self._indices_), ("values", self._values_)

    def __repr__(self) -> str:
        dtype, default = self.dtype, get_default_dtype()
        suffixes = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        if dtype.name not in (default.name, default.to_complex().name, "int64", "bool"):
            suffixes.append(f"dtype={dtype}")
        suffixes.append(f"layout={self.layout}")
        if self.grad_fn is not None:
            suffixes.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            suffixes.append("requires_grad=True")
        start = " " * len("tensor(")
        parts = f",\n{start}".join(part_text(name, x.detach(), len(start))
                                   for name, x in self._shown_parts())
        if self.layout is sparse_coo:            # whose sizes begin a line of their own
            parts += f",\n{start}{suffixes.pop(0)}"
        return with_suffixes(f"tensor({parts}", suffixes, len(start))

    __format__ = object.__format__

    def numpy(self, *args: Any, **kwargs: Any):
        """Raises TypeError: `to_dense().numpy()` and `sparse.to_scipy` give arrays."""
        raise TypeError("numpy is not supported for sparse tensors; to_dense().numpy() gives an "
                        "array, sparse.to_scipy a sparse matrix")

    __array__ = numpy

    def tolist(self):
        """Raises TypeError: `to_dense().tolist()` gives lists."""
        raise TypeError("tolist is not supported for sparse tensors; to_dense().tolist() gives "
                        "lists")

    def __deepcopy__(self, memo: dict[int, Any]):
        with no_grad():
            values = self._values_.detach().clone()
        return self.with_values(values.requires_grad_(self.requires_grad))

    def __reduce_ex__(self, protocol: Any):
        return SparseTensor.of, (self._indices_, self._values_.detach(), tuple(self.shape),
                                 self._is_coalesced_)


def part_text(name: str, x: Tensor, indent: int) -> str:
    """Positions or values as `repr` shows them: without their dtype."""
    first = f"{name}=tensor("
    return first + (elements_text(x, indent + len(first)) if x.numel() else
                    f"[], size={tuple(x.shape)}") + ")"
