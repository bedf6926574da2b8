"""The operations of sparse tensors, by the names of the functions that are called with them."""

from numbers import Number
from typing import Any

from tensorlib import (
    Tensor, arange, cat, full, int64, is_grad_enabled, promote_types,
    zeros,
)
from tensorlib._core.products.sparse import meetings, merged_places
from tensorlib.ops.late import name_of, operations
from tensorlib.ops.products.sparse import sparse_product
from tensorlib.sparse.compressed import CompressedTensor, on_entries
from tensorlib.sparse.dispatch import does, refuse, require_sparse
from tensorlib.sparse.tensor import SparseTensor

FLOATS = ("float32", "float64")


# ---- products ------------------------------------------------------------------------------------

def product(a: SparseTensor, x: Tensor) -> Tensor:
    """A sparse matrix times a dense one."""
    rows, columns = a._indices_
    values = a._values_
    if values.dtype.name in FLOATS and x.dtype == values.dtype:
        return sparse_product(values, x, rows, columns, a.shape[0])
    terms = values.unsqueeze(1) * x.index_select(0, columns)
    return terms.new_zeros((a.shape[0], x.shape[1])).index_add(0, rows, terms)


def between_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices: each entry of `a` meets a row of `b`."""
    a, b = a.coalesce(), b.coalesce()
    indices, entries, places, targets = meetings(a._indices_, b._indices_, *a.shape, b.shape[1])
    terms = a._values_[entries] * b._values_[places]
    values = terms.new_zeros(indices.shape[1:]).index_add(0, targets, terms)
    return SparseTensor.of(indices.contiguous(), values, (a.shape[0], b.shape[1]), True)


@does(operations.matmul, operations.mm, operations.mv)
def matmul(input: Any, other: Any, *, reduce: str = "sum") -> Any:
    """input @ other, where one or both are sparse matrices: dense, unless both are sparse.

    Shapes: (M, K), (K, N) -> (M, N); a dense factor may be a vector.
    Raises: RuntimeError for other shapes, TypeError for other kinds and another `reduce`.
    """
    if reduce != "sum":
        raise TypeError(f"sparse.mm: takes reduce='sum' for sparse tensors, got {reduce!r}")
    for x in (input, other):
        if not isinstance(x, Tensor):
            raise refuse("matmul", input, other)
        if isinstance(x, SparseTensor):
            x.matrix("matmul")
    if not 1 <= input.ndim <= 2 or not 1 <= other.ndim <= 2 or input.shape[-1] != other.shape[0]:
        raise RuntimeError(f"matmul: sizes do not fit: {tuple(input.shape)} @ "
                           f"{tuple(other.shape)}")
    if not isinstance(input, SparseTensor):
        return matmul(other.t(), input.mT if input.ndim == 2 else input).mT if (
            input.ndim == 2) else matmul(other.t(), input)
    if isinstance(other, SparseTensor):
        return between_sparse(input, other)
    return product(input, other) if other.ndim == 2 else (
        product(input, other.unsqueeze(1)).squeeze(1))


@does(operations.linear)
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


@does(operations.addmm)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2), with one sparse factor and a dense input."""
    if isinstance(input, SparseTensor) or isinstance(mat1, SparseTensor) == isinstance(
            mat2, SparseTensor):
        raise refuse("addmm", input, mat1, mat2)
    return beta * input + alpha * matmul(mat1, mat2)


@does(operations.addmv)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat @ vec), with a sparse matrix and dense vectors."""
    if isinstance(input, SparseTensor) or isinstance(vec, SparseTensor):
        raise refuse("addmv", input, mat, vec)
    return beta * input + alpha * matmul(mat, vec)


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
    terms = (mat1[rows] * mat2.mT[columns]).sum(-1)
    return input.with_values(beta * input._values_ + alpha * terms)


# ---- sums and multiples --------------------------------------------------------------------------

@does(operations.add, layouts=True)
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other: sparse if both are, else dense. Raises: RuntimeError, TypeError."""
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        raise refuse("add", input, other)
    if input.shape != other.shape:
        raise RuntimeError(f"add: sparse tensors have one shape, got {tuple(input.shape)} and "
                           f"{tuple(other.shape)}")
    if not isinstance(input, SparseTensor):
        return input + other.to_dense() * alpha
    if not isinstance(other, SparseTensor):
        return input.to_dense() + other * alpha
    if input.sparse_dim() != other.sparse_dim():
        raise refuse("add", input, other)
    terms = other._values_ if alpha == 1 else other._values_ * alpha
    if input.layout is other.layout and input.has_positions_of(other):
        return input.with_values(input._values_ + terms)
    return union(input, other.with_values(terms))


@on_entries
def union(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The sum of two sparse tensors, which has the positions of both."""
    a, b = a.coalesce(), b.coalesce()
    size, *places = merged_places(a.flat(), b.flat())
    indices = a._indices_.new_empty((a.sparse_dim(), size))
    values = zeros(size, *a._values_.shape[1:], dtype=promote_types(a.dtype, b.dtype))
    for x, at in zip((a, b), places):
        indices[:, at] = x._indices_
        values = values.index_add(0, at, x._values_.to(values.dtype))
    return SparseTensor.of(indices, values, a.shape, True)


@does(operations.sub)
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other: see `add`."""
    return add(input, other, alpha=-alpha)


def is_number(value: Any) -> bool:
    """Whether a value is a number, or a dense tensor of one."""
    return not isinstance(value, (SparseTensor, Tensor)) or (
        not isinstance(value, SparseTensor) and value.ndim == 0)


@does(operations.mul, layouts=True)
def mul(input: Any, other: Any) -> Any:
    """A sparse tensor times a number, a dense tensor that is broadcast to its shape, or a sparse
    one of its shape: at the positions that both have.

    Raises: RuntimeError for another shape, TypeError for other numbers of sparse dims.
    """
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if is_number(other):
        return input.with_values(input._values_ * other)
    if isinstance(other, SparseTensor):
        if input.shape == other.shape and input.layout is other.layout and (
                input.has_positions_of(other)):
            return input.with_values(input._values_ * other._values_)
        return product_of_elements(input, other)
    try:
        other = other.expand(input.shape)
    except RuntimeError:
        raise RuntimeError(f"mul: expected a number or a dense tensor of shape "
                           f"{tuple(input.shape)}, got {tuple(other.shape)}") from None
    input = input.merged()
    return input.with_values(input._values_ * other[tuple(input._indices_)])


@on_entries
def product_of_elements(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The products of the values at the positions that two sparse tensors share."""
    if a.shape != b.shape:
        raise RuntimeError(f"mul: sparse tensors have one shape, got {tuple(a.shape)} and "
                           f"{tuple(b.shape)}")
    if a.sparse_dim() != b.sparse_dim():
        raise refuse("mul", a, b)
    a, b = a.coalesce(), b.coalesce()
    found, places = places_in(b, a)
    values = a._values_[found] * b._values_[places[found]]
    return SparseTensor.of(a._indices_[:, found], values, a.shape, True)


def places_in(b: SparseTensor, a: SparseTensor) -> tuple[Tensor, Tensor]:
    """Which positions of `a` are among those of `b`, and where they are there; of both in order."""
    size, held, wanted = merged_places(b.flat(), a.flat())
    places = full((size,), -1, dtype=int64).index_put((held,), arange(b._nnz()))[wanted]
    return places >= 0, places


@does(operations.div, layouts=True)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """A sparse tensor divided by a number."""
    if not isinstance(input, SparseTensor) or not is_number(other) or rounding_mode is not None:
        raise refuse("div", input, other)
    return input.with_values(input._values_ / other)


def on_values(name: str) -> Any:
    """An operation that leaves zeros as they are, on the values."""
    def function(input: SparseTensor, *, out: Any = None) -> SparseTensor:
        input = input.merged()
        found = input.with_values(getattr(input._values_, name)())
        return found if out is None else in_place(name, copied)(out, found)
    return function


@does(operations.sum, layouts=True)
def sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements, or the sums over some sparse dims, as a sparse tensor.

    Raises: TypeError for dims that are not sparse, IndexError, RuntimeError for a dense tensor.
    """
    require_sparse("sparse.sum", input)
    values = input._values_ if dtype is None else input._values_.to(dtype)
    if dim is None:
        return values.sum()
    return sum_over(input.with_values(values), [dim] if isinstance(dim, int) else dim, keepdim)


@on_entries
def sum_over(input: SparseTensor, dims: Any, keepdim: bool) -> Any:
    """The sums over some sparse dims."""
    values = input._values_
    if any(not -input.ndim <= d < input.ndim for d in dims):
        raise IndexError(f"sum: a dim of {list(dims)} is out of range for {input.ndim} dims")
    gone = {d % input.ndim for d in dims}
    if len(gone) == input.ndim and not keepdim:
        return values.sum()
    kept = [d for d in range(input.sparse_dim()) if d not in gone]
    if any(d >= input.sparse_dim() for d in gone) or not kept:
        raise TypeError("sum of a sparse tensor takes sparse dims, and not all of them; to_dense() "
                        "gives a dense tensor")
    if keepdim:
        places = input._indices_.clone()
        places[list(gone)] = 0
        shape = [1 if d in gone else size for d, size in enumerate(input.shape)]
    else:
        places = input._indices_[kept]
        shape = [size for d, size in enumerate(input.shape) if d not in gone]
    return SparseTensor.of(places, values, shape).coalesce()


# ---- softmax -------------------------------------------------------------------------------------

def lines_of(input: SparseTensor, dim: int) -> Any:
    """For each entry, which line along a sparse dim it lies in; and how many lines have entries."""
    if not -input.ndim <= dim < input.ndim or dim % input.ndim >= input.sparse_dim() or (
            input.dense_dim()):
        raise TypeError("softmax of a sparse tensor of numbers takes one of its sparse dims, got "
                        f"dim {dim}")
    others = [d for d in range(input.ndim) if d != dim % input.ndim]
    flat = zeros(input._nnz(), dtype=input._indices_.dtype)
    for d in others:
        flat = flat * input.shape[d] + input._indices_[d]
    kept, places = flat.unique(return_inverse=True)
    return places, kept.shape[0]


@does(operations.log_softmax)
def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`."""
    require_sparse("sparse.softmax", input)
    input = (input if dtype is None else input.to(dtype)).coalesce()
    values = input._values_
    places, count = lines_of(input, dim)
    most = values.detach().new_zeros((count,)).scatter_reduce(
        0, places, values.detach(), "amax", include_self=False)
    shifted = values - most[places]
    totals = values.new_zeros((count,)).index_add(0, places, shifted.exp())
    return input.with_values(shifted - totals.log()[places])


@does(operations.softmax)
def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax along a sparse dim over the elements that have a position; others stay zero."""
    found = log_softmax(input, dim, dtype=dtype)
    return found.with_values(found._values_.exp())


@does(operations.pow, layouts=True)
def pow(input: SparseTensor, exponent: Any) -> SparseTensor:
    """The elements to a power. Raises: TypeError unless it is a number above 0."""
    if isinstance(exponent, Tensor) or isinstance(input, Number) or not exponent > 0:
        raise refuse("pow", input, exponent)
    input = input.merged()
    return input.with_values(input._values_ ** exponent)


@does(operations.norm, layouts=True)
def norm(input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Tensor:
    """The norm of all elements. Raises: TypeError for dims."""
    if dim is not None or keepdim:
        raise TypeError("norm over dims is not supported for sparse tensors; to_dense() gives a "
                        "dense one")
    return input.merged()._values_.norm(p, dtype=dtype)


@does(operations.any, layouts=True)
def any_of(input: SparseTensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether an element is not zero. Raises: TypeError for dims."""
    if dim is not None or keepdim:
        raise TypeError("any over dims is not supported for sparse tensors; to_dense() gives a "
                        "dense one")
    return input.merged()._values_.any()


@does(operations.ones_like, layouts=True)
def ones_like(input: SparseTensor, **kwargs: Any) -> SparseTensor:
    """Ones at the positions of a matrix by rows or columns, as in PyTorch. Raises: TypeError."""
    if not isinstance(input, CompressedTensor) or any(
            kwargs[name] is not None for name in kwargs.keys() - {"dtype", "requires_grad"}):
        raise refuse("ones_like", input)
    values = input._values_.new_ones(input._nnz(), dtype=kwargs.get("dtype"))
    return input.with_values(values).requires_grad_(bool(kwargs.get("requires_grad")))


@does(operations.zeros_like, operations.empty_like)
def zeros_like(input: SparseTensor, **kwargs: Any) -> SparseTensor:
    """A tensor of its shape without entries. Raises: TypeError for a layout or a memory format."""
    unknown = kwargs.keys() - {"dtype", "requires_grad"}
    if any(kwargs[name] is not None for name in unknown):
        raise TypeError(f"zeros_like of sparse tensors takes no {min(unknown)}; to_dense() gives a "
                        "dense tensor")
    values = input._values_.new_zeros((0, *input._values_.shape[1:]), dtype=kwargs.get("dtype"))
    made = SparseTensor.of(input._indices_.new_zeros((input.sparse_dim(), 0)), values, input.shape,
                           True)
    return made.requires_grad_(bool(kwargs.get("requires_grad")))


ON_VALUES = [name_of(_operation) for _operation in (
    operations.neg, operations.abs, operations.sqrt, operations.square, operations.sin,
    operations.sinh, operations.tan, operations.tanh, operations.asin, operations.asinh,
    operations.atan, operations.atanh, operations.relu, operations.sign, operations.sgn,
    operations.expm1, operations.log1p, operations.erf, operations.erfinv, operations.deg2rad,
    operations.rad2deg, operations.floor, operations.ceil, operations.round, operations.trunc,
    operations.isnan, operations.isinf, operations.isposinf, operations.isneginf, operations.frac,
    operations.nan_to_num, operations.signbit, operations.positive, operations.angle,
    operations.conj_physical)]
for _name in ON_VALUES:
    does(_name, layouts=True)(on_values(_name))
does(operations.t, layouts=True)(lambda input: input.t())
does(operations.to, layouts=True)(SparseTensor.to)
does(operations.clone, layouts=True)(SparseTensor.clone)


# ---- in place ------------------------------------------------------------------------------------

def in_place(name: str, function: Any) -> Any:
    """The form of an operation that puts its result into the first tensor, which it returns."""
    def write(input: Any, *args: Any, **kwargs: Any) -> SparseTensor:
        if not isinstance(input, SparseTensor):
            raise refuse(name, input, *args)
        if input.requires_grad and input.is_leaf and is_grad_enabled():
            raise RuntimeError(f"{name}: a leaf that requires grad is being written in place; use "
                               "no_grad()")
        return input.become(function(input, *args, **kwargs))
    return write


def copied(input: SparseTensor, src: Any, non_blocking: bool = False) -> SparseTensor:
    """`src` in the dtype of `input`. Raises: TypeError for a dense one."""
    if not isinstance(src, SparseTensor):
        raise refuse("copy_", input, src)
    return src.to(input.dtype).clone()


for _name, _function in (*((f"{name}_", on_values(name)) for name in ON_VALUES
                           if hasattr(Tensor, f"{name}_")),
                         ("mul_", mul), ("div_", div), ("copy_", copied)):
    does(_name, layouts=True)(in_place(_name, _function))


@does("add_", layouts=True)
def add_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other, put into `input`: of a dense one only what `other` has is written.

    Raises: RuntimeError, TypeError as `add`, and for sums that the dtype can't hold.
    """
    if isinstance(input, SparseTensor):
        return into_sparse(input, other, alpha=alpha)
    if input.shape != other.shape or input.dtype != other.dtype:
        return input.add_(other.to_dense(), alpha=alpha)
    return input.index_put_(tuple(other._indices_), other._values_ * alpha, accumulate=True)


@does("sub_", layouts=True)
def sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other, put into `input`: see `add_`."""
    return add_(input, other, alpha=-alpha)


into_sparse = in_place("add_", add)
