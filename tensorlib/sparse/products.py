"""Products of sparse matrices with dense and with sparse ones."""

from typing import Any

from tensorlib import Tensor, cat, result_type
from tensorlib._core.products.sparse import meetings
from tensorlib.ops.lazy import operations
from tensorlib.ops.products.sparse import OF_PRODUCT, met_sums, sampled_product, sparse_product
from tensorlib.sparse.compressed import on_entries
from tensorlib.sparse.dispatch import does, refuse
from tensorlib.sparse.tensor import SparseTensor

FLOATS = frozenset(("float32", "float64"))
REDUCTIONS = frozenset("mean amax amin".split())      # beside the sum

def product(a: SparseTensor, x: Tensor) -> Tensor:
    """A sparse matrix times a dense one."""
    indices, values = a._indices_, a.elements()
    rows, columns = indices[0], indices[1]
    if values.dtype.name in FLOATS and x.dtype == values.dtype:
        return sparse_product(values, x, rows, columns, a.shape[0])
    terms = values.unsqueeze(1) * x.index_select(0, columns)
    return terms.new_zeros((a.shape[0], x.shape[1])).index_add(0, rows, terms)


@on_entries
def reduced_product(a: SparseTensor, x: Tensor, reduce: str) -> Tensor:
    """A product in which a row has the mean or an extreme of its terms; 0, where it has none."""
    if reduce not in REDUCTIONS or not isinstance(a, SparseTensor) or isinstance(
            x, SparseTensor):
        raise TypeError("sparse.mm: takes a sparse and a dense matrix and reduce 'sum', 'mean', "
                        f"'amax' or 'amin', got {reduce!r}")
    rows, columns = a.matrix("sparse.mm")._indices_
    terms = a._values_.unsqueeze(1) * x.index_select(0, columns)
    index = rows.unsqueeze(1).expand(terms.shape)
    return terms.new_zeros((a.shape[0], x.shape[1])).scatter_reduce(
        0, index, terms, reduce, include_self=False)


@on_entries
def between_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices: each entry of `a` meets a row of `b`."""
    a, b = a.coalesce(), b.coalesce()
    (m, k), n, dtype = a.shape, b.shape[1], result_type(a._values_, b._values_)
    places = a._indices_, b._indices_
    found = meetings(*places, m, k, n)
    values = met_sums(a._values_.to(dtype), b._values_.to(dtype), *places, found, k, n, OF_PRODUCT)
    return SparseTensor.of(found, values, (m, n), True)


@does(operations.matmul, operations.mm, operations.mv, layouts=True)
def matmul(input: Any, other: Any, *, reduce: str = "sum") -> Any:
    """input @ other, where one or both are sparse matrices: dense, unless both are sparse.

    Shapes: (M, K), (K, N) -> (M, N); a dense factor may be a vector; (B, M, K), (B, K, N) of a
    sparse batch and a dense one, and (*, M, K), (K, N) of a dense batch and a sparse matrix, alike.
    reduce: "mean", "amax" or "amin" of the terms of a row that are there, in place of their sum.
    Raises: RuntimeError for other shapes, TypeError for other kinds and another `reduce`.
    """
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        raise refuse("matmul", input, other)
    if reduce != "sum":
        return reduced_product(input, other, reduce)
    left, right = isinstance(input, SparseTensor), isinstance(other, SparseTensor)
    if left and not right and input.ndim == other.ndim == 3:
        return bmm(input, other)
    if left:
        input.matrix("matmul")
    if right:
        other.matrix("matmul")
    if right and not left and input.ndim > 2 and other.ndim == 2:
        rows = input.flatten(0, -2)
        return matmul(rows, other).unflatten(0, tuple(input.shape[:-1]))
    if not 1 <= input.ndim <= 2 or not 1 <= other.ndim <= 2 or input.shape[-1] != other.shape[0]:
        raise RuntimeError(f"matmul: sizes do not fit: {tuple(input.shape)} @ "
                           f"{tuple(other.shape)}")
    if not left:
        return matmul(other.t(), input.mT if input.ndim == 2 else input).mT if (
            input.ndim == 2) else matmul(other.t(), input)
    if right:
        return between_sparse(input, other)
    return product(input, other) if other.ndim == 2 else (
        product(input, other.unsqueeze(1)).squeeze(1))


@does(operations.linear, layouts=True)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.t() + bias, where one of the two is sparse."""
    if not isinstance(weight, Tensor):
        raise refuse("linear", input, weight)
    found = matmul(input, weight.t())
    return found if bias is None else found + bias


@does(operations.bmm)
def bmm(input: Any, mat2: Any) -> Tensor:
    """The products of the matrices of a sparse batch with those of a dense one, as a dense batch:
    that of one matrix with these blocks on its diagonal.

    Shapes: (B, M, K), (B, K, N) -> (B, M, N). Raises: RuntimeError for others, TypeError.
    """
    if not isinstance(input, SparseTensor) or not isinstance(mat2, Tensor) or isinstance(
            mat2, SparseTensor):
        raise refuse("bmm", input, mat2)
    if input.ndim != 3 or mat2.ndim != 3 or input.dense_dim() or (
            input.shape[0], input.shape[2]) != tuple(mat2.shape[:2]):
        raise RuntimeError(f"bmm: sizes do not fit: {tuple(input.shape)} @ {tuple(mat2.shape)}")
    count, m, k = input.shape
    blocks, rows, columns = input._indices_
    places = cat([(blocks * m + rows).unsqueeze(0), (blocks * k + columns).unsqueeze(0)])
    whole = SparseTensor.of(places, input._values_, (count * m, count * k))
    return product(whole, mat2.flatten(0, 1)).unflatten(0, (count, m))


def added(name: str, input: Any, found: Tensor, dims: int, beta: Any, alpha: Any) -> Any:
    """beta * input + alpha * found. Raises: RuntimeError unless `found` has so many dims, to whose
    shape `input` expands."""
    if found.ndim != dims:
        raise RuntimeError(f"{name}: expected a product of {dims} dims, got one of shape "
                           f"{tuple(found.shape)}")
    input = input.expand(found.shape) if isinstance(input, Tensor) else input
    return beta * input + alpha * found


@does(operations.addmv, layouts=True)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat @ vec), with a sparse matrix."""
    if isinstance(input, SparseTensor) or isinstance(vec, SparseTensor):
        raise refuse("addmv", input, mat, vec)
    return added("addmv", input, matmul(mat, vec), 1, beta, alpha)


@does(operations.addmm, layouts=True)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2), with one sparse factor and a dense input."""
    if isinstance(input, SparseTensor) or isinstance(mat1, SparseTensor) == isinstance(
            mat2, SparseTensor):
        raise refuse("addmm", input, mat1, mat2)
    return added("addmm", input, matmul(mat1, mat2), 2, beta, alpha)


@on_entries
def sampled_addmm(input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1,
                  alpha: Any = 1) -> SparseTensor:
    """beta * input + alpha * (mat1 @ mat2) at the positions of a sparse matrix, and there alone.

    Shapes: (M, N), (M, K), (K, N) -> (M, N). Raises: RuntimeError for others, TypeError.
    """
    if not isinstance(input, SparseTensor) or isinstance(mat1, SparseTensor) or isinstance(
            mat2, SparseTensor):
        raise refuse("sampled_addmm", input, mat1, mat2)
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.shape[1] != mat2.shape[0] or tuple(
            input.shape) != (mat1.shape[0], mat2.shape[1]):
        raise RuntimeError(f"sampled_addmm: sizes do not fit: {tuple(input.shape)}, "
                           f"{tuple(mat1.shape)} @ {tuple(mat2.shape)}")
    input = input.coalesce()
    rows, columns = input._indices_
    if mat1.dtype == mat2.dtype and mat1.dtype.name in FLOATS:
        terms = sampled_product(mat1, mat2.mT.contiguous(), rows, columns)
    else:
        terms = (mat1[rows] * mat2.mT[columns]).sum(-1)
    return input.with_values(beta * input._values_ + alpha * terms)
