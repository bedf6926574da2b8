"""Kronecker and tensor products, outer and batched products added to a tensor, and powers."""

import math
from functools import lru_cache

import numpy as np

from tensorlib._core.apply.halves import rounded_once
from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib._core.base.shape import wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer, refuse_bools
from tensorlib.ops.declare import composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.products.matmul import (
    FACTORS, added_product, bmm, matmul, outer, with_matrix,
)
from tensorlib.ops.samples import given, given_pairs, refusals
from tensorlib.ops.shape.joining import cat


def vectors(name, a, b):
    """The outer product of two vectors. Raises: RuntimeError for other dims."""
    for what, x in (("vec1", a), ("vec2", b)):
        if x.ndim != 1:
            raise RuntimeError(f"{name}: {what} must have one dim, got {x.ndim}")
    return outer(a, b)


_addr = added_product("addr", lambda a, b: vectors("addr", a, b))
_addbmm = added_product("addbmm", lambda a, b: bmm(a, b).sum(0, dtype=a.dtype))


def outer_added(x, a, b, beta=1, alpha=1):
    """The reference of `addr`."""
    found = beta * x + alpha * (a[:, None] * b)
    return found.astype(bool) if x.dtype == a.dtype == b.dtype == bool else found


@composite(factors=FACTORS, reference=outer_added,
           out=True, inplace=True, tolerance="product",
           samples=with_matrix(((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((2, 0), (2,), (0,))),
           complex=True)
def addr(input, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2), with `input` expanded; ignored if beta is 0.

    Of bools it is `beta and input or alpha and outer`. Shapes: (M, N), (M,), (N,) -> (M, N).

    Raises: RuntimeError for factors of other dims, an input that does not expand, and for a float
    as a factor of integers.
    """
    dtype = input.dtype
    if dtype.itemsize <= 2 and dtype is vec1.dtype is vec2.dtype:
        if dtype.is_floating_point:                          # one rounding, as PyTorch's
            return _addr(input.float(), vec1.float(), vec2.float(), beta, alpha).to(dtype)
        if dtype.name == "bool":
            beta, alpha = bool(beta), bool(alpha)
    return _addr(input, vec1, vec2, beta, alpha)


@composite(factors=FACTORS, reference=lambda x, a, b, beta=1, alpha=1: (
               beta * x + alpha * (a @ b).sum(0, dtype=a.dtype)),
           out=True, inplace=True, tolerance="product", takes="integer floating",
           samples=with_matrix(((3, 2), (4, 3, 2), (4, 2, 2)), ((1,), (2, 3, 2), (2, 2, 1))),
           complex=True)
def addbmm(input, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * (the sum of the products in the batch), with `input` expanded.

    Shapes: (M, N), (B, M, K), (B, K, N) -> (M, N). `input` is ignored if beta is 0.

    Raises: RuntimeError as `bmm`, for an input that does not expand, and for a float as a factor
    of integers.
    """
    return _addbmm(input, batch1, batch2, beta, alpha)


@composite(reference=np.kron, out=True,
           samples=given_pairs(((2, 3), (4, 5)), ((3,), (2,)), ((2,), (3, 2)), ((), (3,)),
                            ((0, 2), (2, 2))), complex=True)
def kron(input, other: Tensor):
    """Kronecker product: `other` times each element of `input`, in their places.

    Shapes: (M, N), (K, L) -> (M * K, N * L); what has fewer dims gets sizes of 1 in front.

    >>> tensorlib.kron(tensorlib.tensor([1, 10]), tensorlib.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    spread, within, sizes = kron_sizes(input.shape, other.shape)
    return (input.reshape(spread) * other.reshape(within)).reshape(sizes)


@lru_cache(maxsize=256)
def kron_sizes(rows, columns):
    """The sizes of both factors of `kron` that broadcast to all of its products, and its own."""
    ndim = max(len(rows), len(columns))
    rows, columns = (1,) * (ndim - len(rows)) + rows, (1,) * (ndim - len(columns)) + columns
    return (tuple(size for n in rows for size in (n, 1)),
            tuple(size for n in columns for size in (1, n)),
            tuple(m * n for m, n in zip(rows, columns)))


def summed_over(a, b, dims=2):
    """The reference of `tensordot`."""
    return np.tensordot(a, b, dims)


@composite(out=True, method=False, tolerance="product", takes="integer floating",
           reference=summed_over,
           samples=given_pairs(((2, 3, 4), (3, 4, 5)), ((2, 3), (3, 4), 1), ((2, 3), (4,), 0),
                               ((2, 3, 4), (4, 3, 2), ((1, 2), (1, 0))),
                               ((3, 2), (3,), ((0,), (0,)))),
           errors=refusals((RuntimeError, (2, 3), np.ones((4, 2)), 1),
                           (RuntimeError, (2, 3), np.ones(3), 2),
                           (RuntimeError, (2, 3), np.ones(3), ((0, 1), (0,)))), complex=True,
           rounds_once=False)
def tensordot(a: Tensor, b: Tensor, dims=2):
    """Products of the elements of two tensors, summed over some dims of both.

    dims: how many, the last of `a` and the first of `b`; or two lists that say which. A size of 1
    beside another one broadcasts.

    Shapes: the dims of `a` that are left, then those of `b`.
    Raises: RuntimeError for dims that differ in size or number, IndexError.

    >>> tensorlib.tensordot(tensorlib.ones(2, 3), tensorlib.ones(3, 4), dims=1).shape
    tensorlib.Size([2, 4])
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot: dims={dims} is out of range for tensors of {a.ndim} "
                               f"and {b.ndim} dims")
        dims = range(a.ndim - dims, a.ndim), range(dims)
    over_a, over_b = ([wrap("tensordot", d, x.ndim) for d in
                       ((given,) if isinstance(given, int) else given)]
                      for x, given in zip((a, b), dims))
    if any(a.shape[d] != b.shape[e] for d, e in zip(over_a, over_b)):
        return summed_product(a, b, over_a, over_b)
    return product_over(a, b, over_a, over_b)


def product_over(a, b, over_a, over_b):
    """The product of matrices that `tensordot` is, which rounds half types once."""
    if [a.shape[d] for d in over_a] != [b.shape[d] for d in over_b]:
        raise RuntimeError(f"tensordot: dims {over_a} of shape {tuple(a.shape)} and {over_b} of "
                           f"{tuple(b.shape)} differ in size or number")
    rows = [d for d in range(a.ndim) if d not in over_a]
    columns = [d for d in range(b.ndim) if d not in over_b]
    inner = math.prod(a.shape[d] for d in over_a)
    row_sizes, column_sizes = [a.shape[d] for d in rows], [b.shape[d] for d in columns]
    left = a.permute(rows + over_a).reshape(math.prod(row_sizes), inner)
    right = b.permute(over_b + columns).reshape(inner, math.prod(column_sizes))
    return matmul(left, right).reshape(row_sizes + column_sizes)


@rounded_once
def summed_product(a, b, over_a, over_b):
    """The same where a size of 1 broadcasts: what lies beside it is summed first."""
    return product_over(one_for_all(a, over_a, b, over_b), one_for_all(b, over_b, a, over_a),
                        over_a, over_b)


def one_for_all(x, dims, other, other_dims):
    """`x` summed along each dim beside which `other` has one element."""
    for d, e in zip(dims, other_dims):
        if other.shape[e] == 1 != x.shape[d]:
            x = x.sum(d, True, dtype=x.dtype)
    return x


@composite(tensors=("x",), method=False, takes="integer floating", tolerance="reduction",
           reference=lambda x, N=None, increasing=False: np.vander(
               x if x.dtype.kind in "fc" else x.astype(np.int64), N, increasing),
           samples=given(((3,),), ((3,), 2, True), ((2,), 0), ((2,), 4)),
           errors=refusals((RuntimeError, (2, 2)), (RuntimeError, (2,), -1)), complex=True,
           rounds_once=False)
def vander(x: Tensor, N=None, increasing=False):
    """The matrix of the powers of a vector, the highest or, with `increasing`, the lowest first.

    Shapes: (M,) -> (M, N), N being M by default. Raises: RuntimeError for bools, for what is no
    vector and for a negative N, TypeError.

    >>> tensorlib.vander(tensorlib.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    refuse_bools("vander", x, RuntimeError)
    count = x.numel() if N is None else integer("vander", "N", N)
    if x.ndim != 1 or count < 0:
        raise RuntimeError("vander: expects a vector and a number that is not negative, got shape "
                           f"{list(x.shape)} and {count}")
    if count == 0:
        return x.new_zeros((x.shape[0], 0), dtype=x.dtype if has_gradients(x.dtype) else
                           BY_NAME["int64"])
    check_room("vander", count, 8 * x.shape[0])
    powers = powers_of(x, count)
    return powers if increasing else powers.flip(1)


@rounded_once
def powers_of(x, count):
    """So many powers of each element of a vector, from 1 on."""
    factors = x.unsqueeze(1).expand((x.shape[0], count - 1))
    products = factors.cumprod(1)                        # of integers in int64
    return cat([products.new_ones((x.shape[0], 1)), products], 1)


declared(__name__)
