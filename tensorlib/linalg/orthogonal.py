"""The QR decomposition."""

import numpy as np

from tensorlib._core.base.results import result_type
from tensorlib._core.products import householder, small_matrices
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    DTYPES, NO_MATRIX, TAKEN, adjoint_rule, first, matrices, prepared_by, regular,
    require_matrices,
)
from tensorlib.linalg.inverses import identity, linalg_solve_triangular, tensors
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import composite, op
from tensorlib.ops.shape.joining import cat

Orthogonal = result_type("linalg_qr", "Q R")
OldOrthogonal = result_type("qr", "Q R")


@op(outputs=("Q", "R"), public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=first(regular), samples=matrices((3, 3), (3, 2), (2, 3, 2), (2, 0)),
    reference=prepared_by(regular, lambda x: tuple(np.linalg.qr(x))), reads_values=True,
    complex=True)
def qr_tall(A: Tensor, complete=False):
    """The QR decomposition of matrices that are not wide: see `linalg_qr`."""
    found = small_matrices.qr(A) or householder.qr(A, complete)
    if found is not None:
        return Orthogonal(*found)
    return Orthogonal(*tensors(*lapack.qr(A.numpy(force=True), complete)))


def triangle_of(A):
    """R alone, of matrices that are not wide, outside of graphs."""
    found = householder.triangle(A)
    return tensors(lapack.triangle_of_qr(A.numpy(force=True)))[0] if found is None else found


@qr_tall.vjp("A")
@packed_gradient
@adjoint_rule
def qr_vjp(g, Q, R, complete):
    """Source: Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions, 2018."""
    refuse_complete(Q, R)
    g_q, g_r = g
    inner, outer = 0, 0
    if g_r is not None:
        inner = g_r @ R.mH
    if g_q is not None:
        inner, outer = inner - Q.mH @ g_q, g_q
    upper = inner.triu()
    inner = with_half_diagonal(upper + upper.mH)
    return linalg_solve_triangular(R.mH, outer + Q @ inner, upper=False, left=False)


def with_half_diagonal(x):
    """x with half of its diagonal."""
    return x - x * 0.5 * identity(x)


@qr_tall.jvp
def qr_jvp(d_A, Q, R):
    """X - Q @ Y and Y @ R: X = d_A @ R^-1, and Y = triu(Q.mH @ X + X.mH @ Q), half its diagonal."""
    refuse_complete(Q, R)
    moved = linalg_solve_triangular(R, d_A, upper=True, left=False)
    inner = Q.mH @ moved
    upper = with_half_diagonal((inner + inner.mH).triu())
    return moved - Q @ upper, upper @ R


def refuse_complete(Q, R):
    """Raises RuntimeError where Q has columns that no column of the matrix determines."""
    if R.shape[-2] != R.shape[-1]:
        raise RuntimeError("linalg.qr: with mode='complete' the decomposition is differentiable "
                           f"only where there are not more rows than columns, got {Q.shape[-1]} "
                           f"and {R.shape[-1]}")


def both(A, name, mode):
    """Q and R in one of the modes of `linalg_qr`."""
    require_matrices(name, A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"{name}: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    rows, columns = A.shape[-2:]
    if rows >= columns:
        q, r = qr_tall(A, mode == "complete")
    else:
        q, r = qr_tall(A.narrow(-1, 0, rows))
        r = cat([r, q.mH @ A.narrow(-1, rows, columns - rows)], -1)
    return Orthogonal(q.new_zeros((0,)) if mode == "r" else q, r)


TALL_AND_WIDE = matrices((3, 3), (3, 2), (2, 3), (2, 2, 2))


@composite(outputs=("Q", "R"), public=False, method=False, out=True, dtypes=DTYPES,
           tolerance="product", prepare=first(regular), samples=TALL_AND_WIDE, errors=NO_MATRIX,
           reference=prepared_by(regular, lambda x: tuple(np.linalg.qr(x))), reads_values=True)
def linalg_qr(A: Tensor, mode="reduced"):
    """The QR decomposition A = Q @ R, as a named tuple (Q, R): Q is orthogonal, R upper triangular.

    mode: "reduced" for K = min(M, N) columns of Q, "complete" for all M, "r" for R alone, with an
    empty Q.

    Shapes: (*, M, N) -> (*, M, K), (*, K, N).
    Gradient: of a matrix whose first K columns are independent; none for "complete" where M is
    larger than N.
    Raises: RuntimeError for less than two dims, for other modes, and for dtypes other than float32
    and float64.
    """
    return both(A, "linalg.qr", mode)


@composite(outputs=("Q", "R"), out=True, dtypes=TAKEN, tolerance="product", prepare=first(regular),
           samples=TALL_AND_WIDE, errors=NO_MATRIX,
           reference=prepared_by(regular, lambda x: tuple(np.linalg.qr(x))), reads_values=True,
           complex=True)
def qr(input, some=True):
    """The QR decomposition as a named tuple (Q, R): `linalg.qr`, complete where not `some`."""
    return OldOrthogonal(*both(input, "qr", "reduced" if some else "complete"))
