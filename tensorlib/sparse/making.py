"""Sparse tensors from positions and values, dense tensors and SciPy's matrices, and back."""

from typing import Any

import numpy as np

import tensorlib
from tensorlib import Tensor, arange, from_numpy, repeat_interleave, stack, zeros
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.importing import deferred
from tensorlib.ops.arguments import integer
from tensorlib.sparse.tensor import SparseTensor

coo_matrix = deferred("scipy.sparse", "coo_matrix")


def positions(name: str, indices: Any) -> Tensor:
    """Positions as int64. Raises: TypeError for what is none."""
    found = indices if isinstance(indices, Tensor) else tensorlib.tensor(np.asarray(indices))
    if found.numel() == 0:
        return found.to(tensorlib.int64)
    if found.is_floating_point() or found.dtype.name == "bool":
        raise TypeError(f"{name}: positions must be integers, got {found.dtype}")
    return found.detach().to(tensorlib.int64)


def values_of(values: Any, dtype: Any, requires_grad: bool) -> Tensor:
    """The values, copied unless they are a tensor of this dtype."""
    found = values if isinstance(values, Tensor) else tensorlib.tensor(values)
    found = found if dtype is None else found.to(dtype)
    return found.detach().requires_grad_() if requires_grad else found


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, *,
                      dtype: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> SparseTensor:
    """The tensor with these values at these positions, and zeros elsewhere.

    Values in one position are added up. size: by default just large enough; alone, all elements are
    zero. Gradients flow to `values`, if they are part of a graph. is_coalesced: the positions are
    in order and differ.
    Shapes: (dims, entries), (entries, *) -> size. Raises: RuntimeError for positions and values
    that do not fit together or to the size, TypeError.

    >>> tensorlib.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:                 # a size alone
        size = indices if size is None else size
        if not isinstance(size, (tuple, list)):
            raise TypeError("sparse_coo_tensor: takes positions and values, or a size, got "
                            f"{type_name(size)}")
        indices, values = zeros((len(size), 0), dtype=tensorlib.int64), zeros(0, dtype=dtype)
    indices, values = positions("sparse_coo_tensor", indices), values_of(
        values, dtype, requires_grad)
    if indices.ndim != 2 or values.ndim < 1 or indices.shape[1] != values.shape[0]:
        raise RuntimeError("sparse_coo_tensor: expected positions (dims, entries) and values "
                           f"(entries, *), got shapes {tuple(indices.shape)} and "
                           f"{tuple(values.shape)}")
    dims, dense = indices.shape[0], tuple(values.shape)[1:]
    if indices.numel() and int(indices.amin()) < 0:
        raise RuntimeError("sparse_coo_tensor: found negative index "
                           f"{int(indices.amin())}")
    least = [int(m) + 1 for m in indices.amax(1)] if indices.shape[1] else [0] * dims
    size = (*least, *dense) if size is None else tuple(int(n) for n in size)
    if len(size) != dims + len(dense) or size[dims:] != dense or any(
            n < m for n, m in zip(size, least)):
        raise RuntimeError(f"sparse_coo_tensor: size {size} does not fit to positions up to "
                           f"{[m - 1 for m in least]} and values of shape {tuple(values.shape)}")
    if np.prod([float(n) for n in size[:dims]]) >= 2.0 ** 62:
        raise RuntimeError(f"sparse_coo_tensor: size {size} has too many places to count")
    return SparseTensor.of(indices, values, size, bool(is_coalesced))


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False,
                      check_invariants: bool | None = None) -> SparseTensor:
    """The matrix whose row i has the entries crow_indices[i] to crow_indices[i + 1].

    Raises: as `sparse_coo_tensor`, RuntimeError for bounds that are not ascending.
    """
    name = "sparse_csr_tensor"
    crow, columns = positions(name, crow_indices), positions(name, col_indices)
    if crow.ndim != 1 or columns.ndim != 1 or not crow.numel():
        raise RuntimeError(f"{name}: expected vectors of bounds and of columns, got shapes "
                           f"{tuple(crow.shape)} and {tuple(columns.shape)}")
    counts = crow[1:] - crow[:-1]
    if int(crow[0]) != 0 or int(crow[-1]) != columns.numel() or (
            counts.numel() and int(counts.amin()) < 0):
        raise RuntimeError(f"{name}: crow_indices must ascend from 0 to the {columns.numel()} "
                           f"entries, got {crow.tolist()[:10]}")
    rows = repeat_interleave(arange(counts.numel()), counts)
    if size is None:
        size = (counts.numel(), int(columns.amax()) + 1 if columns.numel() else 0)
    elif len(size) != 2 or int(size[0]) != counts.numel():
        raise RuntimeError(f"{name}: {counts.numel()} rows do not fit to size {tuple(size)}")
    return sparse_coo_tensor(stack([rows, columns]), values, size, dtype=dtype,
                             requires_grad=requires_grad)


def from_dense(input: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The tensor as a sparse one, without its zeros: `Tensor.to_sparse`.

    sparse_dim: how many of the first dims have positions, by default all. Raises: RuntimeError,
    TypeError for what is no int.

    >>> x = tensorlib.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    >>> (x.to_sparse() @ tensorlib.ones(2, 1)).sum().backward()
    >>> x.grad
    tensor([[0., 1.],
            [1., 0.]])
    """
    count = input.ndim if sparse_dim is None else integer("to_sparse", "sparse_dim", sparse_dim)
    if not 1 <= count <= input.ndim:
        raise RuntimeError(f"to_sparse: sparse_dim must be from 1 to {input.ndim}, got {count}")
    filled = input.detach() != 0
    for _ in range(input.ndim - count):
        filled = filled.any(-1)
    indices = filled.nonzero().t().contiguous()
    return SparseTensor.of(indices, input[tuple(indices)], input.shape, True)


def from_scipy(matrix: Any) -> SparseTensor:
    """A matrix of SciPy's, of any of its formats, as a sparse tensor."""
    found = matrix.tocoo()
    return sparse_coo_tensor(np.stack([found.row, found.col]).astype(np.int64),
                             from_numpy(np.array(found.data)), found.shape)


def to_scipy(input: SparseTensor) -> Any:
    """A sparse matrix as SciPy's `coo_matrix`; `.tocsr()` and others bring it to other formats.

    Raises: RuntimeError for what is no matrix, or requires gradients; ImportError without SciPy.
    """
    entries = input.matrix("to_scipy").coalesce()
    return coo_matrix((entries._values_.numpy(), tuple(entries._indices_.numpy())),
                      shape=tuple(input.shape))


def in_dtype(name: str) -> Any:
    """The older function that makes sparse tensors of one dtype."""
    def make(*data: Any, device: Any = None) -> SparseTensor:
        given = data if len(data) != 1 and not all(isinstance(n, int) for n in data) else (
            data[0] if len(data) == 1 and not isinstance(data[0], int) else data,)
        return sparse_coo_tensor(*given, dtype=getattr(tensorlib, name), device=device)
    make.__doc__ = (f"A sparse tensor of {name}, from positions, values and a size, or from a size:"
                    " `sparse_coo_tensor` is the newer name.")
    return make


FloatTensor = in_dtype("float32")
DoubleTensor = in_dtype("float64")
