"""Determinants, their cofactors and their logarithms."""

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.results import result_type
from tensorlib._core.interpreters.foreign import as_proxy, proxied
from tensorlib._core.products import elimination, small_matrices
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    TAKEN, NOT_SQUARE, SQUARES, adjoint_rule, definite, first, matrices,
    prepared_by, regular, require_square,
)
from tensorlib.linalg.inverses import linalg_inv_ex, tensors
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import alias, composite, op
from tensorlib.ops.pointwise.comparison import where

SignedLog = result_type("linalg_slogdet", "sign logabsdet")


@op(out=True, public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=first(regular), samples=SQUARES, errors=NOT_SQUARE, reads_values=True,
    reference=prepared_by(regular, np.linalg.det), complex=True)
def linalg_det(A: Tensor):
    """The determinant of square matrices.

    Shapes: (*, N, N) -> (*).
    Gradient: the cofactors, also of singular matrices.
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64.

    >>> tensorlib.linalg.det(tensorlib.tensor([[2., 2.], [1., 4.]]))
    tensor(6.)
    """
    require_square("linalg.det", A)
    found = small_matrices.determinant(A)
    return elimination.determinants(A) if found is None else found


@linalg_det.vjp("A")
@packed_gradient
def det_vjp(g, A):
    """g * C with C the cofactors, which a singular matrix has too, unlike det(A) * A^-T."""
    return g[..., None, None] * cofactors(A)


@linalg_det.jvp
def det_jvp(d_A, A):
    """<C, d_A> with C the cofactors (Jacobi's formula)."""
    return (cofactors(A) * d_A).sum((-2, -1))


@op(public=False, method=False, dtypes=TAKEN, tolerance="product", prepare=first(regular),
    samples=matrices((3, 3), (2, 2, 2)),
    reference=prepared_by(regular, lambda x: np.linalg.det(x)[..., None, None]
                          * np.linalg.inv(x).swapaxes(-1, -2)), reads_values=True, complex=True)
def cofactors(A: Tensor):
    """The derivative of the determinant: for each element that of the rest, with its sign."""
    return tensors(lapack.cofactors(A))[0]


def away_from_singular(A):
    """A, with what is singular moved by the root of the smallest step of its dtype."""
    moved = lapack.regularized(proxied(A))
    if moved is None:
        return A
    return A + as_proxy(A, from_numpy(moved))


@cofactors.symmetric("A")
def cofactors_rule(g, A):
    """det(A) (tr(C' g) C - C g' C), where C is the transpose of the inverse.

    A singular matrix is moved by a little to have an inverse, as the map is continuous.
    """
    A = away_from_singular(A)
    inverse = linalg_inv_ex(A)[0].mT
    trace = (inverse * g).sum((-2, -1))[..., None, None]
    return linalg_det(A)[..., None, None] * (trace * inverse - inverse @ g.mT @ inverse)


@op(out=True, outputs=("sign", "logabsdet"), public=False, method=False, dtypes=TAKEN,
    tolerance="product",
    prepare=first(regular), samples=SQUARES, errors=NOT_SQUARE,
    reference=prepared_by(regular, lambda x: tuple(np.linalg.slogdet(x))), reads_values=True,
    complex=True)
def linalg_slogdet(A: Tensor):
    """The sign of the determinant and the logarithm of its size, a named tuple (sign, logabsdet).

    A singular matrix has sign 0 and -inf.

    Shapes: (*, N, N) -> (*), (*).
    Gradient: of the logarithm, the inverse transposed; infinite or NaN for singular matrices.
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64.
    """
    require_square("linalg.slogdet", A)
    factors = small_matrices.lu(A) or elimination.factors(A)
    return SignedLog(*elimination.log_determinants(*factors[:2]))


@linalg_slogdet.vjp("A")
@packed_gradient
@adjoint_rule
def slogdet_vjp(g, A, sign):
    """The real part of a change of the logarithm is that of its size, the other one that of the
    angle of the sign."""
    if g[1] is None and not A.is_complex():
        return A.new_zeros(A.shape)
    total = 0 if g[1] is None else g[1]
    if A.is_complex() and g[0] is not None:
        total = total - 1j * (g[0].conj() * sign).imag
    return total[..., None, None] * linalg_inv_ex(A)[0].mH


@linalg_slogdet.jvp
def slogdet_jvp(d_A, A, sign):
    """trace(A^-1 @ d_A): the real part moves the logarithm, the imaginary one turns the sign."""
    moved = (linalg_inv_ex(A)[0].mT * d_A).sum((-2, -1))
    if A.is_complex():
        return sign * moved.imag * 1j, moved.real
    return moved.new_zeros(moved.shape), moved


def with_logarithm(x):
    """Matrices whose determinants have a logarithm: of real numbers, positive definite ones."""
    is_complex = np.iscomplexobj(x) if isinstance(x, np.ndarray) else x.is_complex()
    return regular(x) if is_complex else definite(x)


def logarithm_of_determinant(x):
    """The reference of `logdet`."""
    sign, size = np.linalg.slogdet(x)
    return np.log(sign) + size


@composite(dtypes=TAKEN, tolerance="product", prepare=first(with_logarithm), samples=SQUARES,
           errors=NOT_SQUARE, reads_values=True,
           reference=prepared_by(with_logarithm, logarithm_of_determinant), complex=True)
def logdet(input):
    """The logarithm of the determinant: -inf where it is 0, NaN where it is negative.

    Shapes: (*, N, N) -> (*).
    Raises: as `det`.
    """
    sign, logarithm = linalg_slogdet(input)
    if input.is_complex():
        return sign.log() + logarithm
    return where(sign < 0, float("nan"), logarithm)


alias("det", linalg_det)
alias("slogdet", linalg_slogdet)
