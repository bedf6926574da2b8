"""Sparse tensors from positions and values, dense tensors and SciPy's matrices, and back."""

from math import prod
from typing import Any

import numpy as np

import tensorlib
from tensorlib import (
    Tensor,
    arange,
    from_numpy,
    int64,
    searchsorted,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    zeros,
)
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.importing import deferred
from tensorlib._core.products.positions import extents, survey_bounds, within
from tensorlib.ops.arguments import integer
from tensorlib.sparse.compressed import (
    BLOCKED, DIMS, WORDS, CompressedTensor, assembled, block_of, in_layout, turn,
)
from tensorlib.sparse.dispatch import does, refuse
from tensorlib.sparse.functions import places_in
from tensorlib.sparse.invariants import check_sparse_tensor_invariants
from tensorlib.sparse.tensor import SparseTensor

coo_matrix = deferred("scipy.sparse", "coo_matrix")


def made_in(name: str, sizes: tuple[Any, ...], size: Any, dtype: Any, layout: Any, device: Any,
            requires_grad: bool) -> SparseTensor:
    """A tensor of a layout without entries: `zeros` and `empty` of that layout.

    Raises: TypeError for what is no layout, and for layouts of blocks, whose sizes are not known,
    RuntimeError for other devices than the CPU.
    """
    if device is not None and tensorlib.device(device).type != "cpu":
        raise RuntimeError(f"{name}: sparse tensors are on the CPU, got {device!r}")
    sizes = size if not sizes else sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
    if layout is not sparse_coo and (layout not in DIMS or layout in BLOCKED):
        raise TypeError(f"{name}: layout must be {tensorlib.strided}, {sparse_coo}, {sparse_csr} "
                        f"or {sparse_csc}, got {layout!r}")
    made = in_layout(sparse_coo_tensor(sizes, dtype=dtype, is_coalesced=True), layout)
    return made.requires_grad_(requires_grad)


def positions(name: str, indices: Any) -> Tensor:
    """Positions as int64. Raises: TypeError for what is none."""
    found = indices if isinstance(indices, Tensor) else tensorlib.tensor(indices)
    if found.dtype is int64:
        return found
    if found.numel() == 0:
        return found.to(tensorlib.int64)
    if found.is_floating_point() or found.dtype.name == "bool":
        raise TypeError(f"{name}: positions must be integers, got {found.dtype}")
    return found.detach().to(tensorlib.int64)


def values_of(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """The values, copied unless they are a tensor of this dtype."""
    found = values if isinstance(values, Tensor) else tensorlib.tensor(values)
    if dtype is not None or device is not None:
        found = found.to(dtype=dtype, device=device)
    found = found.detach().requires_grad_() if requires_grad else found
    return found if found.ndim else found.reshape(1)


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
    indices = positions("sparse_coo_tensor", indices)
    values = values_of(values, dtype, device, requires_grad)
    size = fitting_size("sparse_coo_tensor", indices, values, size)
    return SparseTensor.of(indices, values, size, bool(is_coalesced) or len(values) < 2)


def fitting_size(name: str, indices: Tensor, values: Tensor, size: Any) -> tuple[int, ...]:
    """The size, or the least one if it is None. Raises: RuntimeError unless all three fit."""
    if indices.ndim != 2 or values.ndim < 1 or indices.shape[1] != values.shape[0]:
        raise RuntimeError(f"{name}: expected positions (dims, entries) and values (entries, *), "
                           f"got shapes {tuple(indices.shape)} and {tuple(values.shape)}")
    dims, dense = indices.shape[0], tuple(values.shape)[1:]
    if size is not None and len(size) == dims + len(dense) and tuple(size[dims:]) == dense and (
            within(indices, size)):
        return tuple(map(int, size))
    least_index, most = extents(indices)
    if least_index < 0:
        raise RuntimeError(f"{name}: found negative index {least_index}")
    least = [m + 1 for m in most]
    size = (*least, *dense) if size is None else tuple(int(n) for n in size)
    if len(size) != dims + len(dense) or size[dims:] != dense or any(
            n < m for n, m in zip(size, least)):
        raise RuntimeError(f"{name}: size {size} does not fit to positions up to "
                           f"{[m - 1 for m in least]} and values of shape {tuple(values.shape)}")
    if prod(size[:dims]) >= 1 << 62:
        raise RuntimeError(f"{name}: size {size} has too many places to count")
    return size


def of_bounds(name: str, layout: Any, bounds: Any, others: Any, values: Any, size: Any,
              options: tuple[Any, Any, bool], check: bool | None = None) -> CompressedTensor:
    """The matrix whose line i, a row or a column, has the entries bounds[i] to bounds[i + 1].

    Positions that are out of order, or there twice, are put in order, and their values added up.
    """
    dim = DIMS[layout]
    given = bounds, others
    bounds, others = positions(name, bounds), positions(name, others)
    values = values_of(values, *options)
    lines, entries, found = tuple(bounds.shape), tuple(others.shape), tuple(values.shape)
    dims, blocked = len(lines), 2 * (layout in BLOCKED)
    batch = lines[:-1]
    if not dims or len(entries) != dims or len(found) < dims + blocked or not (
            lines[-1] and batch == entries[:-1] == found[:dims - 1]
            and entries[-1] == found[dims - 1]):
        raise RuntimeError(f"{name}: expected bounds (*batch, lines + 1), places (*batch, entries) "
                           f"and values (*batch, entries, *), got shapes {lines}, {entries} and "
                           f"{found}")
    block = found[dims:dims + 2] if blocked else (1, 1)
    if 0 in block:
        raise RuntimeError(f"{name}: blocks must have elements, got values of shape {found}")
    ascend, least, most, ordered = survey_bounds(bounds, others)
    if not ascend:
        raise RuntimeError(f"{name}: the bounds must ascend from 0 to the {entries[-1]} "
                           f"entries, got {bounds.tolist()[:10]}")
    if least < 0:
        raise RuntimeError(f"{name}: found negative index {least}")
    sizes = [lines[-1] - 1, most + 1]
    least_size = [n * m for n, m in zip(sizes[::-1] if dim else sizes, block)]
    dense = found[dims + blocked:]
    size = (*batch, *least_size, *dense) if size is None else tuple(map(int, size))
    grid = size[dims - 1:dims + 1]
    if size != (*batch, *grid, *dense) or len(grid) != 2 or grid[dim] != least_size[dim] or (
            grid[1 - dim] < least_size[1 - dim] or grid[1 - dim] % block[1 - dim]):
        raise RuntimeError(f"{name}: size {size} does not fit to {sizes[0]} {WORDS[dim]}s, "
                           f"{WORDS[1 - dim]}s up to {most} and values of shape {found}")
    if bounds is not given[0] and all(
            isinstance(x, Tensor) and x.dtype is tensorlib.int32 for x in given):
        bounds, others = given
    made = CompressedTensor.by(layout, bounds, others, values, size)
    if ordered:
        return made
    if check or check is None and check_sparse_tensor_invariants.is_enabled():
        raise RuntimeError(f"{name}: the places in a {WORDS[dim]} must ascend, and each be there "
                           "once")
    places = turn(made.places()) if dim else made.places()
    sizes[1] = grid[1 - dim] // block[1 - dim]
    found = SparseTensor.of(places, values.flatten(0, dims - 1),
                            (*batch, *sizes, *values.shape[dims:])).coalesce()
    found = assembled(layout, found._indices_, found._values_, size)
    return CompressedTensor.by(layout, found._bounds_.to(bounds.dtype),
                               found._others_.to(others.dtype), found._values_, size)


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False,
                      check_invariants: bool | None = None) -> CompressedTensor:
    """The matrix whose row i has the entries crow_indices[i] to crow_indices[i + 1].

    Shapes: (*batch, rows + 1), (*batch, entries), (*batch, entries, *dense) -> (*batch, rows,
    columns, *dense). check_invariants: columns that do not ascend in a row are refused.
    Raises: as `sparse_coo_tensor`, RuntimeError for bounds that are not ascending.
    """
    return of_bounds("sparse_csr_tensor", sparse_csr, crow_indices, col_indices, values, size,
                     (dtype, device, requires_grad), check_invariants)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False,
                      check_invariants: bool | None = None) -> CompressedTensor:
    """The matrix whose column i has the entries ccol_indices[i] to ccol_indices[i + 1].

    Shapes, Raises: as `sparse_csr_tensor`, with columns for rows.

    >>> tensorlib.sparse_csc_tensor([0, 1, 2], [1, 0], [5.0, 6.0]).to_dense()
    tensor([[0., 6.],
            [5., 0.]])
    """
    return of_bounds("sparse_csc_tensor", sparse_csc, ccol_indices, row_indices, values, size,
                     (dtype, device, requires_grad), check_invariants)


def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False,
                      check_invariants: bool | None = None) -> CompressedTensor:
    """The matrix whose row of blocks i has the blocks crow_indices[i] to crow_indices[i + 1].

    Shapes: (*batch, block rows + 1), (*batch, blocks), (*batch, blocks, h, w, *dense) -> (*batch,
    block rows * h, block columns * w, *dense). Raises: as `sparse_csr_tensor`.

    >>> tensorlib.sparse_bsr_tensor([0, 1], [1], [[[5.0], [6.0]]]).to_dense()
    tensor([[0., 5.],
            [0., 6.]])
    """
    return of_bounds("sparse_bsr_tensor", sparse_bsr, crow_indices, col_indices, values, size,
                     (dtype, device, requires_grad), check_invariants)


def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None, device: Any = None, pin_memory: bool = False,
                      requires_grad: bool = False,
                      check_invariants: bool | None = None) -> CompressedTensor:
    """The matrix whose column of blocks i has the blocks ccol_indices[i] to ccol_indices[i + 1].

    Shapes, Raises: as `sparse_bsr_tensor`, with columns of blocks for rows.
    """
    return of_bounds("sparse_bsc_tensor", sparse_bsc, ccol_indices, row_indices, values, size,
                     (dtype, device, requires_grad), check_invariants)


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any,
                             size: Any = None, *, dtype: Any = None, layout: Any = None,
                             device: Any = None, pin_memory: bool = False,
                             requires_grad: bool = False,
                             check_invariants: bool | None = None) -> CompressedTensor:
    """`sparse_csr_tensor`, `sparse_csc_tensor`, `sparse_bsr_tensor` or `sparse_bsc_tensor`, by the
    layout. Raises: RuntimeError for others.
    """
    if layout not in DIMS:
        raise RuntimeError(f"sparse_compressed_tensor: layout must be {sparse_csr}, {sparse_csc}, "
                           f"{sparse_bsr} or {sparse_bsc}, got {layout}")
    return of_bounds("sparse_compressed_tensor", layout, compressed_indices, plain_indices, values,
                     size, (dtype, device, requires_grad), check_invariants)


def convert_indices_from_coo_to_csr(input: Tensor, size: int, *,
                                    out_int32: bool = False) -> Tensor:
    """Where the entries of each of `size` rows begin among ascending rows, and the last ones end.

    Raises: RuntimeError for rows that are not vectors.
    """
    rows = positions("_convert_indices_from_coo_to_csr", input)
    if rows.ndim != 1:
        raise RuntimeError("_convert_indices_from_coo_to_csr: expected a vector of rows, got the "
                           f"shape {tuple(rows.shape)}")
    return searchsorted(rows.contiguous(), arange(size + 1), out_int32=out_int32)


def convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *,
                                    out_int32: bool = False, transpose: bool = False) -> Tensor:
    """Rows and columns of the entries of a matrix in CSR, or with `transpose` of one in CSC.

    Raises: RuntimeError as `sparse_csr_tensor` does.
    """
    found = of_bounds("_convert_indices_from_csr_to_coo", sparse_csr, crow_indices, col_indices,
                      zeros(col_indices.shape), None, (None, None, False)).places()
    both = turn(found) if transpose else found
    return both.to(tensorlib.int32) if out_int32 else both


def from_dense(input: Tensor, sparse_dim: int | None = None, layout: Any = None,
               blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """The tensor as a sparse one, without its zeros: `Tensor.to_sparse`.

    sparse_dim: how many of the first dims have positions, by default all. layout: `sparse_coo`, or
    of matrices `sparse_csr` or `sparse_csc`, and with a blocksize `sparse_bsr` or `sparse_bsc`.
    Raises: RuntimeError, TypeError for what is not an int.

    >>> x = tensorlib.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    >>> (x.to_sparse() @ tensorlib.ones(2, 1)).sum().backward()
    >>> x.grad
    tensor([[0., 1.],
            [1., 0.]])
    """
    if layout in DIMS:
        return in_blocks(input, layout, blocksize, dense_dim)
    if layout is tensorlib.strided:
        return input
    if layout not in (None, sparse_coo) or blocksize is not None or (
            dense_dim is not None and sparse_dim is not None):
        raise RuntimeError(f"to_sparse: layout must be one of sparse tensors, {sparse_coo} takes no"
                           f" blocksize and one of sparse_dim and dense_dim, got {layout}, "
                           f"{blocksize}, {sparse_dim} and {dense_dim}")
    if dense_dim is not None:
        sparse_dim = input.ndim - integer("to_sparse", "dense_dim", dense_dim)
    count = input.ndim if sparse_dim is None else integer("to_sparse", "sparse_dim", sparse_dim)
    if not min(1, input.ndim) <= count <= input.ndim:
        raise RuntimeError(f"to_sparse: sparse_dim must be from 1 to {input.ndim}, got {count}")
    if input.ndim == 0:
        values = input.reshape(1)[:int(bool(input))]
        return SparseTensor.of(zeros((0, len(values)), dtype=int64), values, (), True)
    filled = input.detach() != 0
    for _ in range(input.ndim - count):
        filled = filled.any(-1)
    indices = filled.nonzero().t().contiguous()
    return SparseTensor.of(indices, input[tuple(indices)], input.shape, True)


def in_blocks(input: Tensor, layout: Any, blocksize: Any, dense_dim: Any) -> CompressedTensor:
    """A dense tensor (*batch, rows, columns, *dense) in a layout of matrices."""
    dense = 0 if dense_dim is None else integer("to_sparse", "dense_dim", dense_dim)
    first = input.ndim - dense - 2
    if first < 0 or dense < 0:
        raise RuntimeError(f"to {layout}: expected a matrix or a batch of them, got shape "
                           f"{tuple(input.shape)} with {dense} dense dims")
    block = block_of(layout, blocksize, input.shape[first:])
    shape, filled = input.shape, input
    if block:                                # (*batch, rows, columns, *block, *dense)
        high, wide = shape[first] // block[0], shape[first + 1] // block[1]
        input = input.reshape(*shape[:first], high, block[0], wide, block[1], *shape[first + 2:])
        filled = input = input.transpose(first + 1, first + 2)
    filled = filled.detach() != 0
    while filled.ndim > first + 2:
        filled = filled.any(-1)
    turned = DIMS[layout] == 1
    places = (filled.transpose(first, first + 1) if turned else filled).nonzero().t().contiguous()
    values = input[tuple(turn(places) if turned else places)]
    return assembled(layout, places, values, shape)


@does("sparse_mask")
def masked(input: Tensor, mask: Any) -> SparseTensor:
    """The elements of a tensor at the positions of a sparse one: `Tensor.sparse_mask`.

    Gradient: to those elements. Raises: TypeError unless mask is sparse, RuntimeError if their
    shapes differ.
    """
    if not isinstance(mask, SparseTensor):
        raise TypeError(f"sparse_mask: mask must be a sparse tensor, got {type_name(mask)}")
    if input.shape != mask.shape:
        raise RuntimeError(f"sparse_mask: the shapes must be the same, got {tuple(input.shape)} "
                           f"and {tuple(mask.shape)} of the mask")
    if isinstance(input, SparseTensor):
        return masked_sparse(input.coalesce(), mask.coalesce())
    return SparseTensor.of(mask._indices(), input[tuple(mask._indices())], mask.shape,
                           mask.is_coalesced())


def masked_sparse(input: SparseTensor, mask: SparseTensor) -> SparseTensor:
    """The elements of a sparse tensor at the positions of another; zero where it has none."""
    if input.sparse_dim() != mask.sparse_dim():
        raise refuse("sparse_mask", input, mask)
    found, places = places_in(input, mask)
    values = input._values_.new_zeros((mask._nnz(), *input._values_.shape[1:]))
    values = values.index_put((found.nonzero().squeeze(1),), input._values_[places[found]])
    return SparseTensor.of(mask._indices_, values, mask.shape, True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> SparseTensor:
    """The sparse matrix with these diagonals: element j of each row lies in column j.

    Raises: RuntimeError for other than distinct offsets, one for each row, and for other layouts.

    >>> spdiags(tensorlib.tensor([[1., 2., 3.]]), tensorlib.tensor([1]), (3, 3)).to_dense()
    tensor([[0., 2., 0.],
            [0., 0., 3.],
            [0., 0., 0.]])
    """
    diagonals = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    if offsets.ndim > 1 or offsets.dtype is not int64:
        raise RuntimeError("spdiags: Offsets must be scalar or vector of int64, got shape "
                           f"{tuple(offsets.shape)} of {offsets.dtype}")
    if len(shape) != 2 or min(shape) < 0:
        raise RuntimeError(f"spdiags: Output shape must be 2d, got {tuple(shape)}")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(f"spdiags: Only output layouts {sparse_coo}, {sparse_csc} and "
                           f"{sparse_csr} are supported, got {layout}")
    offsets = offsets.reshape(-1)
    if diagonals.ndim != 2 or offsets.shape[0] != diagonals.shape[0]:
        raise RuntimeError(f"spdiags: expected an offset for each row of {tuple(diagonals.shape)} "
                           f"diagonals, got {offsets.shape[0]}")
    if offsets.unique().shape[0] != offsets.shape[0]:
        raise RuntimeError("spdiags: offset tensor contains duplicate values")
    rows = tensorlib.arange(diagonals.shape[1]) - offsets.unsqueeze(1)
    columns = tensorlib.arange(diagonals.shape[1]).expand(rows.shape)
    kept = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    made = sparse_coo_tensor(tensorlib.stack([rows[kept], columns[kept]]), diagonals[kept],
                             tuple(shape)).coalesce()
    return in_layout(made, layout)


def from_scipy(matrix: Any) -> SparseTensor:
    """A matrix of SciPy's, of any of its formats, as a sparse tensor."""
    found = matrix.tocoo()
    return sparse_coo_tensor(np.stack([found.row, found.col]).astype(np.int64),
                             from_numpy(np.array(found.data)), found.shape)


def to_scipy(input: SparseTensor) -> Any:
    """A sparse matrix as SciPy's `coo_matrix`; `.tocsr()` and others bring it to other formats.

    Raises: RuntimeError for what is not a matrix, or requires gradients; ImportError without SciPy.
    """
    entries = input.to_sparse_coo().matrix("to_scipy").coalesce()
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
