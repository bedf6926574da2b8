"""Products of Householder reflections, of which QR decompositions consist."""

import numpy as np

from tensorlib._core.base.results import result_type
from tensorlib._core.products import householder
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    NO_MATRIX, TAKEN, adjoint_rule, matrices, refused_matrices, require_matrices,
    require_one_dtype,
)
from tensorlib.linalg.factors import unit_lower
from tensorlib.linalg.inverses import linalg_solve_triangular, tensors
from tensorlib.linalg.spectra import on_diagonal
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import composite, op
from tensorlib.ops.shape.joining import cat

Reflections = result_type("geqrf", "a tau")


def reflections(x):
    """The reference of `geqrf`."""
    flat = x.reshape((-1,) + x.shape[-2:])
    found = [np.linalg.qr(matrix.astype(np.result_type(x, np.float64)), "raw") for matrix in flat]
    h, tau = (np.array([pair[i] for pair in found]) for i in (0, 1))
    return (h.reshape(x.shape[:-2] + h.shape[1:]).swapaxes(-1, -2),
            tau.reshape(x.shape[:-2] + tau.shape[1:]))


@op(out=True, outputs=("a", "tau"), differentiable=False, dtypes=TAKEN, tolerance="product",
    complex=True, samples=matrices((3, 3), (3, 2), (2, 3), (2, 2, 2)), errors=NO_MATRIX,
    reference=reflections, reads_values=True)
def geqrf(input: Tensor):
    """R and the Householder vectors of a QR decomposition below it, as a named tuple (a, tau).

    Shapes: (*, M, N) -> (*, M, N), (*, K) with K = min(M, N).
    Raises: RuntimeError for less than two dims and for integers and half types.
    """
    require_matrices("geqrf", input)
    found = householder.geqrf(input)
    if found is not None:
        return Reflections(*found)
    columns, tau = lapack.geqrf(input.numpy(force=True))
    batch = tuple(input.shape[:-2])
    return Reflections(*tensors(columns.reshape(batch + columns.shape[1:]).swapaxes(-1, -2),
                                tau.reshape(batch + tau.shape[1:])))


def reflected(a, tau):
    """The reference of `linalg_householder_product`."""
    out = np.broadcast_to(np.eye(a.shape[-2]), a.shape[:-2] + (a.shape[-2],) * 2)
    for i in range(tau.shape[-1]):
        v = np.tril(a, -1)[..., i] + np.eye(a.shape[-2])[i]
        turned = tau[..., i, None, None] * v[..., None] * v[..., None, :].conj()
        out = out @ (np.eye(a.shape[-2]) - turned)
    return out[..., :a.shape[-1]]


def reflecting(rng):
    """Householder vectors and their factors."""
    for a, tau in (((3, 3), (3,)), ((3, 2), (1,)), ((2, 3, 2), (2, 2))):
        yield (rng.uniform(-1, 1, a), rng.uniform(0.5, 1.5, tau)), {}


@op(public=False, method=False, out=True, dtypes=TAKEN, complex=True, tolerance="product",
    samples=reflecting, reference=reflected, reads_values=True,
    errors=refused_matrices((RuntimeError, (2, 3), np.ones(2)),
                            (RuntimeError, (3, 2), np.ones(3))))
def linalg_householder_product(A: Tensor, tau: Tensor):
    """The first columns of the product of reflections 1 - tau[i] * v @ v.mH, in this order.

    v is column i of A below its diagonal, with 1 on it and 0 above.

    Shapes: (*, M, N), (*, K) -> (*, M, N) with K <= N <= M.
    Raises: RuntimeError for other shapes and for dtypes other than float32 and float64.
    """
    require_matrices("linalg.householder_product", A)
    require_one_dtype("linalg.householder_product", A, tau)
    m, n = A.shape[-2:]
    if m < n or tau.ndim != A.ndim - 1 or tau.shape[-1] > n or tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError("linalg.householder_product: expected shapes (*, M, N) and (*, K) with "
                           f"K <= N <= M, got {tuple(A.shape)} and {tuple(tau.shape)}")
    found = householder.product(A, tau)
    if found is not None:
        return found
    return tensors(lapack.householder_product(A.numpy(force=True), tau.numpy(force=True)))[0]


def together(A, tau):
    """The reflections as one, E - V @ T @ W: what V, T, W and the triangle S of V.mH @ V are.

    Source: Schreiber and Van Loan, "A storage-efficient WY representation for products of
    Householder transformations", 1989; T is had from (1 + diag(tau) @ S) @ T = diag(tau).
    """
    V = unit_lower(A.narrow(-1, 0, tau.shape[-1]))
    S = (V.mH @ V).triu(1)
    return V, S, scaled_inverse(tau, S, on_diagonal(tau)), V.narrow(-2, 0, A.shape[-1]).mH


def scaled_inverse(tau, S, x):
    """x multiplied by the inverse of 1 + diag(tau) @ S, for a strict upper triangle S."""
    return linalg_solve_triangular(tau.unsqueeze(-1) * S, x, upper=True, unitriangular=True)


def of_right_side(g, tau, V, S, W):
    """The gradient of diag(tau) as the right side of the system that gives T."""
    matrix = tau.unsqueeze(-1) * S
    return linalg_solve_triangular(matrix.mH, -(V.mH @ g @ W.mH), upper=False, unitriangular=True)


@linalg_householder_product.vjp("A")
@packed_gradient
@adjoint_rule
def householder_product_vjp(g, A, tau):
    """By V in -V @ T @ W, by W, and by S in (1 + diag(tau) @ S) @ T = diag(tau); see `together`."""
    V, S, T, W = together(A, tau)
    right = of_right_side(g, tau, V, S, W)
    g_S = (tau.unsqueeze(-1).conj() * -(right @ T.mH)).triu(1)
    g_V = V @ (g_S + g_S.mH) - g @ (T @ W).mH
    g_V = g_V - with_rows(g.mH @ V @ T, A.shape[-2])
    return with_columns(g_V.tril(-1), A.shape[-1])


@linalg_householder_product.vjp("tau")
@packed_gradient
@adjoint_rule
def householder_factors_vjp(g, A, tau):
    """diag(R - R @ T.mH @ S.mH), from (1 + D @ S) @ dT = dD @ (1 - S @ T) with D = diag(tau)."""
    V, S, T, W = together(A, tau)
    right = of_right_side(g, tau, V, S, W)
    return right.diagonal(0, -2, -1) - (right @ T.mH @ S.mH).diagonal(0, -2, -1)


@linalg_householder_product.jvp
def householder_product_jvp(d_A, d_tau, A, tau):
    """-d(V @ T @ W), from (1 + D @ S) @ dT = dD @ (1 - S @ T) - D @ dS @ T with D = diag(tau)."""
    V, S, T, W = together(A, tau)
    moved = 0
    if d_tau is not None:
        right = on_diagonal(d_tau) - d_tau.unsqueeze(-1) * (S @ T)
        moved = V @ scaled_inverse(tau, S, right) @ W
    if d_A is not None:
        d_V = d_A.narrow(-1, 0, tau.shape[-1]).tril(-1)
        d_S = (d_V.mH @ V + V.mH @ d_V).triu(1)
        d_T = scaled_inverse(tau, S, tau.unsqueeze(-1) * -(d_S @ T))
        d_W = d_V.narrow(-2, 0, A.shape[-1]).mH
        moved = d_V @ T @ W + V @ d_T @ W + V @ T @ d_W + moved
    return -moved


def with_columns(x, n):
    """x (*, M, K) with columns of zeros, n in all."""
    missing = n - x.shape[-1]
    return cat([x, x.new_zeros((*x.shape[:-1], missing))], -1) if missing > 0 else x


def with_rows(x, m):
    """x (*, N, K) with rows of zeros, m in all."""
    return with_columns(x.mT, m).mT


@composite(out=True, dtypes=TAKEN, tolerance="product", samples=reflecting, reference=reflected,
           complex=True, reads_values=True)
def orgqr(input, input2: Tensor):
    """The product of Householder reflections: `linalg.householder_product`."""
    return linalg_householder_product(input, input2)


@composite(out=True, dtypes=TAKEN, tolerance="product", reference=lambda a, tau, c: reflected(
    np.concatenate([a, np.zeros(a.shape[:-1] + (a.shape[-2] - a.shape[-1],))], -1), tau) @ c,
           samples=lambda rng: (((*args, rng.uniform(-1, 1, (3, 2))), {})
                                for args, _ in list(reflecting(rng))[:2]),
           complex=True, reads_values=True)
def ormqr(input, input2: Tensor, input3: Tensor, left=True, transpose=False):
    """The product of all Householder reflections, a square matrix, with the matrix input3.

    input2: the factors of the reflections. left: Q @ input3, else input3 @ Q. transpose: with Q.mH.
    See `linalg.householder_product`.
    """
    require_matrices("ormqr", input)
    m = input.shape[-2]
    q = linalg_householder_product(with_columns(input, m)[..., :m], input2)
    q = q.mH if transpose else q
    return q @ input3 if left else input3 @ q
