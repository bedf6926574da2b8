"""`SparseTensor`: the positions and the values of the elements that are stored."""

import math
from typing import Any

import tensorlib
from tensorlib import (
    Tensor, empty, get_default_dtype, no_grad, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc,
    sparse_csr,
)
from tensorlib._core.arrays.printing import elements_text, with_suffixes
from tensorlib._core.products.positions import grouped, numbered


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
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True):
        """The tensor itself, whose values require gradients from now on; those that it was made of
        do not."""
        values = self._values_
        if values.is_leaf and values.requires_grad != requires_grad:
            self._values_ = values.detach().requires_grad_(requires_grad)
        else:
            values.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        """The gradient of the elements, as a sparse tensor with the same positions; or None.

        Values in one position are added up, so the gradient of each is that of the element, which
        is there once.
        """
        g = self._values_.grad
        if g is None or self.layout is not sparse_coo or self._is_coalesced_:
            return None if g is None else self.with_values(g)
        flat, ascending = numbered(self._indices_, self.shape)
        first, _ = grouped(flat, None if ascending else flat.argsort(stable=True))
        return SparseTensor.of(self._indices_.index_select(1, first), g.index_select(0, first),
                               self.shape, True)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._values_.grad = value if value is None else value._values_

    @property
    def data(self):
        """The same entries, without a graph; a tensor of another dtype can be assigned."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if value.dtype is not self.dtype:
            Tensor.data.__set__(self, empty(tuple(self.shape), dtype=value.dtype, device="meta"))
            self._values_ = value._values_.detach().requires_grad_(self.requires_grad)
        self.become(value)

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
        return numbered(self._indices_, self.shape)[0]

    def elements(self) -> Tensor:
        """The values, beside the positions of `_indices_`."""
        return self._values_

    def coalesce(self):
        """The tensor with its positions in order, and values in one position added up."""
        if self._is_coalesced_:
            return self
        indices, values = self._indices_, self._values_
        flat, ascending = numbered(indices, self.shape)
        if ascending < 2:
            order = None if ascending else flat.argsort(stable=True)
            first, places = grouped(flat, order)
            indices = indices.index_select(1, first)
            if len(first) == len(flat):
                values = values.index_select(0, first)
            else:
                values = values.new_zeros((len(first), *values.shape[1:])).index_add(
                    0, places, values)
        return SparseTensor.of(indices, values, self.shape, True)

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

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The tensor with its zeros.

        Gradient: to the values. Those of elements without a position are lost, with `masked_grad`
        or without, as the tensor has no values for them.
        """
        values = self.elements() if dtype is None else self.elements().to(dtype)
        sizes, dims = tuple(self.shape), self._indices_.shape[0]
        flat = values.new_zeros((math.prod(sizes[:dims]), *sizes[dims:]))
        return flat.index_add_(0, self.flat(), values).reshape(sizes)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None,
                  blocksize: Any = None, dense_dim: int | None = None):
        """The tensor in a layout: `sparse_coo` (by default), or of matrices `sparse_csr`,
        `sparse_csc`, or with a blocksize `sparse_bsr` and `sparse_bsc`.

        Raises: RuntimeError for other layouts, for those of matrices if it is none, and for
        other numbers of sparse and dense dims.
        """
        if sparse_dim not in (None, self.sparse_dim()) or dense_dim not in (
                None, self.dense_dim()):
            raise RuntimeError(f"to_sparse: a sparse tensor keeps its {self.sparse_dim()} sparse "
                               f"and {self.dense_dim()} dense dims, got {sparse_dim} and "
                               f"{dense_dim}")
        return tensorlib.sparse.compressed.in_layout(self, layout, blocksize)

    def to_sparse_coo(self):
        """The tensor itself."""
        return self

    def to_sparse_csr(self, dense_dim: int | None = None):
        """The matrix with its entries in order of rows."""
        return self.to_sparse(layout=sparse_csr, dense_dim=dense_dim)

    def to_sparse_csc(self, dense_dim: int | None = None):
        """The matrix with its entries in order of columns."""
        return self.to_sparse(layout=sparse_csc, dense_dim=dense_dim)

    def to_sparse_bsr(self, blocksize: Any, dense_dim: int | None = None):
        """The matrix with blocks of (rows, columns) that lie in order of rows."""
        return self.to_sparse(layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)

    def to_sparse_bsc(self, blocksize: Any, dense_dim: int | None = None):
        """The matrix with blocks of (rows, columns) that lie in order of columns."""
        return self.to_sparse(layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)

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

    def _is_view(self) -> bool:
        """False: what shares memory are the values."""
        return False

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
                               (self.shape[1], self.shape[0]),
                               self._is_coalesced_ and self._nnz() < 2)

    T = property(t)

    @property
    def mT(self):
        """The matrix, or each matrix of a batch, with rows for columns."""
        return self.transpose(-2, -1)

    def new(self, *args: Any, **options: Any):
        """A sparse tensor of this dtype, from what `sparse_coo_tensor` takes."""
        return tensorlib.sparse_coo_tensor(*(args or ((0,),)), dtype=self.dtype, **options)

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """A tensor of this layout and dtype without entries. Raises: TypeError for blocks."""
        return tensorlib.zeros(*size, **{"dtype": self.dtype, "layout": self.layout, **options})

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Dense ones of the values' dtype."""
        return self._values_.new_ones(*size, **options)

    def new_full(self, *args: Any, **options: Any) -> Tensor:
        """A dense tensor of one number, of the values' dtype."""
        return self._values_.new_full(*args, **options)

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """A tensor of this layout and dtype without entries: as `new_zeros`."""
        return self.new_zeros(*size, **options)

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
        self.take(found._values_)
        self._indices_, self._is_coalesced_ = found._indices_, found._is_coalesced_
        return self

    def backward(self, gradient: Any = None, **options: Any) -> None:
        """`backward` of the values, with the elements of a gradient at their positions.

        Raises: RuntimeError for a gradient of another shape.
        """
        if gradient is not None:
            if gradient.shape != self.shape:
                raise RuntimeError(f"backward: expected a gradient of shape {tuple(self.shape)}, "
                                   f"got {tuple(gradient.shape)}")
            dense = gradient.to_dense()
            gradient = dense[tuple(self._indices_)].reshape(self._values_.shape)
        self._values_.backward(gradient, **options)

    def transpose_(self, dim0: int, dim1: int):
        """The tensor itself, with two dims exchanged from now on.

        Raises: as `transpose`, TypeError for layouts of matrices, which would be another one.
        """
        if self.layout is not sparse_coo:
            raise TypeError(f"transpose_ is not supported for tensors of layout {self.layout}; "
                            "transpose() gives one")
        made = self.transpose(dim0, dim1)
        Tensor.data.__set__(self, empty(tuple(made.shape), dtype=made.dtype, device="meta"))
        self.__dict__.update(made.__dict__)
        return self

    def t_(self):
        """The matrix itself, with rows for columns from now on."""
        self.matrix("t_")
        return self.transpose_(0, 1)

    def take(self, values: Tensor) -> None:
        """Has these values from now on: a leaf that requires gradients stays one, with its
        gradient if they are as many."""
        own = self._values_
        if not (own.requires_grad and own.is_leaf) or values.requires_grad:
            self._values_ = values
        elif own.shape == values.shape:
            own.data = values
        else:
            self._values_ = values.detach().requires_grad_()

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
