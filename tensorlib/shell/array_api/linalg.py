"""The extension `linalg`: products, decompositions and norms of matrices."""

from typing import NamedTuple

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.array_api.operands import together
from tensorlib.array_api.reductions import sum_dtype


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Orthogonal(NamedTuple):
    """The factors of `qr`."""

    Q: Tensor
    R: Tensor


class Determinant(NamedTuple):
    """A determinant as its sign and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class Singular(NamedTuple):
    """The factors of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x, /, *, upper=False):
    """The lower triangle L of x = L @ L.mH, or the upper one."""
    return tl.linalg.cholesky(x, upper=upper)


def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of three elements along an axis."""
    x1, x2 = together(x1, x2)
    ndim = max(x1.ndim, x2.ndim)
    x1, x2 = (x[(None,) * (ndim - x.ndim)] for x in (x1, x2))
    return tl.linalg.cross(x1, x2, dim=axis)


def det(x, /):
    """The determinants of square matrices."""
    return tl.linalg.det(x)


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices."""
    return tl.linalg.diagonal(x, offset=offset)


def eig(x, /):
    """The eigenvalues and eigenvectors of square matrices, which are complex."""
    return Eigen(*tl.linalg.eig(x))


def eigh(x, /):
    """The eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return Eigen(*tl.linalg.eigh(x))


def eigvals(x, /):
    """The eigenvalues of square matrices, which are complex."""
    return tl.linalg.eigvals(x)


def eigvalsh(x, /):
    """The eigenvalues of symmetric or Hermitian matrices."""
    return tl.linalg.eigvalsh(x)


def inv(x, /):
    """The inverses of square matrices."""
    return tl.linalg.inv(x)


def matmul(x1, x2, /):
    """The matrix product over the last two axes."""
    return tl.matmul(*together(x1, x2))


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norms of matrices."""
    return tl.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x, n, /):
    """Square matrices multiplied `n` times; their inverses where it is negative."""
    return tl.linalg.matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are more than `rtol` times the largest one."""
    return tl.linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x, /):
    """A view with the last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: takes matrices, got an array of {x.ndim} axes")
    return x.mT


def outer(x1, x2, /):
    """The products of each element of a vector with each of another."""
    return tl.outer(*together(x1, x2))


def pinv(x, /, *, rtol=None):
    """The pseudo-inverses of matrices."""
    return tl.linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    """Q with orthogonal columns and an upper triangle R, whose product is `x`."""
    return Orthogonal(*tl.linalg.qr(x, mode))


def slogdet(x, /):
    """The signs of determinants, and the logarithms of their sizes."""
    return Determinant(*tl.linalg.slogdet(x))


def solve(x1, x2, /):
    """The solutions of x1 @ x = x2; x2 is a vector only where it has one axis."""
    x1, x2 = together(x1, x2)
    if x2.ndim == 1:
        return tl.linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = tl.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return tl.linalg.solve(x1, x2.expand(*batch, *x2.shape[-2:]))


def svd(x, /, *, full_matrices=True):
    """The singular values of matrices with the vectors to both sides."""
    return Singular(*tl.linalg.svd(x, full_matrices))


def svdvals(x, /):
    """The singular values of matrices."""
    return tl.linalg.svdvals(x)


def tensordot(x1, x2, /, *, axes=2):
    """The products summed over the last axes of one and the first of the other, or given ones."""
    x1, x2 = together(x1, x2)
    if not isinstance(axes, int):
        axes = [list(axes[0]), list(axes[1])]
    return tl.tensordot(x1, x2, axes)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of diagonals."""
    return tl.sum(tl.linalg.diagonal(x, offset=offset), -1, dtype=sum_dtype(x, dtype))


def vecdot(x1, x2, /, *, axis=-1):
    """The sums of products of vectors along an axis, the first conjugated. The axis is not
    broadcast: RuntimeError for two sizes."""
    x1, x2 = together(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise RuntimeError(f"linalg.vecdot: axis {axis} has sizes {x1.shape[axis]} and "
                           f"{x2.shape[axis]}, which must be the same")
    if x1.dtype.is_floating_point or x1.dtype.is_complex:
        return tl.linalg.vecdot(x1, x2, dim=axis)
    return tl.sum(x1 * x2, axis, dtype=x1.dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norms of the elements along axes, by default of all."""
    if axis == ():
        return tl.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    return tl.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]
