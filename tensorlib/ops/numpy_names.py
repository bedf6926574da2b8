"""Functions made of others, under the names that PyTorch and NumPy share."""

import math

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.comparison import where
from tensorlib.ops.declare import composite
from tensorlib.ops.joining import cat, narrow
from tensorlib.ops.linalg import matmul
from tensorlib.ops.late import declared
from tensorlib.ops.samples import given, given_pairs, products, reals, refusals
from tensorlib.ops.stacking import require_dims

inf = float("inf")
# The largest number of each floating dtype.
LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127,
           "float32": (2 - 2**-23) * 2.0**127, "float64": (2 - 2**-52) * 2.0**1023}


# ---- element by element --------------------------------------------------------------------------

@composite(reference=np.deg2rad, out=True, inplace=True, samples=reals(-360, 360))
def deg2rad(input):
    """Angles in degrees as radians. Units: degrees -> radians."""
    return input * (math.pi / 180)


@composite(reference=np.rad2deg, out=True, inplace=True, samples=reals(-7, 7))
def rad2deg(input):
    """Angles in radians as degrees. Units: radians -> degrees."""
    return input * (180 / math.pi)


@composite(reference=np.positive, samples=reals(-2, 2), takes="integer floating")
def positive(input):
    """`input` itself. Raises: RuntimeError for bools, which have no sign."""
    if input.dtype.name == "bool":
        raise RuntimeError("positive: not implemented for bools")
    return input


def numbers_for(x, nan=0.0, posinf=None, neginf=None):
    """The reference of `nan_to_num`."""
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@composite(tensors=("input",), out=True, inplace=True, reference=numbers_for,
           samples=given(((2, 3),), ((4,), 1.0, 2.0, 3.0), ((0,),)))
def nan_to_num(input: Tensor, nan=0.0, posinf=None, neginf=None):
    """`input` with numbers in the place of NaN and of infinities.

    These are 0 and the largest and smallest finite numbers of the dtype, unless others are given.
    Gradient: 0 where the element was replaced.

    >>> tensorlib.tensor([1.0, float("nan"), float("inf")]).nan_to_num(posinf=9.0)
    tensor([1., 0., 9.])
    """
    if not input.is_floating_point():
        return input.clone()
    largest = LARGEST[input.dtype.name]
    x = where(input == inf, largest if posinf is None else posinf, input)
    x = where(input == -inf, -largest if neginf is None else neginf, x)
    return where(input != input, 0.0 if nan is None else nan, x)


# ---- differences ---------------------------------------------------------------------------------

def differences(x, n=1, dim=-1):
    """The reference of `diff`."""
    return np.diff(x, n, dim)


@composite(tensors=("input",), out=True, reference=differences,
           samples=given(((5,),), ((2, 4), 2), ((3, 2), 1, 0), ((2, 3), 0), ((3,), 5), ((0, 2), 1)),
           errors=refusals((RuntimeError, ()), (IndexError, (3,), 1, 1), (RuntimeError, (3,), -1)))
def diff(input: Tensor, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours along a dim, taken `n` times; of bools where neighbours differ.

    prepend, append: tensors to join before and after `input` first.

    Shapes: (*, N, *) -> (*, N - n, *), at least 0.
    Raises: RuntimeError for a tensor without dims or a negative `n`, IndexError.

    >>> tensorlib.tensor([1, 4, 9, 16]).diff()
    tensor([3, 5, 7])
    """
    require_dims("diff", input, 1)
    if n < 0:
        raise RuntimeError(f"diff: n must be 0 or more, got {n}")
    dim = wrap("diff", dim, input.ndim)
    x = cat([part for part in (prepend, input, append) if part is not None], dim)
    for _ in range(min(n, x.shape[dim])):
        size = x.shape[dim] - 1
        after, before = narrow(x, dim, 1, size), narrow(x, dim, 0, size)
        x = after != before if x.dtype.name == "bool" else after - before
    return x


# ---- products ------------------------------------------------------------------------------------

SHORT_ROW = 64      # of `kron`'s second matrix: each is a call of its own where it stays a row


@composite(reference=np.kron, out=True,
           samples=products(((2, 3), (4, 5)), ((3,), (2,)), ((2,), (3, 2)), ((), (3,)),
                            ((0, 2), (2, 2))))
def kron(input, other: Tensor):
    """Kronecker product: `other` times each element of `input`, in their places.

    Shapes: (M, N), (K, L) -> (M * K, N * L); what has fewer dims gets sizes of 1 in front.

    >>> tensorlib.kron(tensorlib.tensor([1, 10]), tensorlib.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    ndim = max(input.ndim, other.ndim)
    rows, columns = ((1,) * (ndim - x.ndim) + tuple(x.shape) for x in (input, other))
    spread = [size for n in rows for size in (n, 1)]
    within = [size for n in columns for size in (1, n)]
    sizes = [m * n for m, n in zip(rows, columns)]
    if ndim and columns[-1] < SHORT_ROW:       # all products in any order, then in theirs
        order = [d for k in range(ndim) for d in (k, ndim + k)]
        products = input.reshape(-1, 1) * other.reshape(1, -1)
        return products.reshape(rows + columns).permute(order).reshape(sizes)
    return (input.reshape(spread) * other.reshape(within)).reshape(sizes)


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
                           (RuntimeError, (2, 3), np.ones(3), ((0, 1), (0,)))))
def tensordot(a: Tensor, b: Tensor, dims=2):
    """Products of the elements of two tensors, summed over some dims of both.

    dims: how many, the last of `a` and the first of `b`; or two lists that say which.

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


# ---- elements ------------------------------------------------------------------------------------

@composite(reference=lambda x, index: x.reshape(-1)[index], out=True,
           samples=given(((2, 3), np.array([0, 5, -1])), ((4,), np.array([[1], [3]])),
                         ((3,), np.array(2))),
           errors=refusals((IndexError, (2, 3), np.array([6])),
                           (RuntimeError, (2, 3), np.array([0.0]))))
def take(input, index: Tensor):
    """The elements of `input`, seen as a vector, at the positions of `index`.

    Shapes: (*), (*index) -> (*index). Raises: RuntimeError for an index that is not of integers,
    IndexError.
    """
    if index.is_floating_point() or not index.dtype.is_signed:
        raise RuntimeError(f"take: index must be int64, or of a smaller signed integer dtype, got "
                           f"{index.dtype}")
    try:
        return input.reshape(-1)[index.reshape(-1)].reshape(index.shape)
    except IndexError as error:
        raise IndexError(f"take: {str(error).removeprefix('getitem: ')}") from None


@composite(reference=np.argwhere, samples=given(((2, 3),), ((4,),)), differentiable=False)
def argwhere(input):
    """The positions of the elements that are not zero, a row each: `nonzero` by another name."""
    return input.nonzero()


@composite(reference=np.fliplr, samples=given(((2, 3),), ((2, 3, 2),)),
           errors=refusals((RuntimeError, (3,))))
def fliplr(input):
    """A copy with the order of columns reversed. Raises: RuntimeError for less than 2 dims."""
    require_dims("fliplr", input, 2)
    return input.flip(1)


@composite(reference=np.flipud, samples=given(((2, 3),), ((3,),)),
           errors=refusals((RuntimeError, ())))
def flipud(input):
    """A copy with the order of rows reversed. Raises: RuntimeError for no dims."""
    require_dims("flipud", input, 1)
    return input.flip(0)


declared(__name__)
