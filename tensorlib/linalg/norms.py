"""Norms of vectors and matrices, the rank and the condition number."""

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.creation import plain_number
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    DTYPES, TAKEN, first, matrices, refused_matrices, regular, require_matrices, require_square,
)
from tensorlib.linalg.inverses import linalg_inv_ex, tensors
from tensorlib.linalg.spectra import cutoff, linalg_svdvals, tolerances
from tensorlib.ops.declare import composite, op
from tensorlib.ops.reduce.extremes import amax, amin
from tensorlib.ops.samples import given
from tensorlib.ops.reduce.variance import norm, norm_of_order

inf = float("inf")
FLOATS = {"takes": "floating", "tolerance": "reduction"}


def as_dims(name, dim, ndim):
    """`dim`, an int or several, as a tuple of dims from 0."""
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple(wrap(name, d, ndim) for d in dims)
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{name}: a dim appears twice among {dims}")
    return dims


# ---- vectors -------------------------------------------------------------------------------------

def vector_reference(x, ord=2, dim=None, keepdim=False):
    """The reference of `linalg_vector_norm`."""
    if dim is None:
        flat = np.linalg.norm(x.reshape(-1), ord)
        return np.reshape(flat, (1,) * x.ndim) if keepdim else flat
    dims = sorted(d % x.ndim for d in ((dim,) if isinstance(dim, int) else dim))
    last = np.moveaxis(x, dims, range(x.ndim - len(dims), x.ndim))
    out = np.linalg.norm(last.reshape(last.shape[:x.ndim - len(dims)] + (-1,)), ord, -1)
    return np.expand_dims(out, tuple(dims)) if keepdim else out


@composite(public=False, method=False, out=True, reference=vector_reference, **FLOATS,
           rounds_once=False,
           samples=given(((5,),), ((3, 4), 1, 0), ((2, 3, 2), 3.5, (0, 2), True), ((2, 3), inf),
                         ((2, 3), -inf, 1), ((4,), 0)),
           errors=refused_matrices((RuntimeError, np.ones(2, np.int64)),
                                   (IndexError, (2, 2), 2, 2)))
def linalg_vector_norm(input: Tensor, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors: of all elements, or over `dim` (an int or several).

    ord is a number, inf or -inf; 0 counts what is not zero.

    Shapes: as `sum`.
    Gradient: as `norm`.
    Raises: RuntimeError for integers, and for no elements where the norm of these is not defined;
    IndexError, TypeError.

    >>> tensorlib.linalg.vector_norm(tensorlib.tensor([3., 4.]))
    tensor(5.)
    """
    return vector_norm(input, ord, dim, keepdim, dtype)


def vector_norm(x, ord, dim, keepdim, dtype):
    """The norm of vectors for two functions."""
    x = x if dtype is None else x.to(dtype)
    if x.is_complex():
        x = x.abs()
    if not x.is_floating_point():
        raise RuntimeError("linalg.vector_norm: expected a floating point tensor as input, got "
                           f"{x.dtype}")
    ord = plain_number("linalg.vector_norm", "ord", ord)
    dims = None
    if dim is not None:
        dims = as_dims("linalg.vector_norm", dim, x.ndim)
        dims = dims if x.ndim else None
    if (ord < 0 or ord == inf) and 0 in (
            [x.shape[d] for d in dims] if dims else x.shape):
        raise RuntimeError(f"linalg.vector_norm: the norm of order {ord} is not defined for no "
                           "elements, as there is no identity")
    return norm_of_order(x, ord, dims or None, keepdim)


# ---- matrices ------------------------------------------------------------------------------------

ORDERS = (1, -1, 2, -2, inf, -inf)


def matrix_reference(x, ord="fro", dim=(-2, -1), keepdim=False):
    """The reference of `linalg_matrix_norm`."""
    return np.linalg.norm(x, ord, dim, keepdim)


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           reference=matrix_reference,
           samples=lambda rng: (((x,), {"ord": ord}) for ord in ("fro", "nuc", *ORDERS)
                                for (x,), _ in matrices((3, 2))(rng)),
           errors=refused_matrices((RuntimeError, (3,)), (RuntimeError, (2, 2), "sup"),
                                   (RuntimeError, (2, 2), 3)),
           reads_values=True, checks_values=True)
def linalg_matrix_norm(A: Tensor, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices, which lie in the two dims `dim`.

    ord: "fro" for the root of the sum of squares, "nuc" for the sum of singular values, 2 and -2
    for the largest and the smallest of these, 1 and -1 for the largest and smallest sum of a
    column's magnitudes, inf and -inf for those of rows.

    Shapes: (*, M, N) -> (*), with `keepdim` (*, 1, 1).
    Raises: RuntimeError for less than two dims, other orders, integers, and dtypes that `svdvals`
    does not take; IndexError.
    """
    return matrix_norm("linalg.matrix_norm", A, ord, dim, keepdim, dtype)


def matrix_norm(name, A, ord, dim, keepdim, dtype):
    """The norm of matrices for two functions."""
    A = A if dtype is None else A.to(dtype)
    if not has_gradients(A.dtype):
        raise RuntimeError(f"{name}: expected a floating point tensor as input, got {A.dtype}")
    if A.ndim < 2:
        raise RuntimeError(f"{name}: the input tensor A must have at least 2 dimensions, got shape "
                           f"{tuple(A.shape)}")
    dims = as_dims(name, dim, A.ndim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be two dims, got {dim!r}")
    if isinstance(ord, str) and ord == "fro":
        return norm(A, 2, dims, keepdim)
    if isinstance(ord, str):
        if ord != "nuc":
            raise RuntimeError(f"{name}: order {ord!r} is not supported; it is 'fro', 'nuc' or one "
                               f"of {ORDERS}")
    elif ord not in ORDERS:
        raise RuntimeError(f"{name}: order {ord!r} is not supported; it is 'fro', 'nuc' or one of "
                           f"{ORDERS}")
    if ord in ("nuc", 2, -2):
        values = linalg_svdvals(A.movedim(dims, (-2, -1)))
        if ord == "nuc" or ord == 2 and not values.shape[-1]:
            out = values.sum(-1)
        else:
            out = amax(values, -1) if ord == 2 else amin(values, -1)
    else:
        summed, other = dims if abs(ord) == 1 else reversed(dims)
        sums = A.abs().sum(summed, True)
        if ord > 0 and sums.shape[other] == 0:
            out = sums.sum(other, True)
        else:
            out = (amax if ord > 0 else amin)(sums, other, True)
        out = out.squeeze(dims)
    if keepdim:
        for d in sorted(dims):
            out = out.unsqueeze(d)
    return out


def any_reference(x, ord=None, dim=None, keepdim=False):
    """The reference of `linalg_norm`."""
    if ord is None and dim is None:
        return vector_reference(x, 2, None, keepdim)
    return np.linalg.norm(x, ord, dim, keepdim)


@composite(public=False, method=False, out=True, dtypes=DTYPES, reference=any_reference,
           tolerance="product",
           samples=given(((2, 3),), ((2, 2, 3),), ((3,), 1), ((2, 3), "fro"), ((2, 3), 2),
                         ((2, 3), 3, 1), ((2, 2, 3), inf, (0, 2), True)),
           errors=refused_matrices((RuntimeError, (2, 2, 2), 2), (RuntimeError, (3,), "fro"),
                                   (RuntimeError, (2, 2, 2), None, (0, 1, 2)),
                                   (IndexError, (2, 2), 2, 2)),
           reads_values=True, checks_values=True)
def linalg_norm(A: Tensor, ord=None, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors or of matrices: `linalg.vector_norm` or `linalg.matrix_norm`.

    It is that of vectors where `dim` is one dim, where A has one and there is no `dim`, and of all
    elements where there is no `ord` either; else that of matrices.

    Shapes: as `sum`.
    Raises: as both, and RuntimeError for other numbers of dims.

    >>> tensorlib.linalg.norm(tensorlib.tensor([[3., 0.], [0., 4.]]))
    tensor(5.)
    """
    if isinstance(dim, (tuple, list)) and not 1 <= len(dim) <= 2:
        raise RuntimeError(f"linalg.norm: dim must be of length 1 or 2, got {tuple(dim)}; "
                           "linalg.vector_norm takes any number")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype)
    of_matrices = A.ndim == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2
    if of_matrices:
        return matrix_norm("linalg.norm", A, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: order {ord!r} is for matrices, got "
                           f"{A.ndim if dim is None else 'one of ' + str(A.ndim)} dims")
    if dim is None and A.ndim != 1:
        raise RuntimeError("linalg.norm: with an order and no dim, the input tensor must have 1 or "
                           f"2 dims, got {A.ndim}")
    return vector_norm(A, ord, dim, keepdim, dtype)


# ---- rank and condition --------------------------------------------------------------------------

def rank_reference(x):
    """NumPy's, which refuses empty matrices before 2.3."""
    return np.linalg.matrix_rank(x) if x.size else np.zeros(x.shape[:-2], np.int64)


@op(out=True, public=False, method=False, differentiable=False, dtypes=TAKEN,
    samples=matrices((3, 3), (3, 2), (2, 2, 2), (0, 2)), errors=refused_matrices(
        (RuntimeError, (3,))), reference=rank_reference,
    reads_values=True, checks_values=True, complex=True)
def linalg_matrix_rank(A: Tensor, tol=None, hermitian=False, atol=None, rtol=None):
    """How many singular values are above max(atol, rtol * the largest), as int64.

    rtol is by default the step of the dtype times the larger size, or 0 where `atol` is given. tol
    is an older word for `atol`. hermitian: A is symmetric.

    Shapes: (*, M, N) -> (*).
    Raises: RuntimeError for less than two dims and for dtypes other than float32 and float64.

    >>> tensorlib.linalg.matrix_rank(tensorlib.ones(2, 3))
    tensor(1)
    """
    require_matrices("linalg.matrix_rank", A)
    if hermitian:
        require_square("linalg.matrix_rank", A)
    if tol is not None:
        atol, rtol = tol, 0.0
    if A.numel() == 0:
        return A.new_zeros(A.shape[:-2], dtype=BY_NAME["int64"])
    if hermitian:
        values = np.abs(lapack.eigvalsh("linalg.matrix_rank", A, False))
    else:
        values = lapack.svdvals("linalg.matrix_rank", A)
    kept = values > cutoff(values, *tolerances(atol, rtol), A.shape)
    return tensors(kept.sum(-1))[0]


def condition_reference(x, p=None):
    """The reference of `linalg_cond`."""
    return np.linalg.cond(regular(x), p)


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           prepare=first(regular), reference=condition_reference,
           samples=lambda rng: (((x,), {"p": p}) for p in (None, "fro", "nuc", 1, -1, inf, -2)
                                for (x,), _ in matrices((3, 3))(rng)),
           errors=refused_matrices((RuntimeError, (3,)), (RuntimeError, (2, 3), 1),
                                   (RuntimeError, (2, 2), "sup")), checks_values=True)
def linalg_cond(A: Tensor, p=None):
    """The condition number: the norm of matrices times that of their inverses.

    p is an order of `linalg.matrix_norm`, by default 2: the largest singular value divided by the
    smallest. That of a singular matrix is infinite.

    Shapes: (*, M, N) -> (*) for p of None, 2 and -2; else (*, N, N) -> (*).
    Raises: RuntimeError for other orders and shapes, and for dtypes other than float32 and float64.
    """
    require_matrices("linalg.cond", A)
    if p is None or p in (2, -2):
        values = linalg_svdvals(A)
        if values.shape[-1] == 0:
            return values.sum(-1)
        largest, smallest = values.select(-1, 0), values.select(-1, -1)
        return smallest / largest if p == -2 else largest / smallest
    require_square("linalg.cond", A)
    if A.numel() == 0:
        return A.real.new_zeros(A.shape[:-2])
    size = matrix_norm("linalg.cond", A, p, (-2, -1), False, None)
    inverse, info = linalg_inv_ex(A)
    inverse_size = matrix_norm("linalg.cond", inverse.where((info == 0)[..., None, None], 1), p,
                               (-2, -1), False, None)
    return (size * inverse_size).where(info == 0, inf)
