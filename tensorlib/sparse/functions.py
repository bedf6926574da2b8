"""The operations of sparse tensors, by the names of the functions that are called with them."""

from numbers import Number
from typing import Any

import tensorlib
from tensorlib import (
    Tensor, arange, full, int64, is_grad_enabled, preserve_format, promote_types, zeros,
)
from tensorlib._core.base.shape import wrap
from tensorlib._core.products.positions import grouped, merged_places, numbered
from tensorlib.ops.lazy import name_of, operations
from tensorlib.sparse.compressed import CompressedTensor, on_entries
from tensorlib.sparse.dispatch import does, refuse, require_sparse
from tensorlib.sparse.products import product
from tensorlib.sparse.tensor import SparseTensor

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
    terms = other._values_ if alpha == 1 else other._values_ * alpha
    if input.layout is other.layout and input.has_positions_of(other):
        return input.with_values(input._values_ + terms)
    return union(input, other.with_values(terms))


@on_entries
def union(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The sum of two sparse tensors, which has the positions of both. Raises: TypeError."""
    if a.sparse_dim() != b.sparse_dim():
        raise refuse("add", a, b)
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
    if not isinstance(input, SparseTensor) or isinstance(other, SparseTensor) and input.ndim == 0:
        input, other = other, input
    if isinstance(other, SparseTensor) and other.ndim == 0 < input.ndim:
        other = other.to_dense()
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
    values = input.elements() * other[tuple(input._indices_)]
    return input.with_values(values.reshape(input._values_.shape))


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
    if not isinstance(input, SparseTensor) or not is_number(other):
        raise refuse("div", input, other)
    if rounding_mode is not None:
        input = input.merged()
    return input.with_values(input._values_.div(other, rounding_mode=rounding_mode))


@does(operations.floor_divide, layouts=True)
def floor_divide(input: Any, other: Any) -> Any:
    """A sparse tensor divided by a number, rounded down."""
    return div(input, other, rounding_mode="floor")


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
    if dim is None:
        return input._values_.sum(dtype=dtype)
    dims = [dim] if isinstance(dim, int) else dim
    input = input if dtype is None else input.with_values(input._values_.to(dtype))
    if isinstance(input, CompressedTensor) and keepdim and len(dims) == 1 and (
            input.ndim == 2 and not input.block and dims[0] in (1 - input._dim_, -1 - input._dim_)):
        return sum_of_lines(input)
    return sum_over(input, dims, keepdim)


def sum_of_lines(input: CompressedTensor) -> CompressedTensor:
    """The sums over the rows of a matrix in order of rows, or columns of one by columns."""
    dim, bounds = input._dim_, input._bounds_
    shape = (input.shape[0], 1) if dim == 0 else (1, input.shape[1])
    lines = input if dim == 0 else input.turned()
    sums = product(lines, input._values_.new_ones((lines.shape[1], 1))).squeeze(1)
    filled = bounds[1:] != bounds[:-1]
    if not bool(filled.all()):
        sums = sums[filled]
    ends = zeros(len(bounds), dtype=bounds.dtype)
    ends[1:] = filled.cumsum(0)
    return CompressedTensor.by(input.layout, ends, input._others_.new_zeros(len(sums)), sums, shape)


@on_entries
def sum_over(input: SparseTensor, dims: Any, keepdim: bool) -> Any:
    """The sums over some dims: dense, if no sparse dim is left."""
    values, sparse = input._values_, input.sparse_dim()
    if any(not -input.ndim <= d < input.ndim for d in dims):
        raise IndexError(f"sum: a dim of {list(dims)} is out of range for {input.ndim} dims")
    gone = {d % input.ndim for d in dims}
    if len(gone) != len(dims):
        raise RuntimeError(f"sum: a dim appears twice in {list(dims)}")
    inside = [d - sparse + 1 for d in gone if d >= sparse]
    if inside:
        values = values.sum(inside, keepdim)
    kept = [d for d in range(sparse) if d not in gone]
    if not kept and not keepdim:
        return values.sum(0)
    if keepdim:
        places = input._indices_.clone()
        places[[d for d in gone if d < sparse]] = 0
        shape = [1 if d in gone else size for d, size in enumerate(input.shape)]
    else:
        places = input._indices_[kept]
        shape = [size for d, size in enumerate(input.shape) if d not in gone]
    made = SparseTensor.of(places, values, shape, input.is_coalesced() and len(kept) == sparse)
    return made.coalesce()


# ---- softmax -------------------------------------------------------------------------------------

def lines_of(input: SparseTensor, dim: int) -> tuple[Tensor, int]:
    """For each entry, which line along a sparse dim it lies in; and how many lines have entries."""
    others = [d for d in range(input.sparse_dim()) if d != dim]
    flat, ascending = numbered(input._indices_[others], [input.shape[d] for d in others])
    first, places = grouped(flat, None if ascending else flat.argsort(stable=True))
    return places, len(first)


@does(operations.log_softmax)
def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`."""
    require_sparse("sparse.softmax", input)
    input = (input if dtype is None else input.to(dtype)).coalesce()
    values, dim = input._values_, wrap("softmax", dim, input.ndim)
    if dim >= input.sparse_dim():
        return input.with_values(values.log_softmax(dim - input.sparse_dim() + 1))
    places, count = lines_of(input, dim)
    known = values.detach()
    index = places.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    most = known.new_zeros((count, *values.shape[1:])).scatter_reduce(
        0, index, known, "amax", include_self=False)
    shifted = values - most[places]
    totals = values.new_zeros(most.shape).index_add(0, places, shifted.exp())
    return input.with_values(shifted - totals.log()[places])


@does(operations.softmax)
def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax along a dim over the elements that have a position; others stay zero."""
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
    """The norm of all elements. Raises: TypeError for some of the dims."""
    dims = () if dim is None else (dim,) if isinstance(dim, int) else dim
    if keepdim or dims and len({d % input.ndim for d in dims}) != input.ndim:
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
    values = input._values_.new_ones(input._values_.shape, dtype=kwargs.get("dtype"))
    return input.with_values(values).requires_grad_(bool(kwargs.get("requires_grad")))


@does(operations.zeros_like, operations.empty_like, layouts=True)
def zeros_like(input: SparseTensor, **kwargs: Any) -> SparseTensor:
    """A tensor of its shape without entries. Raises: TypeError for another layout or a device."""
    unknown = kwargs.keys() - {"dtype", "requires_grad", "memory_format", "layout", *(
        ["device"] if tensorlib.device(kwargs.get("device") or "cpu").type == "cpu" else [])}
    if kwargs.get("layout") not in (None, input.layout) or kwargs.get("memory_format") not in (
            None, preserve_format):
        raise TypeError("zeros_like of sparse tensors takes no memory_format and no other layout; "
                        "to_dense() gives a dense tensor")
    if any(kwargs[name] is not None for name in unknown):
        raise TypeError(f"zeros_like of sparse tensors takes no {min(unknown)}; to_dense() gives a "
                        "dense tensor")
    if isinstance(input, CompressedTensor):
        made = input.emptied(input._values_.to(kwargs.get("dtype") or input.dtype))
        return made.requires_grad_(bool(kwargs.get("requires_grad")))
    values = input._values_.new_zeros((0, *input._values_.shape[1:]), dtype=kwargs.get("dtype"))
    made = SparseTensor.of(input._indices_.new_zeros((input.sparse_dim(), 0)), values, input.shape,
                           True)
    return made.requires_grad_(bool(kwargs.get("requires_grad")))


def drawn_like(name: str) -> Any:
    """The function that draws values at the positions of a matrix by rows or columns."""
    def draw(input: SparseTensor, **kwargs: Any) -> SparseTensor:
        if not isinstance(input, CompressedTensor):
            raise refuse(name, input)
        return input.with_values(getattr(tensorlib, name)(input._values_, **kwargs))
    return draw


ON_VALUES = [name_of(_operation) for _operation in (
    operations.neg, operations.abs, operations.sqrt, operations.square, operations.sin,
    operations.sinh, operations.tan, operations.tanh, operations.asin, operations.asinh,
    operations.atan, operations.atanh, operations.relu, operations.sign, operations.sgn,
    operations.expm1, operations.log1p, operations.erf, operations.erfinv, operations.deg2rad,
    operations.rad2deg, operations.floor, operations.ceil, operations.round, operations.trunc,
    operations.isnan, operations.isinf, operations.isposinf, operations.isneginf, operations.frac,
    operations.nan_to_num, operations.signbit, operations.positive, operations.conj_physical,
    operations.angle)]
for _name in ON_VALUES:
    does(_name, layouts=True)(on_values(_name))
for _name in map(name_of, (operations.rand_like, operations.randn_like)):
    does(_name, layouts=True)(drawn_like(_name))
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
                         ("mul_", mul), ("div_", div), ("floor_divide_", floor_divide),
                         ("copy_", copied)):
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
